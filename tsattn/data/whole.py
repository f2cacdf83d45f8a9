"""All cases of a file, or of a folder of files, whatever split they are called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.folders import folder_files, read_set
from tsattn.data.formats import is_series
from tsattn.data.sources import load_file
from tsattn.errors import InputError


def load_whole(place: Path, table: TableOptions) -> Collection:
    """The cases at `place`, with labels as far as it has them. InputError where it cannot be read."""
    if place.is_dir():
        if (files := folder_files(place, table)) is None:
            raise InputError(f"{place}: no file with data in it. Type the file with the cases to hold out.")
        return read_set(files, table).collection
    # What has no columns may name groups in its own way, as .npz does.
    return load_file(place, replace(table, group=None) if is_series(place) else table).collection

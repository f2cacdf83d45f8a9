"""Where a named data set is: embedded in aeon, in the cache, or still to be fetched."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tsattn.data.registry import DatasetEntry, find_entry


def looks_like_a_path(source: str) -> bool:
    """Whether SOURCE can only mean a file or folder: it has a slash or an ending."""
    return "/" in source or "\\" in source or bool(Path(source).suffix)


def embedded_folder(name: str) -> Path | None:
    """Where aeon keeps the set `name`, found without importing aeon; None if it does not have it."""
    spec = importlib.util.find_spec("aeon")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "datasets" / "data" / name
        if (folder / f"{name}_TRAIN.ts").is_file():
            return folder
    return None


def set_to_fetch(source: str, registry: Path | None = None) -> DatasetEntry | None:
    """The named set that `load_split` would have to fetch for SOURCE first; None if it need not.

    InputError if SOURCE looks like a name and is none.
    """
    from tsattn.data.download.store import cached

    if looks_like_a_path(source) or Path(source).exists():
        return None
    entry = find_entry(source, registry)
    here = (
        entry.files is not None or embedded_folder(entry.name) is not None or cached(entry.name) is not None
    )
    return None if here else entry


def fetched_folder(entry: DatasetEntry) -> Path:
    """The cache's folder with both files of a set, fetched if need be. InputError if it cannot be had."""
    from tsattn.data.download.fetch import chosen_way, fetch

    return fetch(entry, chosen_way()).folder

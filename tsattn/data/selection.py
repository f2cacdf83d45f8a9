"""Which entries of the registry a command means: those of an archive, or those named."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from tsattn.data.registry import DatasetEntry
from tsattn.errors import InputError

OWN = "own"
"""The word for the entries that name files of the user's."""


def of_archive(word: str, entries: Mapping[str, DatasetEntry]) -> list[DatasetEntry]:
    """The entries of an archive, or that it names too, in any case of letters.

    InputError with the archives there are if none is called so.
    """
    chosen = [entry for entry in entries.values() if word.lower() in _words(entry)]
    if not chosen:
        known = list(dict.fromkeys(word for entry in entries.values() for word in _words(entry)))
        near = difflib.get_close_matches(word.lower(), known, n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise InputError(f"--archive {word}: no archive of that name. {meant}Known: {', '.join(known)}.")
    return chosen


def _words(entry: DatasetEntry) -> list[str]:
    return [word.lower() for word in (entry.archive or OWN, *entry.also)]

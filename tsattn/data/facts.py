"""What was read of a named set, held against what the registry knows of it."""

from __future__ import annotations

from tsattn.data.collection import Collection
from tsattn.data.registry import DatasetEntry
from tsattn.errors import InputError


def check_facts(cases: Collection, origin: str, entry: DatasetEntry, split: str) -> None:
    """InputError where the cases of `split` are not as many, or of as many channels or classes, as known."""
    expected = {
        "cases": (len(cases), entry.train if split == "train" else entry.test),
        "channels": (len(cases.channels), entry.channels),
        "classes": (len(cases.classes), entry.classes),
    }
    for what, (found, known) in expected.items():
        if known is not None and found != known:
            raise InputError(
                f"{origin}: {found} {what} where the registry has {known} for {entry.name}. "
                "The file is not whole or not this set: get it again from the archive."
            )

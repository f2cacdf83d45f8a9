"""What was fetched, held against what the registry knows of the set."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from tsattn.data.registry import DatasetEntry
from tsattn.data.ts_cases import check_channels, read_cases
from tsattn.data.ts_header import read_header
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The figures of one .ts file. length: timepoints of its longest channel. classes: as declared."""

    cases: int
    channels: int
    classes: int
    length: int


def count(data: bytes, where: str) -> Counts:
    """The figures of a .ts file, lines and labels read and numbers not. InputError as the reader's."""
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    header = read_header(data, where)
    cases = read_cases(data, header, where)
    check_channels(cases, header, where)
    labels = header.classes or {case.label: "" for case in cases}
    return Counts(
        cases=len(cases),
        channels=cases[0].series.count(b":") + 1,
        classes=len(labels) if header.labels else 0,
        length=max(part.count(b",") + 1 for case in cases for part in case.series.split(b":")),
    )


def fault_of(entry: DatasetEntry, train: Path, test: Path) -> str | None:
    """What is wrong with the two files as the set `entry`, in a few words; None if nothing is.

    A length other than the registry's is a remark only: it differs by the version of unequal sets.
    """
    found = []
    for path, cases in ((train, entry.train), (test, entry.test)):
        # The name alone: the user never sees the folder in which a file waits to be judged.
        try:
            counts = count(path.read_bytes(), path.name)
        except InputError as error:
            return str(error).rstrip(".")
        found.append(counts)
        known = {"cases": cases, "channels": entry.channels, "classes": entry.classes}
        for what, number in known.items():
            if number is not None and getattr(counts, what) != number:
                return f"{path.name} has {getattr(counts, what)} {what} where the registry has {number}"
    if found[0].channels != found[1].channels:
        return f"{train.name} has {found[0].channels} channels and {test.name} {found[1].channels}"
    longest = max(counts.length for counts in found)
    if entry.length not in (None, longest):
        logger.warning(
            "%s: its longest case has %d timepoints where the registry has %d; another version of the set.",
            entry.name, longest, entry.length,
        )  # fmt: skip
    return None

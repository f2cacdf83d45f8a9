"""Whether the first line of a CSV file names its columns, or is a row or a comment already."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from tsattn.data.csvdialect import is_missing, is_number
from tsattn.data.rolenames import ID_NAMES, LABEL_NAMES, TIME_NAMES
from tsattn.errors import InputError

_ADD_ONE = "A table begins with a line of column names: add one."


def refuse_what_is_no_header(
    where: str, names: Sequence[str], rows: Sequence[Sequence[str]], decimal: str
) -> None:
    """InputError, beginning with `where`, if the line that holds `names` is a comment or a row of data.

    rows: some lines below it. decimal: the sign in their numbers. A line that counts is a header.
    """
    if names[0].startswith("#") and any(len(row) != len(names) or len(row) == 1 for row in rows):
        raise InputError(
            f"{where}: a comment ({short(names[0])}); comments are not read: remove the line. "
            "A table begins with a line of column names."
        )
    shown, numbers = short(", ".join(names)), [_number(name, decimal) for name in names]
    if all(number is not None for name, number in zip(names, numbers, strict=True) if name) and not counts(
        names
    ):
        raise InputError(f"{where}: the first line holds only numbers ({shown}). {_ADD_ONE}")
    if (word := _label_among_numbers(names, numbers, rows)) is not None:
        raise InputError(
            f"{where}: the first line holds only numbers and {short(word)} ({shown}), as the lines below it "
            f"do. {_ADD_ONE}"
        )


def refuse_doubled_names(where: str | Path, names: Sequence[str]) -> None:
    """InputError, beginning with `where`, for a name that two columns have."""
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise InputError(f"{where}: two columns are called {short(name)}. Rename one of them.")
        seen.add(name)


def counts(names: Sequence[str]) -> bool:
    """Whether they are 0, 1, 2, … or 1, 2, 3, …, as pandas names columns; two numbers may be chance."""
    return len(names) > 2 and any(list(names) == [*map(str, range(i, i + len(names)))] for i in (0, 1))


def short(text: str) -> str:
    """The text in quotes, cut where it would fill the screen."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _label_among_numbers(
    names: Sequence[str], numbers: Sequence[float | None], rows: Sequence[Sequence[str]]
) -> str | None:
    """The word at an end of a line of numbers that makes it a row of data; None if it is a header.

    Numbers that rise or fall may be names of timepoints: then the word has to stand in its column again.
    """
    words = [at for at, number in enumerate(numbers) if number is None and not is_missing(names[at])]
    known = [number for number in numbers if number is not None]
    if not known or not words or not set(words) <= {0, len(names) - 1}:
        return None
    if any(names[at].lower() in ID_NAMES + TIME_NAMES + LABEL_NAMES for at in words):
        return None
    for at in words:
        if any(names[at] == row[at].strip() for row in rows if at < len(row)):
            return names[at]
    steps = [b - a for a, b in itertools.pairwise(known)]
    ordered = all(step > 0 for step in steps) or all(step < 0 for step in steps)
    return None if ordered else names[words[-1]]


def _number(name: str, decimal: str) -> float | None:
    """The number that a header's cell is; None for a word."""
    if is_number(name):
        return float(name)
    return float(name.replace(decimal, ".")) if is_number(name, decimal) else None

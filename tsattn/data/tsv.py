"""Reader of the UCR archive's .tsv files: a case a line, its label first, no header.

Shorter cases are padded with NaN at their end. Not covered: several channels, for which the form has
no spelling.
"""

from __future__ import annotations

from tsattn.data.classes import sorted_classes
from tsattn.data.collection import Collection
from tsattn.data.csvdialect import is_missing, is_number
from tsattn.data.textfile import shown, text_of
from tsattn.data.ts import collection_of
from tsattn.data.ts_cases import Case
from tsattn.errors import InputError


def parse_tsv(data: bytes, where: str) -> Collection:
    """The cases of a .tsv file given as bytes, with ids "0", "1", …; labels as spelled, classes sorted.

    Fields are separated by tabs, commas or blanks, whichever the first line has.
    InputError with `where`:line for a line without label, of another length, and for what is no number.
    """
    lines = text_of(data, where, "a .tsv file (a label and the values in each line)").split("\n")
    separator = separator_of(next(line for line in lines if line.strip()))
    cases: list[Case] = []
    labels: list[str] = []
    width = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        label, *values = line.split() if separator is None else line.split(separator)
        if not label.strip() or not values:
            raise InputError(
                f"{where}:{number}: no {'values' if label.strip() else 'label'} in this line. "
                "A line of a .tsv file is a label, then the values."
            )
        width = width or len(values)
        if len(values) != width:
            raise InputError(
                f"{where}:{number}: {len(values)} values, the first case has {width}. In this form shorter "
                "cases are padded with NaN: is the line cut or joined with another?"
            )
        if odd := next((value for value in values if ":" in value), None):
            raise InputError(f"{where}:{number}: found {shown(odd)} where a number belongs.")
        labels.append(label.strip())
        cases.append(Case(number, ",".join(values).encode(), b"", stamped=False))
    return collection_of(cases, tuple(labels), sorted_classes(labels), where)


def separator_of(line: str) -> str | None:
    """Tab or comma, None for blanks."""
    return next((separator for separator in "\t," if separator in line), None)


def has_header(line: str) -> bool:
    """Whether the first line of a .tsv file names columns, so that it is a table."""
    cells = [cell.strip().strip('"') for cell in line.split(separator_of(line))]
    first, rest = (cells or [""])[0], cells[1:]
    if not all(is_number(cell) or is_missing(cell) for cell in rest):
        return True
    counted = [str(i) for i in range(len(rest))]
    return (
        len(rest) > 1 and not is_number(first) and rest in (counted, [str(i + 1) for i in range(len(rest))])
    )


def first_line(data: bytes) -> str:
    """The first line that is not blank, as text for `has_header`."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    return next((line for line in lines if line.strip()), b"").decode("utf-8", errors="replace")

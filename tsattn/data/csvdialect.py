"""How a CSV file is packed and spelled: compression, separator, decimal point or comma.

The separator is told from the header and the first rows, never from the file's name. Not covered:
quotation marks other than ", escapes by backslash, a comma as separator and decimal sign at once.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsattn.errors import InputError

MISSING = ("", "NaN", "NA", "N/A", "null", "None", "?")
"""Spellings of a missing value, their letters large or small."""


def _cases(word: str) -> Iterator[str]:
    """The word with every choice of capitals."""
    return map("".join, itertools.product(*({letter.lower(), letter.upper()} for letter in word)))


NULLS = (
    *sorted(blank + word for any_case in MISSING for word in _cases(any_case) for blank in ("", " ")),
    "  ",
    "\t",
)
"""The same as pyarrow has to be told them: it does not look past the blank that follows a comma."""
_NULLS = frozenset(NULLS)

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Endings of compressed files, as pyarrow calls the compression."""
_SEPARATORS = ",;\t|"
_LOOK_ROWS = 50
_NUMBER = re.compile(
    r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII
)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file and its spelling. separator and decimal: one character each."""

    path: Path
    separator: str = ","
    decimal: str = "."

    @property
    def compressed(self) -> bool:
        """Whether its ending is that of a compressed file."""
        return self.path.suffix.lower() in COMPRESSIONS

    def open_bytes(self) -> io.RawIOBase:
        """The unpacked bytes. InputError if it cannot be opened, and on reading what is damaged."""
        return Unpacked(self.path)

    def open_native(self) -> Any:
        """The unpacked bytes as an Arrow stream, which threads read without Python. OSError."""
        import pyarrow as pa

        return pa.input_stream(str(self.path), COMPRESSIONS.get(self.path.suffix.lower()))

    def open_text(self) -> io.TextIOWrapper:
        """The unpacked text; newlines stay as they are."""
        return io.TextIOWrapper(io.BufferedReader(self.open_bytes(), 1 << 17), "utf-8-sig", newline="")

    def remark(self) -> str | None:
        """What of the spelling is not a comma and a point, for people; None if all is as usual."""
        if self.separator == ",":
            return None
        sign = " with decimal commas" if self.decimal == "," else ""
        return f"columns are separated by {self.separator!r}{sign}"


class Unpacked(io.RawIOBase):
    """The bytes of a file, unpacked on the way."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._path = path
        try:
            compression = COMPRESSIONS.get(path.suffix.lower())
            self._raw: Any = pa.input_stream(str(path), compression) if compression else path.open("rb")
        except FileNotFoundError:
            raise InputError(f"{path}: no such file.") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes. InputError if what is packed is damaged or cut short."""
        try:
            data: bytes = self._raw.read(size)
        except OSError as error:
            raise InputError(
                f"{self._path}: cannot be unpacked ({error}): damaged, cut short, or not of the form "
                "its ending says. Get it again, or pack it again."
                if self._path.suffix.lower() in COMPRESSIONS
                else f"{self._path} cannot be read: {error.strerror or error}."
            ) from None
        return data

    def readinto(self, buffer: Any) -> int:
        """As `read`, into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Closes the file below too."""
        if not self.closed:
            self._raw.close()
        super().close()


def is_number(cell: str, decimal: str = ".") -> bool:
    """True for what the reader takes as a number (nan and inf count)."""
    if decimal != ".":
        cell = cell.replace(".", "?").replace(decimal, ".")
    return _NUMBER.fullmatch(cell.strip(" \t")) is not None


def is_missing(cell: str) -> bool:
    """True for an empty cell and the other spellings in MISSING."""
    return cell in _NULLS


def sniff(path: Path, start: str, whole: bool) -> CsvFile:
    """The spelling of the file at `path` whose text begins with `start`, all of it if `whole`.

    InputError where two separators fit equally, and where numbers have decimal points and commas.
    """
    if not whole:
        start = start[: max(start.rfind("\n"), start.rfind("\r")) + 1] or start
    tried = {separator: _records(start, separator) for separator in _SEPARATORS}
    wide = {separator: len(rows[0]) for separator, rows in tried.items() if rows and len(rows[0]) > 1}
    if not wide:
        return CsvFile(path)
    fitting = [s for s in wide if all(len(row) == wide[s] for row in tried[s])]
    most = max(wide[s] for s in fitting or wide)
    best = [s for s in fitting or wide if wide[s] == most]
    if len(best) > 1:
        raise InputError(
            f"{path}: the columns are separated by {' or by '.join(map(repr, best))}: both give {most} in "
            "every row. Put the names that hold one of these characters in quotes, or save with commas."
        )
    file = CsvFile(path, best[0])
    return replace(file, decimal=_decimal(path, tried[best[0]])) if best[0] != "," else file


def _records(start: str, separator: str) -> list[list[str]]:
    """The header and some rows, blank lines left out, as far as quotes stand where they belong."""
    reader = csv.reader(io.StringIO(start, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(itertools.islice((row for row in reader if row), _LOOK_ROWS + 1))
    return rows


def _decimal(path: Path, rows: list[list[str]]) -> str:
    """The decimal sign of the columns that hold only numbers."""
    found: dict[str, str] = {}
    for name, *cells in zip(*rows, strict=False):
        signs = [sign for cell in cells if (sign := _sign(cell.strip())) is not None]
        first = next((sign for sign in signs if sign), "?")
        if "?" not in signs and first != "?":
            found.setdefault(first, name)
    if len(found) == 2:
        raise InputError(
            f"{path}: column {found[',']!r} has decimal commas and column {found['.']!r} decimal points. "
            "Save the file with one of the two."
        )
    return next(iter(found), ".")


def _sign(cell: str) -> str | None:
    """The decimal sign in a number, "" for a whole number, "?" for text, None for what says nothing."""
    if is_missing(cell):
        return None
    if _COMMA_NUMBER.fullmatch(cell):
        return ","
    if _POINT_NUMBER.fullmatch(cell):
        return "."
    return "" if re.fullmatch(r"[+-]?[0-9]+", cell) else "?"

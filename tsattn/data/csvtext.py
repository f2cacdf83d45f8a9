"""A CSV file as text: its header, a sample of its rows, and where in it something stands.

Reading at speed is pyarrow's work (tables.py). It counts neither lines nor rows in its messages, so
everything that a message has to point at is found here, in a second pass with the csv module.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tsattn.data.csvdialect import MISSING, CsvFile, is_missing, is_number, sniff
from tsattn.data.headers import counts, refuse_doubled_names, refuse_what_is_no_header, short
from tsattn.data.rows import TableHead
from tsattn.errors import InputError

_SAMPLE_ROWS = 1000
_SAMPLE_CELLS = 100_000
_FIRST_BYTES, _FIRST_LINES, _MOST_BYTES = 1 << 16, 10, 1 << 23


@dataclass(frozen=True)
class Head(TableHead):
    """The beginning of a CSV file.

    names: the header's cells without blanks around them. skip: lines or records that stand before
    the first row of data. rows: the first rows of data, as text. file: how the file is spelled.
    """

    path: Path
    names: tuple[str, ...]
    skip: int
    rows: tuple[tuple[str, ...], ...]
    file: CsvFile

    @cached_property
    def text_columns(self) -> frozenset[str]:
        """Columns with values in the sample of which none is a number."""
        return frozenset(name for at, name in enumerate(self.names) if self._is_text(at))

    def _is_text(self, at: int) -> bool:
        decimal = self.file.decimal
        cells = (row[at] for row in self.rows if at < len(row) and not is_missing(row[at]))
        return (first := next(cells, None)) is not None and not any(
            is_number(cell, decimal) for cell in itertools.chain([first], cells)
        )

    def sample(self, column: str) -> list[str]:
        """The column's cells in `rows`."""
        at = self.names.index(column)
        return [row[at] for row in self.rows if at < len(row)]

    def batches(self, numbers: list[int], texts: list[int], time: int | None) -> Iterator[Any]:
        """As `TableHead` says; the time as spelled, but with decimal points."""
        from tsattn.data.csvread import csv_batches, with_decimal_points

        if time is None:
            return csv_batches(self, numbers, texts)
        batches = csv_batches(self, numbers, [*texts, time])
        return batches if self.file.decimal == "." else map(with_decimal_points, batches)

    def place(self, row: int) -> str:
        """File and line."""
        return f"{self.path}:{line_of_row(self.file, row)}"

    def cell(self, row: int, column: int) -> str:
        """The cell as it is spelled."""
        return cell_at(self.file, row, column)

    def fault(self) -> str | None:
        """An open quote, which makes one cell of many rows."""
        return open_quote(self.file)

    def remark(self) -> str | None:
        """The separator and decimal sign where they are not the usual ones, and a header that counts."""
        counted = f"the first line counts from {self.names[0]} and is taken for column names"
        said = [counted if counts(self.names) else None, self.file.remark()]
        return "; ".join(filter(None, said)) or None


def read_head(path: Path) -> Head:
    """Reads the header and the first rows. InputError for whatever is not a CSV file with rows."""
    return head_of(CsvFile(path))


def head_of(unspelled: CsvFile) -> Head:
    """As `read_head`, of a file whose spelling is not known yet."""
    path = unspelled.path
    spelled = sniff(path, *_start(unspelled))
    file = replace(unspelled, separator=spelled.separator, decimal=spelled.decimal)
    records = _records(file)
    line, header = next(records, (0, []))
    names = tuple(cell.strip() for cell in header)
    rows: list[tuple[str, ...]] = []
    for _, cells in records:
        rows.append(tuple(cells))
        if len(rows) >= _SAMPLE_ROWS or len(rows) * len(names) >= _SAMPLE_CELLS:
            break
    refuse_what_is_no_header(f"{path}:{line}", names, rows, file.decimal)
    refuse_doubled_names(f"{path}:{line}", names)
    if not rows:
        raise InputError(f"{path}: a header and no rows below it. A table needs one row a case or timepoint.")
    return Head(path, names, skip=line, rows=tuple(rows), file=file)


def line_of_row(file: CsvFile, row: int) -> int:
    """The line (from 1, the header's counted) on which row `row` of the data (from 0) begins."""
    for number, (line, _) in enumerate(_records(file)):
        if number == row + 1:
            return line
    raise AssertionError(f"{file.path} has no row {row}")


def cell_at(file: CsvFile, row: int, column: int) -> str:
    """The text in row `row` of the data (from 0) and column `column` (from 0)."""
    for number, (_, cells) in enumerate(_records(file)):
        if number == row + 1:
            return cells[column]
    raise AssertionError(f"{file.path} has no row {row}")


def first_fault(file: CsvFile, width: int, numbers: Mapping[int, str]) -> str | None:
    """What is wrong with the first faulty row, as a message with file and line; None if nothing is.

    width: fields a row has to have. numbers: name of each column that has to hold numbers, by position.
    """
    records = _records(file)
    next(records)  # the header
    for line, cells in records:
        if (fault := fault_of(cells, width, numbers, file.decimal)) is not None:
            return f"{file.path}:{line}: {fault}"
    return None


def fault_of(cells: Sequence[str], width: int, numbers: Mapping[int, str], decimal: str) -> str | None:
    """What is wrong with one row, as `first_fault` but without its place; None if nothing is."""
    if len(cells) != width:
        swallowed = any("\n" in cell for cell in cells)
        hint = " A quote is opened there that is not closed?" if swallowed else ""
        if cells[0].startswith("#"):
            hint = " Comments are not read: remove the line."
        return f"{len(cells)} fields, the header has {width}.{hint}"
    for column, name in numbers.items():
        cell = cells[column]
        if not is_missing(cell) and not is_number(cell, decimal):
            return (
                f"column {name!r} holds {short(cell)} where a number belongs. "
                f"A missing value is an empty cell or one of {', '.join(MISSING[1:])}."
            )
    return None


def open_quote(file: CsvFile) -> str | None:
    """A message if the file ends inside a quoted cell, else None."""
    with file.open_text() as text:
        reader = csv.reader(text, delimiter=file.separator, strict=True)
        line = 1
        try:
            for _ in reader:
                line = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                where = f"{file.path}:{line}"
                return f"{where}: a quote is opened and never closed. Double it in a cell, or remove it."
        except UnicodeDecodeError:
            raise _not_utf8(file) from None
    return None


def nul_byte(file: CsvFile) -> InputError:
    """The error for a file with a NUL byte, which no text has, with the first one's line."""
    with io.BufferedReader(file.open_bytes()) as content:
        line = next((number for number, line in enumerate(content, start=1) if b"\0" in line), 1)
    return InputError(f"{file.path}:{line}: a NUL byte: this is a binary file or damaged, not CSV.")


def listed(names: Iterable[str]) -> str:
    """The names with commas between them, the middle left out where there are many."""
    shown = list(names)
    if len(shown) > 12:
        shown = [*shown[:10], "…", shown[-1]]
    return ", ".join(shown)


def _records(file: CsvFile) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of every record, the header's first; blank lines are left out."""
    line = 1
    try:
        with file.open_text() as text:
            reader = csv.reader(text, delimiter=file.separator)
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
    except UnicodeDecodeError:
        raise _not_utf8(file) from None
    except csv.Error as error:
        raise InputError(f"{file.path}:{line}: not CSV ({error}). Is a quote left open?") from None


def _not_utf8(file: CsvFile) -> InputError:
    """The error for a file with bytes that are no UTF-8, with their first line."""
    number = 1
    with io.BufferedReader(file.open_bytes()) as content:
        for number, line in enumerate(content, start=1):  # noqa: B007
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                break
    return InputError(
        f"{file.path}:{number}: not UTF-8. Save the file as UTF-8 text (in a spreadsheet: CSV UTF-8)."
    )


def _start(unspelled: CsvFile) -> tuple[str, bool]:
    """The file's first text, and whether that is all of it. InputError for what is no text."""
    path = unspelled.path
    if path.is_dir():
        raise InputError(f"{path} is a folder where a CSV file was expected. Type the file's name.")
    with unspelled.open_bytes() as file:
        start = file.read(_FIRST_BYTES)
        while (
            start.count(b"\n") < _FIRST_LINES and len(start) < _MOST_BYTES and (more := file.read(len(start)))
        ):
            start += more
        whole = not file.read(1)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path}: UTF-16 text. Save the file as UTF-8 (in a spreadsheet: CSV UTF-8).")
    if b"\0" in start:
        raise nul_byte(unspelled)
    if not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"{path}: the file is empty. A table begins with a line of column names.")
    return start.decode("utf-8-sig", errors="replace"), whole

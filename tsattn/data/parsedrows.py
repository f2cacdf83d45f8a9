"""Rows of a table parsed piece by piece, in any thread, with what is wrong with a row beside it.

A reader gives pieces, in order and one after the other, and parses each by itself; so pieces can be
parsed at once. A row that is wrong keeps its place, its values are missing and its fault is told.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from tsattn.data.columns import TableRoles
from tsattn.data.csvblocks import TextBlock, records, text_blocks
from tsattn.data.csvdialect import NULLS
from tsattn.data.csvtext import Head, fault_of
from tsattn.data.rows import TableHead, as_numpy
from tsattn.errors import InputError

_CHUNK, _FIRST_CHUNK = 1 << 20, 1 << 17
_BYTES_A_CELL = 64


@dataclass(frozen=True)
class ParsedRows:
    """Some neighbouring rows.

    values: (value columns, rows) float32 in the order of `TableRoles.columns`, NaN where missing and in
    rows with a fault. texts: columns read as text, by position in the table. times: as `Rows.times`.
    faults: what is wrong with a row, with its place, by the row's number in this piece. place: where a
    row of this piece stands. torn: rows of another number of fields, whose texts may be anything.
    """

    values: NDArray[np.float32]
    texts: Mapping[int, Any]
    times: Any
    place: Callable[[int], str]
    faults: Mapping[int, str] = field(default_factory=dict)
    torn: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return int(self.values.shape[1])


class RowReader(Protocol):
    """One table: its pieces in order, and how one is parsed."""

    def pieces(self) -> Generator[Any, None, None]:
        """What `parse` takes, one after the other."""
        ...

    def parse(self, piece: Any) -> ParsedRows:
        """The rows of one piece; may run in any thread."""
        ...


def row_reader(
    head: TableHead, roles: TableRoles, keep: Iterable[str], content: Iterable[bytes] | None = None
) -> RowReader:
    """A reader of the columns that `roles` names, and of `keep` as text.

    content: the bytes of a CSV file that cannot be opened by its name.
    """
    position = {name: at for at, name in enumerate(head.names)}
    wanted = _Columns(
        numbers=[position[name] for columns in roles.columns for name in columns],
        texts=sorted({position[name] for name in (roles.id, *keep) if name is not None}),
        time=None if roles.time is None else position[roles.time],
    )
    if isinstance(head, Head):
        return _CsvReader(head, wanted, content)
    return _TypedReader(head, wanted)


@dataclass(frozen=True)
class _Columns:
    """Positions of the columns to read."""

    numbers: list[int]
    texts: list[int]
    time: int | None


class _TypedReader:
    """Of a container whose columns have types; its batches are small and come parsed."""

    def __init__(self, head: TableHead, wanted: _Columns) -> None:
        self._head, self._wanted = head, wanted

    def pieces(self) -> Generator[tuple[int, Any], None, None]:
        """The number of the first row, and a record batch."""
        first = 0
        for batch in self._head.batches(self._wanted.numbers, self._wanted.texts, self._wanted.time):
            yield first, batch
            first += batch.num_rows

    def parse(self, piece: tuple[int, Any]) -> ParsedRows:
        """The rows of one record batch."""
        first, batch = piece
        wanted = self._wanted
        texts = dict(zip(wanted.texts, batch.columns[len(wanted.numbers) :], strict=False))
        times = None if wanted.time is None else batch.columns[-1]
        rows = ParsedRows(
            _matrix(batch.columns[: len(wanted.numbers)], batch.num_rows),
            texts,
            times,
            lambda at: self._head.place(first + at),
        )
        cell = lambda at, column: self._head.cell(first + at, column)  # noqa: E731
        return _without_infinity(rows, wanted.numbers, self._head.names, cell)


class _CsvReader:
    """Of CSV: blocks of text, each parsed by Arrow on its own."""

    def __init__(self, head: Head, wanted: _Columns, content: Iterable[bytes] | None) -> None:
        self._head, self._wanted, self._content = head, wanted, content
        self._names = [str(at) for at in range(len(head.names))]
        numbers = {str(at): pa.float64() for at in wanted.numbers}
        words = [*wanted.texts, *([] if wanted.time is None else [wanted.time])]
        types = numbers | {str(at): pa.string() for at in words}
        # Without a quote no value holds a newline, and Arrow need not look for the records' ends beforehand.
        self._quoted, self._plain = (
            pa_csv.ParseOptions(newlines_in_values=quoted, delimiter=head.file.separator)
            for quoted in (True, False)
        )
        # Arrow compares every cell with every spelling of a missing value, which takes as long as reading
        # numbers: all of them are looked for only from the first cell on that is neither number nor empty.
        self._missing = [""]
        self._convert = {
            "column_types": types,
            "include_columns": list(types),
            "strings_can_be_null": False,
            "decimal_point": head.file.decimal,
        }

    def pieces(self) -> Generator[TextBlock, None, None]:
        """Blocks of whole records."""
        yield from text_blocks(self._head, self._content or self._chunks())

    def parse(self, piece: TextBlock) -> ParsedRows:
        """The rows of one block. InputError for what is no text or no CSV."""
        wanted, count = self._wanted, len(self._wanted.numbers)
        if not piece.text.strip(b"\r\n"):
            return ParsedRows(np.empty((count, 0), np.float32), {}, None, _places(self._head, piece))
        table, faults, torn = self._table_of(piece)
        columns = [column.chunk(0) for column in table.columns]
        times = None if wanted.time is None else self._pointed(columns[-1])
        rows = ParsedRows(
            _matrix(columns[:count], table.num_rows),
            dict(zip(wanted.texts, columns[count:], strict=False)),
            times,
            _places(self._head, piece),
            faults,
            torn,
        )
        return _without_infinity(rows, wanted.numbers, self._head.names, self._cells_of(piece))

    def _chunks(self) -> Iterator[bytes]:
        """The file's bytes; the first are few, so that the first rows come early."""
        width = len(self._head.names) * _BYTES_A_CELL
        with self._head.file.open_bytes() as file:
            size = max(_FIRST_CHUNK, width)
            while chunk := file.read(size):
                yield chunk
                size = max(min(2 * size, _CHUNK), width)

    def _table(self, text: bytes, missing: Sequence[str]) -> Any:
        # One chunk whatever is in the block, in this thread: the pieces are what runs at once.
        read = pa_csv.ReadOptions(column_names=self._names, block_size=len(text) + 1, use_threads=False)
        convert = pa_csv.ConvertOptions(null_values=missing, **self._convert)
        parse = self._quoted if b'"' in text else self._plain
        return pa_csv.read_csv(pa.BufferReader(text), read, parse, convert)

    def _table_of(self, block: TextBlock) -> tuple[Any, dict[int, str], frozenset[int]]:
        """The block as a table, the faults of its rows, and which of these have another number of fields."""
        with contextlib.suppress(pa.ArrowInvalid):
            return self._table(block.text, self._missing), {}, frozenset()
        try:
            table = self._table(block.text, NULLS)
        except pa.ArrowInvalid as error:
            mended, faults, torn = self._mended(block, error)
        else:
            self._missing = list(NULLS)
            return table, {}, frozenset()
        try:
            return self._table(mended, NULLS), faults, torn
        except pa.ArrowInvalid as error:
            raise self._not_csv(block, error) from None

    def _not_csv(self, block: TextBlock, error: pa.ArrowInvalid) -> InputError:
        return InputError(f"{self._head.path}:{block.line}: cannot be read as CSV from here on ({error}).")

    def _pointed(self, times: Any) -> Any:
        if self._head.file.decimal == ".":
            return times
        import pyarrow.compute as pc

        return pc.replace_substring(times, ",", ".")

    def _mended(
        self, block: TextBlock, error: pa.ArrowInvalid
    ) -> tuple[bytes, dict[int, str], frozenset[int]]:
        """The block with the values of faulty rows left out; as `_table_of`."""
        head, width = self._head, len(self._head.names)
        numbers = {at: head.names[at] for at in self._wanted.numbers}
        spare = [*self._wanted.texts, *([] if self._wanted.time is None else [self._wanted.time])]
        faults: dict[int, str] = {}
        torn: set[int] = set()
        text = io.StringIO(newline="")
        # The writer quotes a line's end within a cell only if it has a letter of its own line's end.
        writer = csv.writer(text, delimiter=head.file.separator, lineterminator="\r\n")
        for row, (line, cells) in enumerate(_read(head, block)):
            fault = fault_of(cells, width, numbers, head.file.decimal)
            if fault is not None:
                faults[row] = f"{head.path}:{line}: {fault}"
                again = tuple(cell.strip() for cell in cells) == head.names
                if again:
                    faults[row] = f"{head.path}:{line}: the header again. Remove the line."
                if len(cells) != width:
                    torn.add(row)
                kept = {at: cells[at] for at in spare if at < len(cells) and not again}
                cells = [kept.get(at, "") for at in range(width)]  # noqa: PLW2901
            writer.writerow(cells)
        if not faults:
            raise self._not_csv(block, error)
        return text.getvalue().encode(), faults, frozenset(torn)

    def _cells_of(self, block: TextBlock) -> Callable[[int, int], str]:
        return lambda row, column: list(_read(self._head, block))[row][1][column]


def _read(head: Head, block: TextBlock) -> Iterator[tuple[int, list[str]]]:
    """The records of a block. InputError for bytes that are no UTF-8, and for what is no CSV."""
    try:
        yield from records(block, head.file.separator)
    except UnicodeDecodeError as error:
        line = block.line + block.text.count(b"\n", 0, error.start)
        raise InputError(
            f"{head.path}:{line}: not UTF-8. Save the file as UTF-8 text (in a spreadsheet: CSV UTF-8)."
        ) from None
    except csv.Error as error:
        raise InputError(f"{head.path}:{block.line}: not CSV ({error}). Is a quote left open?") from None


def _places(head: Head, block: TextBlock) -> Callable[[int], str]:
    @cache
    def lines() -> list[int]:
        return [line for line, _ in _read(head, block)]

    return lambda row: f"{head.path}:{lines()[row]}"


def _matrix(columns: list[Any], rows: int) -> NDArray[np.float32]:
    """(columns, rows); rounded from float64 once, as for the archive's files."""
    matrix = np.empty((len(columns), rows), np.float32)
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is told
        for row, column in zip(matrix, columns, strict=True):
            row[:] = as_numpy(column)
    return matrix


def _without_infinity(
    rows: ParsedRows, numbers: list[int], names: tuple[str, ...], cell: Callable[[int, int], str]
) -> ParsedRows:
    """The same rows; one with an infinite value is faulty."""
    if np.isfinite(rows.values).all():
        return rows
    infinite = np.isinf(rows.values)
    faults = dict(rows.faults)
    for row in np.flatnonzero(infinite.any(axis=0)).tolist():
        column = numbers[int(np.argmax(infinite[:, row]))]
        faults[row] = (
            f"{rows.place(row)}: column {names[column]!r} holds {cell(row, column)!r}, which is infinite or "
            "beyond the range of float32. Leave the cell empty if the value is missing."
        )
        rows.values[:, row] = np.nan
    if not infinite.any():
        return rows
    return replace(rows, faults=faults)

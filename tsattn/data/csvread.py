"""The rows of a CSV table as arrays, batch by batch, with every fault said by file and line."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from tsattn.data.columns import TableRoles
from tsattn.data.csvtext import NULLS, Head, cell_at, first_fault, line_of_row, open_quote
from tsattn.errors import InputError

_BLOCK_BYTES = 1 << 20
_BYTES_A_CELL = 64  # a block must hold a row; more than any number is long


@dataclass(frozen=True)
class Rows:
    """Some neighbouring rows of a table.

    first: the first row's number in the file, from 0. values: (value columns, rows) float32 in the
    order of `TableRoles.columns`, NaN where missing. ids, times, labels: Arrow arrays of strings, None
    where the table has no such column.
    """

    first: int
    values: NDArray[np.float32]
    ids: Any
    times: Any
    labels: Any

    def __len__(self) -> int:
        return self.values.shape[1]

    def slice(self, start: int, stop: int) -> Rows:
        """The rows start … stop − 1 of these, as far as there are that many; nothing is copied."""

        def cut(array: Any) -> Any:
            return None if array is None else array[start:stop]

        return replace(
            self,
            first=self.first + start,
            values=self.values[:, start:stop],
            ids=cut(self.ids),
            times=cut(self.times),
            labels=cut(self.labels),
        )


def read_rows(head: Head, roles: TableRoles) -> Iterator[Rows]:
    """The rows in their order. InputError for text or infinity in a value column and for malformed rows."""
    position = {name: str(at) for at, name in enumerate(head.names)}
    values = [position[column] for columns in roles.columns for column in columns]
    strings = {role: position[name] for role, name in roles.as_dict().items() if role != "layout"}
    first = 0
    for batch in _batches(head, values, sorted(set(strings.values()))):
        if batch.num_rows == 0:
            continue
        matrix = _matrix(batch, len(values))
        _refuse_infinity(head, first, matrix, values)
        texts = {role: batch.column(name) for role, name in strings.items()}
        yield Rows(first, matrix, texts.get("id"), texts.get("time"), texts.get("label"))
        first += batch.num_rows


def _batches(head: Head, numbers: list[str], strings: list[str]) -> Iterator[Any]:
    """Record batches whose columns are called by their position, numbers float64 and the rest as spelled."""
    types = {name: pa.float64() for name in numbers} | {name: pa.string() for name in strings}
    width = len(head.names)
    read = pa_csv.ReadOptions(
        column_names=[str(at) for at in range(width)],
        skip_rows_after_names=head.skip,
        block_size=max(_BLOCK_BYTES, width * _BYTES_A_CELL),
    )
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    convert = pa_csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=list(NULLS), strings_can_be_null=False
    )
    with head.path.open("rb") as raw:
        file = _CountsQuotes(raw)
        try:
            with pa_csv.open_csv(file, read, parse, convert) as reader:
                yield from reader
        except pa.ArrowInvalid as error:
            meaning = {int(name): head.names[int(name)] for name in numbers}
            raise InputError(
                open_quote(head.path)
                or first_fault(head.path, width, meaning)
                or f"{head.path}: cannot be read as CSV ({error})."
            ) from None
    if file.quotes % 2 and (fault := open_quote(head.path)):
        # pyarrow takes an open quote for one that is closed at the end, and swallows rows.
        raise InputError(fault)


def as_numpy(array: Any) -> NDArray[Any]:
    """(rows,) the numbers of an Arrow array; nulls, for float64 only, become NaN.

    Arrow's own to_numpy, fill_null and scalar import pandas, which takes half a second.
    """
    if array.null_count == 0:
        numbers: NDArray[Any] = np.from_dlpack(array)
        return numbers
    valid, data = array.buffers()
    stop = array.offset + len(array)
    present = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[array.offset : stop]
    return np.where(present, np.frombuffer(data, np.float64)[array.offset : stop], np.nan)


def _matrix(batch: Any, columns: int) -> NDArray[np.float32]:
    """(columns, rows) of the first `columns`; rounded from float64 once, as for the archive's files."""
    matrix = np.empty((columns, batch.num_rows), np.float32)
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is refused
        for row, column in zip(matrix, batch.columns, strict=False):
            row[:] = as_numpy(column)
    return matrix


def _refuse_infinity(head: Head, first: int, matrix: NDArray[np.float32], columns: list[str]) -> None:
    infinite = np.isinf(matrix)
    if not infinite.any():
        return
    row = int(np.flatnonzero(infinite.any(axis=0))[0])
    column = int(columns[int(np.argmax(infinite[:, row]))])
    text = cell_at(head.path, first + row, column)
    raise InputError(
        f"{head.path}:{line_of_row(head.path, first + row)}: column {head.names[column]!r} holds {text!r}, "
        "which is infinite or beyond the range of float32. Leave the cell empty if the value is missing."
    )


class _CountsQuotes(io.RawIOBase):
    """A file that counts the quotation marks that were read from it."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self.quotes = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the file."""
        data = self._raw.read(size)
        self.quotes += data.count(b'"')
        return data

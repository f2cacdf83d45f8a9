"""The rows of a table as arrays, batch by batch, whatever container it lies in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tsattn.data.csvdialect import COMPRESSIONS
from tsattn.errors import InputError

if TYPE_CHECKING:
    from tsattn.data.columns import TableRoles


class TableHead(ABC):
    """The beginning of a table, and the way to its rows and to places in it for messages."""

    path: Path
    """The file."""
    names: tuple[str, ...]
    """The columns' names; "" for one without."""

    @property
    def stem(self) -> str:
        """The file's name without its endings."""
        name = self.path.name
        for ending in (*COMPRESSIONS, self.path.with_suffix("").suffix, self.path.suffix):
            name = name.removesuffix(ending)
        return name

    @property
    @abstractmethod
    def text_columns(self) -> frozenset[str]:
        """Columns that hold values of which none is a number."""

    @abstractmethod
    def sample(self, column: str) -> list[str]:
        """The column's first cells as text."""

    @abstractmethod
    def batches(self, numbers: list[int], texts: list[int], time: int | None) -> Iterator[Any]:
        """Record batches with these columns in this order: numbers float64, texts as strings, time as
        strings, int64, float64 or timestamps in ns. InputError for text where a number belongs.
        """

    @abstractmethod
    def place(self, row: int) -> str:
        """Where row `row` (from 0) stands, as messages say it."""

    @abstractmethod
    def cell(self, row: int, column: int) -> str:
        """The text of one cell, for messages."""

    def fault(self) -> str | None:
        """A message on what is wrong with the file's form and not noticed by reading; None if nothing."""
        return None

    def remark(self) -> str | None:
        """What is unusual about the file's form, for people."""
        return None


@dataclass(frozen=True)
class Rows:
    """Some neighbouring rows of a table.

    first: the first row's number in the file, from 0. values: (value columns, rows) float32 in the
    order of `TableRoles.columns`, NaN where missing. ids, labels, groups: Arrow arrays of strings; times: one
    of strings, numbers or timestamps; None where the table has no such column.
    """

    first: int
    values: NDArray[np.float32]
    ids: Any
    times: Any
    labels: Any
    groups: Any = None

    def __len__(self) -> int:
        return int(self.values.shape[1])

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
            groups=cut(self.groups),
        )


def read_rows(head: TableHead, roles: TableRoles) -> Iterator[Rows]:
    """The rows in their order. InputError for text or infinity in a value column and for malformed rows."""
    position = {name: at for at, name in enumerate(head.names)}
    values = [position[column] for columns in roles.columns for column in columns]
    columns = {"id": roles.id, "label": roles.label, "group": roles.group}
    texts = {role: position[name] for role, name in columns.items() if name}
    time = None if roles.time is None else position[roles.time]
    first = 0
    for batch in head.batches(values, list(texts.values()), time):
        if batch.num_rows == 0:
            continue
        matrix = _matrix(batch, len(values))
        _refuse_infinity(head, first, matrix, values)
        rest = dict(zip(texts, batch.columns[len(values) :], strict=False))
        times = None if time is None else batch.columns[-1]
        yield Rows(first, matrix, rest.get("id"), times, rest.get("label"), rest.get("group"))
        first += batch.num_rows


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


def as_arrow(numbers: NDArray[Any], kind: Any) -> Any:
    """An Arrow array of type `kind` over the memory of `numbers`; pa.array would import pandas."""
    import pyarrow as pa

    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def _matrix(batch: Any, columns: int) -> NDArray[np.float32]:
    """(columns, rows) of the first `columns`; rounded from float64 once, as for the archive's files."""
    matrix = np.empty((columns, batch.num_rows), np.float32)
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is refused
        for row, column in zip(matrix, batch.columns, strict=False):
            row[:] = as_numpy(column)
    return matrix


def _refuse_infinity(head: TableHead, first: int, matrix: NDArray[np.float32], columns: list[int]) -> None:
    infinite = np.isinf(matrix)
    if not infinite.any():
        return
    row = int(np.flatnonzero(infinite.any(axis=0))[0])
    column = columns[int(np.argmax(infinite[:, row]))]
    raise InputError(
        f"{head.place(first + row)}: column {head.names[column]!r} holds {head.cell(first + row, column)!r}, "
        "which is infinite or beyond the range of float32. Leave the cell empty if the value is missing."
    )

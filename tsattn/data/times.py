"""The time column of a table as numbers that can be put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tsattn.data.arrowcalls import call, cast
from tsattn.data.rows import as_numpy
from tsattn.errors import InputError

_NUMBERS = (pa.int64(), pa.float64())  # whole first: float64 would round nanoseconds since 1970
_ZONES = ((pa.timestamp("ns"),), (pa.timestamp("ns", tz="UTC"),))
"""Timestamps without a time zone, and with one: side by side their order would be a guess."""
_EXAMPLE = "2024-05-01T12:30:00"


class TimeReader:
    """Reads one column: numbers, timestamps or timestamps with a time zone, whichever its beginning holds."""

    def __init__(self, column: str | None) -> None:
        self._column = column
        self._kinds: tuple[Any, ...] = ()

    def read(self, cells: Any, place: Callable[[int], str]) -> NDArray[Any]:
        """(rows,) numbers, nanoseconds for timestamps. InputError, with place, for a cell that is none.

        place: where the row of a cell, counted from the first of these, stands.
        """
        times = self._read(cells)
        if times is not None:
            return times
        at, fault = next(self.faults(cells), (0, f"column {self._column!r} holds times of several kinds."))
        raise InputError(f"{place(at)}: {fault}")

    def faults(self, cells: Any) -> Iterator[tuple[int, str]]:
        """Each cell that is no time, and what is wrong with it."""
        # One by one: the first cell says which kind the others have to be of.
        for at in range(len(cells)):
            if not self._fits(cells[at : at + 1]):
                found = cells[at].as_py()
                yield at, f"column {self._column!r} holds {found!r} where {self._expected(found)} belongs."

    def _fits(self, cell: Any) -> bool:
        """Whether one cell can stand among the others, of which not all are whole numbers."""
        if self._read(cell) is None:
            return False
        # 0x1F is read as a whole number and not as another
        return self._kinds != _NUMBERS or _cast_to_one(cell, _NUMBERS[1:]) is not None

    def _expected(self, found: object) -> str:
        if not self._kinds:
            return f"a number or a timestamp such as {_EXAMPLE}"
        if self._kinds == _NUMBERS:
            return "a number"
        if not isinstance(found, str) or _kinds_of(found) not in _ZONES:
            return f"a timestamp such as {_EXAMPLE}"
        if self._kinds == _ZONES[0]:
            return f"a timestamp without a time zone, such as {_EXAMPLE}, as in the rows above,"
        return f"a timestamp with its time zone, such as {_EXAMPLE}Z, as in the rows above,"

    def _read(self, cells: Any) -> NDArray[Any] | None:
        """None if a cell is neither number nor timestamp, or of another kind than those before."""
        if not pa.types.is_string(cells.type):
            return self._typed(cells)
        cells = call("utf8_trim_whitespace", cells)
        for kinds in (self._kinds,) if self._kinds else (_NUMBERS, *_ZONES):
            times = _cast_to_one(cells, kinds)
            if times is None:
                continue
            numbers = as_numpy(times.view(pa.int64()) if kinds in _ZONES else times)
            if not np.isfinite(numbers).all():
                return None
            self._kinds = kinds
            return numbers
        return None

    def _typed(self, cells: Any) -> NDArray[Any] | None:
        """Of a container whose columns have types: int64, float64 or timestamps in ns."""
        stamps = pa.types.is_timestamp(cells.type)
        self._kinds = _ZONES[cells.type.tz is not None] if stamps else _NUMBERS
        if cells.null_count:
            return None
        numbers = as_numpy(cells.view(pa.int64()) if stamps else cells)
        return numbers if np.isfinite(numbers).all() else None


def _cast_to_one(cells: Any, kinds: tuple[Any, ...]) -> Any | None:
    """The cells as the first of these types that all of them can be; None if there is none."""
    for kind in kinds:
        try:
            return cast(cells, kind)
        except pa.ArrowInvalid:
            continue
    return None


def _kinds_of(cell: str) -> tuple[Any, ...] | None:
    """What the text of one cell can be read as."""
    cells = call("utf8_trim_whitespace", pa.array([cell], pa.string()))
    return next((kinds for kinds in (_NUMBERS, *_ZONES) if _cast_to_one(cells, kinds) is not None), None)

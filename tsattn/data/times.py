"""The time column of a table as numbers that can be put in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tsattn.data.arrowcalls import call, cast
from tsattn.data.rows import TableHead, as_numpy
from tsattn.errors import InputError

_NUMBERS = (pa.int64(), pa.float64())  # whole first: float64 would round nanoseconds since 1970
_STAMPS = (pa.timestamp("ns"), pa.timestamp("ns", tz="UTC"))


class TimeReader:
    """Reads one column: numbers or timestamps, whichever its beginning holds."""

    def __init__(self, head: TableHead, column: str | None) -> None:
        self._head = head
        self._column = column
        self._kinds: tuple[Any, ...] = ()

    def read(self, cells: Any, first: int) -> NDArray[Any]:
        """(rows,) numbers, nanoseconds for timestamps. InputError, with place, for a cell that is none.

        first: number of the first cell's row in the file.
        """
        times = self._read(cells)
        if times is not None:
            return times
        at = next(i for i in range(len(cells)) if self._read(cells[i : i + 1]) is None)
        found = cells[at].as_py()
        raise InputError(
            f"{self._head.place(first + at)}: column {self._column!r} holds {found!r} "
            f"where {self._expected} belongs."
        )

    @property
    def _expected(self) -> str:
        if not self._kinds:
            return "a number or a timestamp such as 2024-05-01T12:30:00"
        return "a number" if self._kinds == _NUMBERS else "a timestamp such as 2024-05-01T12:30:00"

    def _read(self, cells: Any) -> NDArray[Any] | None:
        """None if a cell is neither number nor timestamp."""
        if not pa.types.is_string(cells.type):
            return self._typed(cells)
        cells = call("utf8_trim_whitespace", cells)
        for kinds in (self._kinds,) if self._kinds else (_NUMBERS, _STAMPS):
            for kind in kinds:
                try:
                    times = cast(cells, kind)
                except pa.ArrowInvalid:
                    continue
                numbers = as_numpy(times.view(pa.int64()) if kinds == _STAMPS else times)
                if not np.isfinite(numbers).all():
                    return None
                self._kinds = kinds
                return numbers
        return None

    def _typed(self, cells: Any) -> NDArray[Any] | None:
        """Of a container whose columns have types: int64, float64 or timestamps in ns."""
        stamps = pa.types.is_timestamp(cells.type)
        self._kinds = _STAMPS if stamps else _NUMBERS
        if cells.null_count:
            return None
        numbers = as_numpy(cells.view(pa.int64()) if stamps else cells)
        return numbers if np.isfinite(numbers).all() else None

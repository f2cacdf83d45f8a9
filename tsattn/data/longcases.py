"""The cases of a long table: rows with the same id, put together and ordered by time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tsattn.data.columns import TableRoles
from tsattn.data.csvread import Rows, as_numpy
from tsattn.data.csvtext import Head, line_of_row, open_quote
from tsattn.errors import InputError

_ENOUGH_CASES = 256  # all of one row: then the layout is not long


@dataclass
class _Open:
    """The case whose rows are being read. first: its first row's number in the file."""

    name: str
    label: str | None
    first: int
    values: list[NDArray[np.float32]] = field(default_factory=list)
    times: list[NDArray[Any]] = field(default_factory=list)


def cases_of_long_rows(
    head: Head, roles: TableRoles, rows: Iterable[Rows]
) -> Iterator[tuple[str, str | None, NDArray[np.float32]]]:
    """Id, label and values (channels, timepoints) of every case, in the order of the file.

    InputError, with file and line, for an id that is empty or comes back later, a label that changes
    within a case, a time that is repeated or is none, and a table in which each case is one row.
    """
    reader = _LongReader(head, roles)
    longest = 0
    for case in reader.cases(rows):
        longest = max(longest, case[2].shape[1])
        yield case
        if longest == 1 and len(reader.seen) >= _ENOUGH_CASES:
            break
    if longest == 1:
        raise InputError(
            f"{head.path}: read as long (a row a timepoint), every case has exactly one row. If a row is a "
            "whole case, type --layout wide and leave out --time."
        )


class _LongReader:
    def __init__(self, head: Head, roles: TableRoles) -> None:
        self.head = head
        self.roles = roles
        self.seen: set[str] = set()
        self._times = _Times()

    def cases(self, batches: Iterable[Rows]) -> Iterator[tuple[str, str | None, NDArray[np.float32]]]:
        open_case: _Open | None = None
        for rows in batches:
            starts = self._starts(rows)
            times = None if rows.times is None else self._read_times(rows)
            for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
                name, label = self._named(rows, start)
                if open_case is None or open_case.name != name:
                    if open_case is not None:
                        yield self._finish(open_case)
                    open_case = self._begin(name, label, rows.first + start)
                elif open_case.label != label:
                    raise self._label_changes(rows.first + start, open_case.label, label)
                open_case.values.append(rows.values[:, start:stop])
                if times is not None:
                    open_case.times.append(times[start:stop])
        if open_case is not None:
            yield self._finish(open_case)

    def _starts(self, rows: Rows) -> list[int]:
        """Where in these rows another case begins, 0 first. Refuses a label that changes in between."""
        changes = _changes(rows.ids)
        if rows.labels is not None:
            odd = np.flatnonzero(_changes(rows.labels) & ~changes)
            if odd.size:
                at = int(odd[0]) + 1
                raise self._label_changes(
                    rows.first + at, rows.labels[at - 1].as_py(), rows.labels[at].as_py()
                )
        return [0, *(np.flatnonzero(changes) + 1).tolist()]

    def _named(self, rows: Rows, at: int) -> tuple[str, str | None]:
        return rows.ids[at].as_py(), None if rows.labels is None else rows.labels[at].as_py()

    def _begin(self, name: str, label: str | None, row: int) -> _Open:
        if not name:
            raise InputError(
                f"{self._where(row)}: no id in column {self.roles.id!r}. Every row needs its case's id."
            )
        if name in self.seen:
            raise InputError(
                f"{self._where(row)}: case {name!r} comes back after another case. Rows of one case have to "
                f"stand together: sort the file by {self.roles.id!r}."
            )
        self.seen.add(name)
        return _Open(name, label, row)

    def _finish(self, case: _Open) -> tuple[str, str | None, NDArray[np.float32]]:
        values = case.values[0] if len(case.values) == 1 else np.concatenate(case.values, axis=1)
        if case.times:
            times = np.concatenate(case.times)
            if not (times[1:] > times[:-1]).all():
                order = np.argsort(times, kind="stable")
                same = np.flatnonzero(times[order[1:]] == times[order[:-1]])
                if same.size:
                    raise self._time_repeats(case, order, same)
                values = values[:, order]
        return case.name, case.label, values

    def _time_repeats(self, case: _Open, order: NDArray[np.int64], same: NDArray[np.int64]) -> InputError:
        second, first = min((int(order[i + 1]), int(order[i])) for i in same)
        return InputError(
            f"{self._where(case.first + second)}: case {case.name!r} has the time of this row "
            f"(column {self.roles.time!r}) in line {line_of_row(self.head.path, case.first + first)} too. "
            "Each timepoint of a case is one row."
        )

    def _label_changes(self, row: int, before: str | None, after: str | None) -> InputError:
        if "\n" in f"{before}{after}" and (fault := open_quote(self.head.path)):
            return InputError(fault)
        return InputError(
            f"{self._where(row)}: the label changes from {before!r} to {after!r} within a case "
            f"(columns {self.roles.label!r} and {self.roles.id!r}). A case has one label."
        )

    def _read_times(self, rows: Rows) -> NDArray[Any]:
        times = self._times.read(rows.times)
        if times is not None:
            return times
        at = next(i for i, cell in enumerate(rows.times) if self._times.read(pa.array([cell])) is None)
        raise InputError(
            f"{self._where(rows.first + at)}: column {self.roles.time!r} holds {rows.times[at].as_py()!r} "
            f"where {self._times.expected} belongs."
        )

    def _where(self, row: int) -> str:
        return f"{self.head.path}:{line_of_row(self.head.path, row)}"


class _Times:
    """Reads the time column: numbers or ISO timestamps, whichever its beginning holds."""

    _NUMBERS = (pa.int64(), pa.float64())  # whole first: float64 would round nanoseconds since 1970
    _STAMPS = (pa.timestamp("ns"), pa.timestamp("ns", tz="UTC"))

    def __init__(self) -> None:
        self._kinds: tuple[Any, ...] = ()

    @property
    def expected(self) -> str:
        """What the column has to hold, in words."""
        if not self._kinds:
            return "a number or a timestamp such as 2024-05-01T12:30:00"
        return "a number" if self._kinds == self._NUMBERS else "a timestamp such as 2024-05-01T12:30:00"

    def read(self, cells: Any) -> NDArray[Any] | None:
        """(rows,) numbers, nanoseconds for timestamps; None if a cell is neither or is not a time."""
        cells = pc.utf8_trim_whitespace(cells)
        for kinds in (self._kinds,) if self._kinds else (self._NUMBERS, self._STAMPS):
            for kind in kinds:
                try:
                    times = pc.cast(cells, kind)
                except pa.ArrowInvalid:
                    continue
                numbers = as_numpy(times.view(pa.int64()) if kinds == self._STAMPS else times)
                if not np.isfinite(numbers).all():
                    return None
                self._kinds = kinds
                return numbers
        return None


def _changes(cells: Any) -> NDArray[np.bool_]:
    """(rows − 1,): True where a cell differs from the one above it."""
    changed = pc.cast(pc.not_equal(cells[1:], cells[:-1]), pa.uint8())
    return as_numpy(changed).astype(bool)

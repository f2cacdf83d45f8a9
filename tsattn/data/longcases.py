"""The cases of a long table: rows with the same id, put together and ordered by time.

Cases that lie whole in one batch of rows are handled together, as arrays, so that a table of many
short cases costs no Python a case beside its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tsattn.data.arrowcalls import call, cast
from tsattn.data.columns import TableRoles
from tsattn.data.rows import Rows, TableHead, as_arrow, as_numpy
from tsattn.data.times import TimeReader
from tsattn.errors import InputError

_ENOUGH_CASES = 256  # all of one row: then the layout is not long


@dataclass(frozen=True)
class Group:
    """Some neighbouring cases, their rows one behind the other.

    names, labels: one a case, labels None where the table has none. lengths: (cases,) rows of each.
    values: (channels, rows) float32, in order of time within a case. first: first row's number in the file.
    """

    names: list[str]
    labels: list[str] | None
    lengths: NDArray[np.int64]
    values: NDArray[np.float32]
    first: int

    @property
    def points(self) -> NDArray[np.int64]:
        """(rows,) the timepoint of each row within its case."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.arange(self.values.shape[1]) - np.repeat(starts, self.lengths)

    def slice(self, start: int, stop: int) -> Group:
        """The cases start … stop − 1 of these, as far as there are that many; nothing is copied."""
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        stop = min(stop, len(self.names))
        return Group(
            self.names[start:stop],
            None if self.labels is None else self.labels[start:stop],
            self.lengths[start:stop],
            self.values[:, ends[start] : ends[stop]],
            self.first + int(ends[start]),
        )


@dataclass
class _Open:
    """The case whose rows are being read. first: its first row's number in the file."""

    name: str
    label: str | None
    first: int
    values: list[NDArray[np.float32]] = field(default_factory=list)
    times: list[NDArray[Any]] = field(default_factory=list)


def groups_of_long_rows(head: TableHead, roles: TableRoles, rows: Iterable[Rows]) -> Iterator[Group]:
    """Every case, in the order of the file; in the layout "file" all rows are one case, called like the file.

    InputError, with file and line, for an id that is empty or comes back later, a label that changes
    within a case, a time that is repeated or is none, and a table in which each case is one row.
    """
    reader = _LongReader(head, roles)
    longest = 0
    for group in reader.groups(rows):
        longest = max(longest, int(group.lengths.max()))
        if longest == 1 and len(reader.seen) >= _ENOUGH_CASES:
            break
        yield group
    if longest == 1 and roles.layout == "long":
        raise InputError(
            f"{head.path}: read as long (a row a timepoint), every case has exactly one row. If a row is a "
            "whole case, type --layout wide and leave out --time."
        )


class _LongReader:
    def __init__(self, head: TableHead, roles: TableRoles) -> None:
        self.head = head
        self.roles = roles
        self.seen: set[str] = set()
        self._times = TimeReader(roles.time)

    def groups(self, batches: Iterable[Rows]) -> Iterator[Group]:
        held: _Open | None = None
        for rows in batches:
            starts = self._starts(rows)
            times = None if rows.times is None else self._times.read(rows.times, self._place_in(rows))
            first_name, first_label = self._named(rows, 0)
            if held is not None and held.name == first_name:
                if held.label != first_label:
                    raise self._label_changes(rows.first, held.label, first_label)
                held = self._extended(held, rows, times, 0, starts[1] if len(starts) > 1 else len(rows))
                starts = starts[1:]
            if not len(starts):
                continue
            if held is not None:
                yield self._finish(held)
            if len(starts) > 1:
                yield self._whole_cases(rows, times, starts)
            last = int(starts[-1])
            name, label = self._named(rows, last)
            self._meet([name], rows.first, [last])
            held = self._extended(_Open(name, label, rows.first + last), rows, times, last, len(rows))
        if held is not None:
            yield self._finish(held)

    def _place_in(self, rows: Rows) -> Callable[[int], str]:
        return lambda at: self.head.place(rows.first + at)

    def _whole_cases(self, rows: Rows, times: NDArray[Any] | None, starts: NDArray[np.int64]) -> Group:
        """The cases that begin at all of `starts` but the last, which ends them."""
        begin, end = int(starts[0]), int(starts[-1])
        at = as_arrow(starts[:-1], pa.int64())
        names = rows.ids.take(at).to_pylist()
        self._meet(names, rows.first, starts.tolist())
        labels = None if rows.labels is None else rows.labels.take(at).to_pylist()
        group = Group(names, labels, np.diff(starts), rows.values[:, begin:end], rows.first + begin)
        return group if times is None else self._in_order(group, times[begin:end])

    @staticmethod
    def _extended(held: _Open, rows: Rows, times: NDArray[Any] | None, start: int, stop: int) -> _Open:
        held.values.append(rows.values[:, start:stop])
        if times is not None:
            held.times.append(times[start:stop])
        return held

    def _finish(self, case: _Open) -> Group:
        values = case.values[0] if len(case.values) == 1 else np.concatenate(case.values, axis=1)
        case.values.clear()
        labels = None if case.label is None else [case.label]
        group = Group([case.name], labels, np.array([values.shape[1]]), values, case.first)
        return self._in_order(group, np.concatenate(case.times)) if case.times else group

    def _starts(self, rows: Rows) -> NDArray[np.int64]:
        """Where in these rows another case begins, 0 first. Refuses a label that changes in between."""
        changes = np.zeros(len(rows) - 1, bool) if rows.ids is None else _changes(rows.ids)
        if rows.labels is not None:
            odd = np.flatnonzero(_changes(rows.labels) & ~changes)
            if odd.size:
                at = int(odd[0]) + 1
                raise self._label_changes(
                    rows.first + at, rows.labels[at - 1].as_py(), rows.labels[at].as_py()
                )
        return np.concatenate([[0], np.flatnonzero(changes) + 1])

    def _named(self, rows: Rows, at: int) -> tuple[str, str | None]:
        name = self.head.stem if rows.ids is None else rows.ids[at].as_py()
        return name, None if rows.labels is None else rows.labels[at].as_py()

    def _meet(self, names: list[str], first: int, starts: list[int]) -> None:
        """Remembers the names of new cases. Refuses an empty one and one that was there before."""
        before = len(self.seen)
        if "" not in names and self.seen.isdisjoint(names):
            self.seen.update(names)
            if len(self.seen) == before + len(names):
                return
            self.seen.difference_update(names)
        for name, start in zip(names, starts, strict=False):
            where = self.head.place(first + start)
            if not name:
                raise InputError(
                    f"{where}: no id in column {self.roles.id!r}. Every row needs its case's id."
                )
            if name in self.seen:
                wide = "" if self.roles.time else ". If a row is a whole case, type --layout wide"
                raise InputError(
                    f"{where}: case {name!r} comes back after another case. Rows of one case have to "
                    f"stand together: sort the file by {self.roles.id!r}{wide}."
                )
            self.seen.add(name)

    def _in_order(self, group: Group, times: NDArray[Any]) -> Group:
        """The rows of every case in order of time. Refuses a time that a case has twice."""
        case = np.repeat(np.arange(len(group.lengths)), group.lengths)
        same_case = case[1:] == case[:-1]
        if not (same_case & ~(times[1:] > times[:-1])).any():
            return group
        order = np.lexsort((times, case))
        same = np.flatnonzero((times[order[1:]] == times[order[:-1]]) & same_case)
        if same.size:
            second, first = min((int(order[i + 1]), int(order[i])) for i in same)
            raise InputError(
                f"{self.head.place(group.first + second)}: case {group.names[case[second]]!r} has the time "
                f"of this row (column {self.roles.time!r}) twice, first at "
                f"{self.head.place(group.first + first)}. Each timepoint of a case is one row."
            )
        return replace(group, values=group.values[:, order])

    def _label_changes(self, row: int, before: str | None, after: str | None) -> InputError:
        if "\n" in f"{before}{after}" and (fault := self.head.fault()):
            return InputError(fault)
        whole = f" and {self.roles.id!r}" if self.roles.id else "; the file is one case"
        return InputError(
            f"{self.head.place(row)}: the label changes from {before!r} to {after!r} within a case "
            f"(column{'s' if self.roles.id else ''} {self.roles.label!r}{whole}). A case has one label. To "
            "cut it into windows that take the label of most of their rows, train with --window LENGTH."
        )


def _changes(cells: Any) -> NDArray[np.bool_]:
    """(rows − 1,): True where a cell differs from the one above it."""
    changed = cast(call("not_equal", cells[1:], cells[:-1]), pa.uint8())
    return as_numpy(changed).astype(bool)

"""The cases of a long table for prediction: rows with one id, put together, a fault of a row its case's.

Like longcases.py, which reads whole tables for training and stops at the first fault; here a case with
a fault keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tsattn.data.arrowcalls import call, cast
from tsattn.data.caseblocks import CaseBlock, RowFacts
from tsattn.data.columns import TableRoles
from tsattn.data.parsedrows import ParsedRows
from tsattn.data.rows import TableHead, as_arrow, as_numpy
from tsattn.data.seenids import SeenIds
from tsattn.data.times import TimeReader
from tsattn.errors import InputError

_ENOUGH_CASES = 256  # all of one row: then the layout is not long


def long_blocks(
    head: TableHead, roles: TableRoles, keep: Sequence[int], rows: Iterable[ParsedRows]
) -> Iterator[CaseBlock]:
    """Every case, in the order of the file; in the layout "file" all rows are one, called like the file.

    keep: positions of columns whose text in a case's first row is carried along. InputError, with its
    place, for an id that comes back, and for a table in which each case is one row.
    """
    reader = _Reader(head, roles, keep)
    for block in reader.blocks(rows):
        if reader.longest == 1 and reader.seen.count >= _ENOUGH_CASES:
            break
        yield block
    if reader.longest == 1 and roles.layout == "long":
        raise InputError(
            f"{head.path}: read as long (a row a timepoint), every case has exactly one row. If a row is a "
            "whole case, type --layout wide and leave out --time."
        )


@dataclass(frozen=True)
class _Part:
    """Rows of neighbouring cases. ids: Arrow strings, None in the layout "file"; kept: columns of text."""

    values: NDArray[np.float32]
    times: NDArray[Any] | None
    ids: Any
    kept: tuple[Any, ...]
    faults: dict[int, str]
    places: list[tuple[int, ParsedRows, int]]  # (first row here, rows it comes from, its row there)

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def place(self, row: int) -> str:
        """Where a row stands."""
        first, rows, there = next(entry for entry in reversed(self.places) if entry[0] <= row)
        return rows.place(there + row - first)

    def cut(self, start: int, stop: int) -> _Part:
        return _Part(
            self.values[:, start:stop],
            None if self.times is None else self.times[start:stop],
            None if self.ids is None else self.ids[start:stop],
            tuple(column[start:stop] for column in self.kept),
            {row - start: fault for row, fault in self.faults.items() if start <= row < stop},
            [
                (max(first - start, 0), rows, there + max(start - first, 0))
                for (first, rows, there), end in zip(self.places, self._ends(), strict=True)
                if first < stop and end > start
            ],
        )

    def _ends(self) -> list[int]:
        return [*(first for first, _, _ in self.places[1:]), len(self)]


def _joined(parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    firsts = np.cumsum([0, *map(len, parts)]).tolist()
    joined = list(zip(firsts, parts, strict=False))
    return _Part(
        np.concatenate([part.values for part in parts], axis=1),
        None
        if parts[0].times is None
        else np.concatenate([part.times for part in parts if part.times is not None]),
        None if parts[0].ids is None else pa.concat_arrays([part.ids for part in parts]),
        tuple(
            pa.concat_arrays(list(columns)) for columns in zip(*(part.kept for part in parts), strict=True)
        ),
        {first + row: fault for first, part in joined for row, fault in part.faults.items()},
        [(first + at, rows, there) for first, part in joined for at, rows, there in part.places],
    )


class _Reader:
    def __init__(self, head: TableHead, roles: TableRoles, keep: Sequence[int]) -> None:
        self.seen = SeenIds()
        self.longest = 0
        self._head, self._roles, self._keep = head, roles, keep
        self._id = None if roles.id is None else head.names.index(roles.id)
        self._times = TimeReader(roles.time)

    def blocks(self, pieces: Iterable[ParsedRows]) -> Iterator[CaseBlock]:
        held: list[_Part] = []  # rows of the case that is being read
        for rows in pieces:
            if not len(rows):
                continue
            part = self._part(rows, held[-1].ids if held else None)
            starts = _starts(part.ids, held[-1] if held else None)
            if held and starts.size == 0:
                held.append(part)
                continue
            last = int(starts[-1])
            if held or last:
                yield from self._whole(_joined([*held, part.cut(0, last)] if last else held))
            held = [part.cut(last, len(part))]
        if held:
            yield from self._whole(_joined(held))

    def _whole(self, part: _Part) -> Iterator[CaseBlock]:
        """The cases of `part`, up to one that was there before, which is refused."""
        starts = _starts(part.ids)
        names = [self._head.stem] if part.ids is None else _taken(part.ids, starts)
        named = [(name, row) for name, row in zip(names, starts.tolist(), strict=True) if name]
        again = self.seen.meet([name for name, _ in named])
        if again is None:
            yield self._block(part, starts, names)
            return
        name, row = named[again]
        if row:
            yield from self._whole(part.cut(0, row))
        wide = "" if self._roles.time else " If a row is a whole case, type --layout wide."
        raise InputError(
            f"{part.place(row)}: case {name!r} comes back after another case. Rows of one case have to "
            f"stand together: sort the file by {self._roles.id!r}, or type --sort.{wide}"
        )

    def _part(self, rows: ParsedRows, before: Any) -> _Part:
        times, faults = None, dict(rows.faults)
        if rows.times is not None:
            times, wrong = self._read_times(rows)
            faults = wrong | faults
        return _Part(
            rows.values,
            times,
            None if self._id is None else _of_neighbours(rows.texts[self._id], rows.torn, before),
            tuple(rows.texts[at] for at in self._keep),
            faults,
            [(0, rows, 0)],
        )

    def _read_times(self, rows: ParsedRows) -> tuple[NDArray[Any], dict[int, str]]:
        """Numbers, 0 for what is no time, and the faults."""
        try:
            return self._times.read(rows.times, rows.place), {}
        except InputError:
            wrong = dict(self._times.faults(rows.times))
        good = np.array([at for at in range(len(rows)) if at not in wrong], np.int64)
        times = np.zeros(len(rows), np.float64)
        if good.size:
            read = self._times.read(call("take", rows.times, as_arrow(good, pa.int64())), rows.place)
            times = np.zeros(len(rows), read.dtype)
            times[good] = read
        return times, {at: f"{rows.place(at)}: {fault}" for at, fault in wrong.items()}

    def _block(self, part: _Part, starts: NDArray[np.int64], names: list[str]) -> CaseBlock:
        """The whole cases of `part`, which begin at `starts`."""
        counts = np.diff(starts, append=len(part))
        self.longest = max(self.longest, int(counts.max()))
        case = np.repeat(np.arange(len(starts)), counts)
        faults = {int(case[row]): fault for row, fault in sorted(part.faults.items(), reverse=True)}
        faults = self._nameless(names, part, starts) | faults
        values = part.values
        if part.times is not None:
            order, twice = self._in_order(part.times, case, names, part)
            values, faults = values if order is None else values[:, order], twice | faults
        return CaseBlock(
            values=values,
            lengths=_observed(values, starts, counts, case),
            rows=RowFacts(
                ids=names,
                kept=tuple(_taken(column, starts) for column in part.kept),
                faults=faults,
                count=len(names),
            ),
            starts=starts,
        )

    def _nameless(self, names: list[str], part: _Part, starts: NDArray[np.int64]) -> dict[int, str]:
        if "" not in names:
            return {}
        said = f"no id in column {self._roles.id!r}. Every row needs its case's id."
        return {i: f"{part.place(int(starts[i]))}: {said}" for i, name in enumerate(names) if not name}

    def _in_order(
        self, times: NDArray[Any], case: NDArray[np.int64], names: list[str], part: _Part
    ) -> tuple[NDArray[np.int64] | None, dict[int, str]]:
        """The rows of every case in order of time, None if they are; a time that a case has twice."""
        same_case = case[1:] == case[:-1]
        if not (same_case & ~(times[1:] > times[:-1])).any():
            return None, {}
        order = np.lexsort((times, case))
        twice = np.flatnonzero((times[order[1:]] == times[order[:-1]]) & same_case)
        faults: dict[int, str] = {}
        pairs = sorted(sorted((int(order[at]), int(order[at + 1])), reverse=True) for at in twice)
        for second, first in pairs:
            if (where := int(case[first])) in faults:
                continue
            faults[where] = (
                f"{part.place(second)}: case {names[where]!r} has the time of this row (column "
                f"{self._roles.time!r}) twice, first at {part.place(first)}. Each timepoint of a case is "
                "one row."
            )
        return order, faults


def _taken(texts: Any, rows: NDArray[np.int64]) -> list[str]:
    found: list[str] = call("take", texts, as_arrow(rows, pa.int64())).to_pylist()
    return found


def _of_neighbours(ids: Any, torn: Set[int], before: Any) -> Any:
    """The ids, that of a torn row from the row above it where no neighbour has it.

    Where a row has too few or too many fields, what stands in the id's place may be anything.
    """
    if not torn:
        return ids
    names: list[str] = ids.to_pylist()
    last = None if before is None else before[-1].as_py()
    for row in sorted(torn):
        above = names[row - 1] if row else last
        below = next((names[at] for at in range(row + 1, len(names)) if at not in torn), None)
        if names[row] not in (above, below):
            names[row] = above if above is not None else below or names[row]
    return pa.StringArray.from_buffers(
        len(names),
        pa.py_buffer(np.cumsum([0, *(len(name.encode()) for name in names)], dtype=np.int32)),
        pa.py_buffer("".join(names).encode()),
    )


def _starts(ids: Any, before: _Part | None = None) -> NDArray[np.int64]:
    """Where another case begins; 0 too, unless the first row goes on with the last case of `before`."""
    if ids is None:
        return np.zeros(1 if before is None else 0, np.int64)
    changed = as_numpy(cast(call("not_equal", ids[1:], ids[:-1]), pa.uint8())).astype(bool)
    goes_on = before is not None and before.ids[-1].as_py() == ids[0].as_py()
    return np.flatnonzero(np.concatenate([[not goes_on], changed]))


def _observed(
    values: NDArray[np.float32], starts: NDArray[np.int64], counts: NDArray[np.int64], case: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(cases,) the timepoints up to each case's last observed one."""
    missing = np.isnan(values).all(axis=0)
    if not missing.any():
        return counts
    point = np.where(missing, -1, np.arange(values.shape[1]) - starts[case])
    return np.maximum.reduceat(point, starts) + 1

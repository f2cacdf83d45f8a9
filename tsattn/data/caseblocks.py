"""CaseBlock: some neighbouring cases on their way to a model, with what belongs to their rows.

Unlike a Collection it may hold cases that are known to be wrong, and its cases need not be padded: the
values of a long table lie one case behind the other, so that one long case costs its neighbours nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.data.columns import TableRoles
from tsattn.data.parsedrows import ParsedRows

_SHORT = 256  # timepoints: such cases are copied all at once, which takes their memory twice


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """What is written beside a model's answers, a row each.

    ids: names; None where no column holds them and the rows are counted later. kept: for each column that
    is carried through, its texts. faults: why a row has no answer, by its place here. inputs: cases of
    the source that the rows are of, where that is another number.
    """

    ids: list[str] | None
    kept: tuple[list[str], ...] = ()
    faults: Mapping[int, str] = field(default_factory=dict)
    count: int
    inputs: int | None = None

    @property
    def cases(self) -> int:
        """Cases of the source that the rows are of."""
        return self.count if self.inputs is None else self.inputs

    def slice(self, start: int, stop: int) -> RowFacts:
        """The rows start … stop − 1."""
        return RowFacts(
            ids=None if self.ids is None else self.ids[start:stop],
            kept=tuple(texts[start:stop] for texts in self.kept),
            faults={at - start: fault for at, fault in self.faults.items() if start <= at < stop},
            count=stop - start,
        )

    def counted_from(self, first: int) -> RowFacts:
        """With ids, which are numbers from `first` on where there were none."""
        return self if self.ids is not None else replace(self, ids=_numbers(first, self.count))


@dataclass(frozen=True, eq=False, kw_only=True)
class CaseBlock:
    """Cases in the order of their source.

    values: (cases, channels, timepoints) float32 padded with NaN, or, where `starts` is given, (channels,
    timepoints of all) with case i at starts[i] … starts[i] + lengths[i]. lengths: (cases,) timepoints up to
    the last observed one. rows: what is written. owner: (cases,) the row each case answers for; None where
    case i is row i.
    """

    values: NDArray[np.float32]
    lengths: NDArray[np.int64]
    rows: RowFacts
    starts: NDArray[np.int64] | None = None
    owner: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def channels(self) -> int:
        """How many channels the cases have."""
        return self.values.shape[1 if self.starts is None else 0]

    def good(self) -> NDArray[np.int64]:
        """Places of the cases that a model can be asked about."""
        if self.owner is not None or not self.rows.faults:
            return np.arange(len(self))
        return np.array([at for at in range(len(self)) if at not in self.rows.faults], np.int64)

    def fill(self, out: NDArray[np.float32], places: NDArray[np.int64]) -> None:
        """Copies the cases at `places` into `out` (len(places), channels, timepoints), padded with NaN."""
        longest = out.shape[2]
        if self.starts is None:
            width = min(longest, self.values.shape[2])
            out[:, :, :width] = self.values[places, :, :width]
            out[:, :, width:] = np.nan
            return
        starts, lengths = self.starts[places], self.lengths[places]
        if longest <= _SHORT and self.values.size:
            points = np.arange(longest)
            inside = points < lengths[:, None]  # (places, timepoints)
            columns = np.where(inside, starts[:, None] + points, 0)
            out[:] = np.where(inside, self.values[:, columns], np.float32(np.nan)).transpose(1, 0, 2)
            return
        for case, start, length in zip(out, starts.tolist(), lengths.tolist(), strict=True):
            case[:, :length] = self.values[:, start : start + length]
            case[:, length:] = np.nan

    def pieces(self, cases: int, first: int = 0) -> Iterator[CaseBlock]:
        """The same, from case `first` on, in blocks of up to `cases`; where case i is row i."""
        assert self.owner is None
        for start in range(first, len(self), cases):
            stop = min(start + cases, len(self))
            yield CaseBlock(
                values=self.values if self.starts is not None else self.values[start:stop],
                lengths=self.lengths[start:stop],
                rows=self.rows.slice(start, stop),
                starts=None if self.starts is None else self.starts[start:stop],
            )

    def collection(self, channels: tuple[str, ...]) -> Collection:
        """The cases padded, those with a fault too, as missing; ids may be empty."""
        out = np.full(
            (len(self), self.channels, max(int(self.lengths.max(initial=1)), 1)), np.nan, np.float32
        )
        good = self.good()
        kept = out[good]
        self.fill(kept, good)
        out[good] = kept
        return Collection(out, tuple(self.rows.ids or [""] * len(self)), channels)


def of_collection(cases: Collection, rows: RowFacts | None = None) -> CaseBlock:
    """The cases of a Collection; rows: what is written of them, their ids if not given."""
    facts = rows or RowFacts(ids=list(cases.ids), count=len(cases))
    return CaseBlock(values=cases.values, lengths=cases.lengths, rows=facts)


def wide_block(rows: ParsedRows, roles: TableRoles, keep: Sequence[int], id_at: int | None) -> CaseBlock:
    """The cases of a wide table's rows. keep, id_at: positions of columns in the table."""
    count = len(rows)
    shape = (len(roles.channels), len(roles.columns[0]))
    values = np.ascontiguousarray(rows.values.T).reshape(count, *shape)
    facts = RowFacts(
        ids=None if id_at is None else rows.texts[id_at].to_pylist() if count else [],
        kept=tuple(rows.texts[at].to_pylist() if count else [] for at in keep),
        faults=rows.faults,
        count=count,
    )
    return CaseBlock(values=values, lengths=observed_lengths(values), rows=facts)


def observed_lengths(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """(cases,) timepoints up to the last at which a channel of (cases, channels, timepoints) has a value."""
    longest = values.shape[2]
    if longest and not np.isnan(values[:, 0, -1]).any():
        return np.full(len(values), longest, np.int64)
    seen: NDArray[np.bool_] = np.logical_not(np.isnan(values).all(axis=1))
    last = longest - np.argmax(seen[:, ::-1], axis=1) if longest else np.zeros(len(values), np.int64)
    return np.where(seen.any(axis=1), last, 0).astype(np.int64)


def numbered(blocks: Generator[CaseBlock, None, None]) -> Generator[CaseBlock, None, None]:
    """The blocks, their rows counted from 0 where they have no ids."""
    first = 0
    with closing(blocks):
        for block in blocks:
            yield replace(block, rows=block.rows.counted_from(first))
            first += block.rows.count


def _numbers(first: int, count: int) -> list[str]:
    return [str(first + at) for at in range(count)]

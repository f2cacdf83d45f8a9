"""Batches of similar length, formed within a window of neighbouring cases, so that padding is little.

Answers come back batch by batch, and a window gives its rows when all of it is answered: so the order of
the input is kept, and no more than a few windows are in memory.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tsattn.data.caseblocks import CaseBlock, RowFacts

LOOK_AHEAD = 16
"""Batches that a window holds at most."""
_WINDOW_BYTES = 1 << 26


@dataclass(frozen=True)
class Size:
    """How large a batch may be. cases: at most; pairs: of timepoints, a case's length squared, at most."""

    cases: int
    pairs: int | None = None

    def cuts(self, lengths: NDArray[np.int64]) -> list[int]:
        """Where batches begin and the last one ends, of cases with these lengths, the shortest first."""
        if self.pairs is None or not len(lengths):
            return [*range(0, max(len(lengths), 1), self.cases), len(lengths)]
        cuts = [0]
        while (at := cuts[-1]) < len(lengths):
            count = min(self.cases, len(lengths) - at)
            while count > 1 and count * (pairs := int(lengths[at + count - 1]) ** 2) > self.pairs:
                count = min(count - 1, max(self.pairs // pairs, 1))
            cuts.append(at + count)
        return cuts


FASTEST = {"CPUExecutionProvider": Size(128, 1 << 18)}
"""By provider, from `benchmarks/predict.py --choose`: what a core computes then stays in its cache."""
ELSEWHERE = Size(64)


@dataclass(frozen=True)
class Answers:
    """Rows that can be written. probabilities: (rows, classes), without meaning for rows with a fault."""

    rows: RowFacts
    probabilities: NDArray[np.float32]


class Window:
    """Some neighbouring blocks, and the answers that have come."""

    def __init__(self, blocks: list[CaseBlock], classes: int) -> None:
        self.blocks = blocks
        self._starts = np.cumsum([0, *map(len, blocks)])
        self._answers = np.zeros((int(self._starts[-1]), classes), np.float32)
        self._waiting = 0

    def batches(self, size: Size) -> list[Batch]:
        """All the cases, in batches of up to `size`, shortest first; at least one batch, maybe of none."""
        places = np.concatenate([s + b.good() for s, b in zip(self._starts, self.blocks, strict=False)])
        lengths = np.concatenate([block.lengths for block in self.blocks])[places]
        if lengths.size and (lengths != lengths[0]).any():
            order = np.argsort(lengths, kind="stable")
            places, lengths = places[order], lengths[order]
        cuts = size.cuts(lengths)
        self._waiting = len(cuts) - 1
        return [Batch(self, places[start:stop], lengths[start:stop]) for start, stop in pairwise(cuts)]

    def answer(self, batch: Batch, probabilities: NDArray[np.float32]) -> bool:
        """Takes the answers of one batch; True when the last has come."""
        self._answers[batch.places] = probabilities
        self._waiting -= 1
        return self._waiting == 0

    def rows(self) -> Generator[Answers, None, None]:
        """What is written, block by block."""
        for start, block in zip(self._starts.tolist(), self.blocks, strict=False):
            answers = self._answers[start : start + len(block)]
            if block.owner is not None:  # a recording's answer is the mean of its windows'
                sums = np.zeros((block.rows.count, answers.shape[1]), np.float64)
                np.add.at(sums, block.owner, answers)
                counts = np.bincount(block.owner, minlength=block.rows.count)
                answers = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
            yield Answers(block.rows, answers)

    def values(self, places: NDArray[np.int64], longest: int) -> NDArray[np.float32]:
        """(places, channels, longest) of the cases at `places`, padded with NaN."""
        out = np.empty((len(places), self.blocks[0].channels, longest), np.float32)
        owner = np.searchsorted(self._starts, places, side="right") - 1
        if len(places) and (owner == owner[0]).all():
            self.blocks[owner[0]].fill(out, places - self._starts[owner[0]])
            return out
        for number in np.unique(owner):
            chosen = np.flatnonzero(owner == number)
            part = out if len(chosen) == len(places) else np.empty((len(chosen), *out.shape[1:]), np.float32)
            self.blocks[number].fill(part, places[chosen] - self._starts[number])
            out[chosen] = part
        return out


@dataclass(frozen=True, eq=False)
class Batch:
    """Cases that a model is asked about at once. places: in the window; lengths: their timepoints."""

    window: Window
    places: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def values(self) -> NDArray[np.float32]:
        """(cases, channels, the longest's timepoints), padded with NaN."""
        return self.window.values(self.places, max(int(self.lengths.max(initial=1)), 1))


def batches_of(
    blocks: Iterable[CaseBlock], size: Size, classes: int, callers: int
) -> Generator[Batch, None, None]:
    """The cases of all blocks in batches; the first windows are small, so that the first rows come early."""
    held: list[CaseBlock] = []
    cases = memory = 0
    most = 1
    for block in blocks:
        held.append(block)
        cases += len(block)
        memory += 4 * block.channels * int(block.lengths.sum())
        if cases >= most or memory >= _WINDOW_BYTES:
            yield from Window(held, classes).batches(size)
            held, cases, memory = [], 0, 0
            most = min(max(2 * most, callers * size.cases), LOOK_AHEAD * size.cases)
    if held:
        yield from Window(held, classes).batches(size)

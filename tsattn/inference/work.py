"""The stages between files and rows, each fed by the one before it through a queue of bounded length.

Parsing and inference share as many threads as there are cores, so whichever is behind gets them; a model
that is not asked by several threads at once has a thread of its own.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.data.caseblocks import CaseBlock, RowFacts
from tsattn.data.preparation import Preparation, prepare_cases
from tsattn.errors import InputError
from tsattn.inference.batching import Answers, Batch, Size, batches_of
from tsattn.inference.concurrency import in_order
from tsattn.inference.inputs import Reading, Workers, blocks_of
from tsattn.inference.outside import Outside, count_outside
from tsattn.inference.predictor import Predictor

Per = Literal["recording", "window"]
_MOST_WORKERS = 8
_RECORDINGS_A_BATCH = 16
"""A recording may hold any number of windows, so fewer recordings are cut at once."""


@dataclass(frozen=True)
class Answered:
    """A window of which all is answered. ends: input rows up to the end of each file read so far."""

    answers: list[Answers]
    outside: Outside
    ends: list[int]


@dataclass(kw_only=True)
class Progress:
    """How far the rows that were written go.

    rows: of the input, a case each. written: of the output. files: input rows up to the end of each file
    of which all is written.
    """

    rows: int = 0
    written: int = 0
    skipped: int = 0
    marked: int = 0
    outside: Outside = field(default_factory=Outside)
    files: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, state: dict[str, Any] | None) -> Progress:
        """From what `state` gave; the beginning for None. InputError if it is of another tsattn."""
        if state is None:
            return cls()
        try:
            done = cls(**{**state, "outside": Outside(**state["outside"])})
            if min(done.rows, done.written, done.skipped, done.marked, *done.files) >= 0:
                return done
        except (KeyError, TypeError):
            pass
        raise InputError(
            "What was begun is of another tsattn. Remove the file .OUT.part.json beside the output OUT to "
            "begin again."
        )

    def state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    def add(self, window: Answered, *, marked: bool) -> None:
        """The rows of a window have been written, those with a fault too if `marked`."""
        for answers in window.answers:
            faults = len(answers.rows.faults)
            self.rows += answers.rows.cases
            self.written += answers.rows.count - (0 if marked else faults)
            self.marked += faults if marked else 0
            self.skipped += 0 if marked else faults
        self.outside = self.outside + window.outside
        self.files = [end for end in window.ends if end <= self.rows]


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that turns files into answers. fail: a row with a fault is an error. threads: all cores if None."""

    predictor: Predictor
    reading: Reading
    size: Size
    per: Per
    fail: bool
    threads: int | None

    def windows(
        self, files: Sequence[Path], stdin: BinaryIO | None, done: Progress
    ) -> Generator[Answered, None, None]:
        """The answers for all rows of `files` that are not `done`, a window of them at a time."""
        callers: int = getattr(self.predictor, "callers", 1)
        ends = list(done.files)
        with (
            _pools(callers, self.threads) as (workers, asking),
            closing(self._blocks(files, stdin, done.rows, ends, workers)) as blocks,
            closing(self._prepared(blocks, workers)) as prepared,
            closing(batches_of(prepared, self.size, len(self._card.classes), callers)) as batches,
            closing(in_order(self._ask, batches, 2 * callers, asking)) as answered,
        ):
            outside = Outside()
            for batch, (probabilities, beyond) in answered:
                outside = outside + beyond
                if batch.window.answer(batch, probabilities):
                    yield Answered(list(batch.window.rows()), outside, list(ends))
                    outside = Outside()

    @property
    def _card(self) -> ModelCard:
        return self.predictor.card

    def _ask(self, batch: Batch) -> tuple[NDArray[np.float32], Outside]:
        values = batch.values()
        return self.predictor.probabilities(values), count_outside(values, batch.lengths, self._card)

    def _blocks(
        self, files: Sequence[Path], stdin: BinaryIO | None, done: int, ends: list[int], workers: Workers
    ) -> Generator[CaseBlock, None, None]:
        """Blocks of at most a batch, from the input row `done` on; the ends of files are added to `ends`."""
        total = ends[-1] if ends else 0
        for path in files[len(ends) :]:
            with closing(blocks_of(path, self.reading, self._card, workers, stdin)) as blocks:
                for block in blocks:
                    if self.fail and block.rows.faults:
                        raise InputError(
                            f"{block.rows.faults[min(block.rows.faults)]} To go on without such rows, type "
                            "--on-error skip or --on-error mark."
                        )
                    yield from block.pieces(self.size.cases, max(done - total, 0))
                    total += len(block)
            ends.append(total)

    def _prepared(
        self, blocks: Generator[CaseBlock, None, None], workers: Workers
    ) -> Generator[CaseBlock, None, None]:
        """What the model is asked about: the cases, or what training made of recordings."""
        how = Preparation.from_dict(self._card.preparation)
        if not how:
            yield from blocks
            return
        most = self.size.cases
        some = -(-most // _RECORDINGS_A_BATCH) if how.window is not None else most
        pieces = (piece for block in blocks for piece in block.pieces(some))

        def prepare(piece: CaseBlock) -> CaseBlock:
            return _cut(piece, how, self._card.channels, self.per)

        with closing(in_order(prepare, pieces, workers.depth, workers.pool)) as cut:
            for _, block in cut:
                yield block


def _cut(block: CaseBlock, how: Preparation, channels: tuple[str, ...], per: Per) -> CaseBlock:
    """The windows of a block of recordings, or the recordings resampled."""
    good = block.good()
    cut = prepare_cases(block.collection(channels).take(good), how)
    owner = good[cut.recording]
    rows = block.rows
    if per == "window" and how.window is not None:
        return _rows_of_windows(block, cut.cases.ids, cut.cases.values, cut.cases.lengths, owner)
    return CaseBlock(values=cut.cases.values, lengths=cut.cases.lengths, rows=rows, owner=owner)


def _rows_of_windows(
    block: CaseBlock,
    ids: tuple[str, ...],
    values: NDArray[np.float32],
    lengths: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> CaseBlock:
    """A row a window, and one for each recording with a fault, in the order of the recordings."""
    names, faults = block.rows.ids, block.rows.faults
    assert names is not None
    # (recording, its window or -1 for one with a fault), in the order in which they are written
    entries = sorted([*((row, at) for at, row in enumerate(owner.tolist())), *((row, -1) for row in faults)])
    recordings = [row for row, _ in entries]
    windows = np.array([at for _, at in entries], np.int64)
    rows = RowFacts(
        ids=[names[row] if at < 0 else ids[at] for row, at in entries],
        kept=tuple([texts[row] for row in recordings] for texts in block.rows.kept),
        faults={place: faults[row] for place, (row, at) in enumerate(entries) if at < 0},
        count=len(entries),
        inputs=len(block),
    )
    asked = np.flatnonzero(windows >= 0)
    order = windows[asked]
    return CaseBlock(values=values[order], lengths=lengths[order], rows=rows, owner=asked)


@contextmanager
def _pools(callers: int, threads: int | None) -> Iterator[tuple[Workers, Executor]]:
    """The threads that parse, and those that ask the model, which may be the same."""
    count = min(threads or _cores(), _MOST_WORKERS)
    with ThreadPoolExecutor(count, thread_name_prefix="work") as pool:
        workers = Workers(pool=pool, depth=count + 1)
        if callers >= count:
            yield workers, pool
        else:
            with ThreadPoolExecutor(callers, thread_name_prefix="ask") as asking:
                yield workers, asking


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""The three loops of training_loops.py in turns, for one set, batch size and number of threads."""

from __future__ import annotations

import tsattn  # noqa: F401 - before torch, which reads once how OpenMP's threads wait

# isort: split
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from training_loops import CPU, HEADS, LAYERS, Published, Turn, config_of, pair

from tsattn.config import ModelConfig
from tsattn.data.collection import Collection

TSATTN, BARE, PUBLISHED = "tsattn", "bare", "published"
LEAST_ROUNDS, TURNS_OF_A_CELL = 3, 15
FEW_STEPS = 3
"""A turn of no more counts its first step, too."""
PILOT = 4
"""Cases of the untimed step that tells how long others take."""
SQUARES = 12
"""Matrices of timepoints × timepoints, a case and head, at the peak of a published step of three layers."""


@dataclass(kw_only=True)
class Cell:
    """One set, batch size and number of threads.

    rounds: a turn by loop, of those that took one. published_batch: cases a step of the published loop,
    fewer than `batch` where that many would be too much for memory or patience.
    """

    data: str
    batch: int
    threads: int
    published_batch: int
    rounds: list[dict[str, Turn]] = field(default_factory=list)

    def rate(self, loop: str) -> float:
        """Samples a second: the median over rounds; NaN without any."""
        return _median(turns[loop].rate for turns in self.rounds if loop in turns)

    def ratio(self, loop: str, beside: str) -> float:
        """How many times as fast as the other: the median over the rounds in which both took a turn."""
        return _median(one.rate / other.rate for one, other in self._both(loop, beside))

    def cpu_ratio(self, loop: str, beside: str) -> float:
        """The same by the work of CPUs for a sample, which other programs on the machine lengthen less."""
        both = self._both(loop, beside)
        return _median((other.cpu / other.samples) / (one.cpu / one.samples) for one, other in both)

    def added(self, cpu: bool = False) -> tuple[float, float]:
        """What tsattn adds to a bare step: seconds, and as a share of its own step; medians over rounds.

        cpu: of the work of CPUs instead of the clock.
        """
        both = [
            (ours.cpu / ours.steps, bare.cpu / bare.steps) if cpu else (ours.step, bare.step)
            for ours, bare in self._both(TSATTN, BARE)
        ]
        return _median(ours - bare for ours, bare in both), _median(1 - bare / ours for ours, bare in both)

    def _both(self, loop: str, beside: str) -> list[tuple[Turn, Turn]]:
        return [(turns[loop], turns[beside]) for turns in self.rounds if loop in turns and beside in turns]


def _median(figures: Iterable[float]) -> float:
    found = list(figures)
    return statistics.median(found) if found else float("nan")


def measure(
    name: str, collection: Collection, model: ModelConfig, batch: int, threads: int, patience: float
) -> Cell:
    """The three loops in turns for about `patience` seconds.

    At least LEAST_ROUNDS rounds, unless they take twice as long.
    """
    torch.set_num_threads(threads)
    slot = patience / TURNS_OF_A_CELL
    step = estimated(batch, slot, lambda size: _pilot_of_ours(collection, model, size))
    steps, per_epoch = max(1, round(slot / step)), -(-len(collection) // batch)
    whole = steps >= per_epoch
    trainer, bare = pair(
        collection if whole else first(collection, steps * batch),
        model,
        config_of(round(steps / per_epoch) if whole else 1, batch),
        CPU,
    )
    case = (
        estimated(PILOT, slot, lambda size: _pilot_of_theirs(Published(collection, model, size), size))
        / PILOT
    )
    theirs = affordable(batch, int(collection.lengths.max()), case, patience)
    published = Published(collection, model, theirs)
    skip = 0 if steps <= FEW_STEPS else 1
    turns: dict[str, Callable[[], Turn]] = {
        TSATTN: lambda: trainer.turn(skip, keep=not trainer.batches),
        BARE: lambda: bare.turn(trainer.batches, skip),
        PUBLISHED: lambda: published.turn(max(1, round(slot / (case * theirs)))),
    }
    if skip:  # where turns are short, the first of each only warms up
        for turn in turns.values():
            turn()
    cell = Cell(data=name, batch=batch, threads=threads, published_batch=theirs)
    take_turns(cell, turns, patience)
    return cell


def take_turns(cell: Cell, turns: dict[str, Callable[[], Turn]], patience: float) -> None:
    """Rounds of turns, tsattn and the bare loop going first by turns.

    The published loop sits out where its turn would end after `patience`.
    """
    begin = time.perf_counter()

    def passed() -> float:
        return time.perf_counter() - begin

    while passed() < patience or (len(cell.rounds) < LEAST_ROUNDS and passed() < 2 * patience):
        pair_first = [TSATTN, BARE] if len(cell.rounds) % 2 == 0 else [BARE, TSATTN]
        took = {loop: turns[loop]() for loop in pair_first}
        earlier = [before[PUBLISHED].seconds for before in cell.rounds if PUBLISHED in before]
        if not earlier or passed() + earlier[-1] < patience:
            took[PUBLISHED] = turns[PUBLISHED]()
        cell.rounds.append(took)


def first(collection: Collection, cases: int) -> Collection:
    """That many of the cases, drawn once, so that all classes and lengths are among them."""
    drawn = np.random.default_rng(0).permutation(len(collection))[:cases]
    return collection.take(drawn)


def estimated(batch: int, slot: float, pilot: Callable[[int], float]) -> float:
    """Seconds of a step of `batch` cases: from a few cases, from that many where it is quick."""
    few = min(batch, PILOT)
    seconds = pilot(few) * batch / few
    return pilot(batch) if seconds < slot else seconds


def affordable(batch: int, longest: int, case: float, patience: float) -> int:
    """Cases a published step may have: `batch`, halved until it fits in memory and in `patience` seconds.

    case: seconds that one case takes.
    """
    room = 0.8 * available_memory()
    while batch > 1 and (batch * case > patience or batch * squares(longest) > room):
        batch //= 2
    return batch


def squares(longest: int) -> float:
    """Bytes that attention of one case takes at the peak of a published step."""
    return SQUARES * LAYERS / 3 * HEADS * longest**2 * 4.0


def available_memory() -> float:
    """Bytes that Linux can still give; infinite where that cannot be known."""
    if sys.platform != "linux":
        return float("inf")
    lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def _pilot_of_ours(collection: Collection, model: ModelConfig, size: int) -> float:
    trainer, _ = pair(first(collection, size), model, config_of(2, size), CPU)
    return trainer.turn(skip=1).step


def _pilot_of_theirs(published: Published, size: int) -> float:
    batch = published.collate(published.cases[:size])
    begin = time.perf_counter()
    published.step(*batch)
    return time.perf_counter() - begin

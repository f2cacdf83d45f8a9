"""Does a model file say what the run says? torch against ONNX Runtime on the run's own real series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.inference.predictor import Predictor

TOLERANCE = 1e-4
BATCH_SIZES = (1, 3, 64)
MOST_PAIRS = 64 * 512**2
"""Of timepoints in a batch, a head: attention over all of them is then 64 MiB a head."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One batch put through both engines. difference: the largest between two probabilities."""

    what: str
    cases: int
    length: int
    difference: float
    changed: int


@dataclass(frozen=True, kw_only=True)
class Parity:
    """All comparisons of one model file."""

    comparisons: tuple[Comparison, ...]

    @property
    def difference(self) -> float:
        """The largest difference between two probabilities of the same case and class; NaN if one is."""
        return float(np.max([one.difference for one in self.comparisons]))  # max() would pass over NaN

    @property
    def changed(self) -> int:
        """Cases whose most probable class is another one."""
        return sum(one.changed for one in self.comparisons)

    @property
    def cases(self) -> int:
        """Cases compared, each counted as often as it was."""
        return sum(one.cases for one in self.comparisons)

    @property
    def holds(self) -> bool:
        """No probability differs by more than TOLERANCE and no class changed; NaN never holds."""
        return self.difference <= TOLERANCE and self.changed == 0


def compare(ours: Predictor, exported: Predictor, series: Collection) -> Parity:
    """Puts batches of real series through both predictors.

    Batches of 1, 3 and 64 cases, the last of fewer above 512 timepoints; cut to the shortest length, at
    the longest and at one longer than any seen; as they are, with a fifth of the values and some whole
    timepoints missing, and with a case in which nothing is observed.
    """
    return Parity(comparisons=tuple(_compare(ours, exported, *trial) for trial in trials(series)))


def trials(series: Collection) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The batches of `compare`: what each is for, and its values (cases, channels, length)."""
    generator = np.random.default_rng(0)
    lengths = series.lengths
    longest = max(int(lengths.max()), 1)
    shortest = max(int(lengths.min()), 1)
    for most in BATCH_SIZES:
        for what, length in (
            ("shortest", shortest),
            ("longest", longest),
            ("unseen", longest + longest // 8 + 1),
        ):
            size = min(most, max(MOST_PAIRS // length**2, 4))
            batch = _stretch(series.values[generator.integers(len(series), size=size)], length)
            yield what, batch
            gaps = batch.copy()
            gaps[generator.random(gaps.shape) < 0.2] = np.nan
            gaps[np.broadcast_to(generator.random((size, 1, length)) < 0.1, gaps.shape)] = np.nan
            gaps[generator.integers(size)] = np.nan
            yield f"{what}, gaps and an empty case", gaps


def _stretch(values: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """Real values cut to `length` timepoints, or gone through again from the start to reach it."""
    repeats = -(-length // values.shape[2])
    return np.ascontiguousarray(np.tile(values, (1, 1, repeats))[:, :, :length])


def _compare(ours: Predictor, exported: Predictor, what: str, values: NDArray[np.float32]) -> Comparison:
    expected, found = ours.probabilities(values), exported.probabilities(values)
    return Comparison(
        what=what,
        cases=len(values),
        length=values.shape[2],
        difference=float(np.abs(expected - found).max()),
        changed=int((expected.argmax(1) != found.argmax(1)).sum()),
    )

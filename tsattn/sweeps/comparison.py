"""Comparison: everything that a table of results says, as figures; renderers make text of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tsattn.sweeps.cell import METRICS

LOWER_IS_BETTER = frozenset({"log_loss", "calibration_error"})
TITLES = dict(
    zip(METRICS, ("Accuracy", "Balanced accuracy", "Macro F1", "Log loss", "Calibration error"), strict=True)
)

Kind = Literal["transformer", "baseline", "published"]
Standing = Literal["honest", "best-on-test", "unknown", "cross-validated"]
"""How far figures speak of new cases: TEST chose nothing, it chose the epoch, nobody says; or the figures are
of parts of TRAIN, each held out in turn, and TEST was not read."""


@dataclass(frozen=True)
class Score:
    """A method on a data set: one value a run, in [0, 1] or nats."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the runs."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation, None of one run."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def error(self) -> float:
        """Standard error of the mean; of one run it is not known and counts as 0."""
        return (self.deviation or 0.0) / math.sqrt(len(self.values))


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """What the cells say of a data set; length in timepoints, None where none says it."""

    name: str
    train_cases: int | None
    test_cases: int | None
    length: int | None
    channels: int | None
    classes: int | None


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Medians over cells, None where none knows: parameters, seconds, test cases a second, bytes."""

    parameters: float | None = None
    train_seconds: float | None = None
    cases_per_second: float | None = None
    peak_memory_bytes: float | None = None


@dataclass(frozen=True, kw_only=True)
class Method:
    """A column of the table.

    label: its name, unique. standing: of its protocol. protocol: in words. source: of what was published.
    ranked: whether it takes part in best, means, ranks and tests.
    """

    label: str
    kind: Kind
    standing: Standing
    protocol: str
    source: str = ""
    costs: Costs = Costs()
    ranked: bool


@dataclass(frozen=True, kw_only=True)
class Against:
    """A method against the reference over the common data sets.

    wins, ties, losses: of the method; a tie is a difference within its standard error. difference: mean,
    positive where the method is better. p: of the two-sided Wilcoxon signed-rank test; p_holm: corrected
    for all methods that are compared with the reference.
    """

    wins: int
    ties: int
    losses: int
    difference: float
    p: float
    p_holm: float


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A cell that came to nothing, and what it said."""

    data: str
    method: str
    seed: int
    message: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The figures of a table.

    metric: one of METRICS. folds: of TRAIN, whose held-out cases the ranked figures are of; 0 where they are
    of TEST. methods: ranked ones first, by mean rank. scores: by (data set, method), absent
    where there is no cell. common: data sets on which every ranked method has a score; means, ranks, costs
    and `against` are over these alone, and empty where there is none. best: by data set, the ranked methods
    that are best or not told apart from the best. friedman: p over all ranked methods, None where there
    are too few. says: what the statistics allow to say. notes: what a reader must know.
    """

    metric: str
    folds: int = 0
    data: tuple[DataSet, ...]
    methods: tuple[Method, ...]
    scores: Mapping[tuple[str, str], Score]
    common: tuple[str, ...]
    best: Mapping[str, frozenset[str]]
    means: Mapping[str, float]
    ranks: Mapping[str, float]
    reference: str
    against: Mapping[str, Against]
    friedman: float | None
    says: tuple[str, ...]
    notes: tuple[str, ...]
    failures: tuple[Failure, ...]

    @property
    def lower_is_better(self) -> bool:
        """Of the metric."""
        return self.metric in LOWER_IS_BETTER

    @property
    def judged(self) -> str:
        """Which cases the ranked figures are of, in words after the metric."""
        return "cross-validated on TRAIN" if self.folds else "on TEST"

    @property
    def ranked(self) -> tuple[Method, ...]:
        """Methods that take part in means, ranks and tests."""
        return tuple(method for method in self.methods if method.ranked)


def apart(one: Score, other: Score) -> bool:
    """Whether two means differ by their difference's standard error or more, and at all."""
    difference = abs(one.mean - other.mean)
    return difference > 1e-12 and difference >= math.hypot(one.error, other.error)

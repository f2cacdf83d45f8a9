"""Classifiers of aeon by a word, on the same splits as the transformers and with aeon's own defaults.

What aeon takes decides what is done to series first: missing values are interpolated over time, and where
a classifier wants one length, series are padded with zeros to the longest of TRAIN and longer ones of TEST
are cut there (`as_aeon_wants`). The words of a cell's protocol say when either was done. Padding and not
resampling, because the length of a series tells too (docs/log.md).
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.errors import InputError

SHORTEST = 9
"""Timepoints that the convolutions of ROCKET and its kin need."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A classifier of aeon.

    build: (seed, threads) -> an aeon classifier. unequal: whether it takes series of several lengths.
    probabilities: whether it gives any; without them there is no log loss. seeded: whether a seed changes
    anything; if not, a sweep has one cell of it. cost: of a timepoint of a case, as `plan` counts; pairs:
    of a pair of timepoints of a pair of cases.
    """

    word: str
    summary: str
    build: Callable[[int, int], Any]
    unequal: bool = False
    probabilities: bool = False
    seeded: bool = True
    cost: float = 1.0
    pairs: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a fitted baseline says of cases that it was not fitted on.

    probabilities: (cases, classes); 0 and 1 where it gives none. how: name and version. done: to series
    first, in words.
    """

    probabilities: NDArray[np.float64]
    train_seconds: float
    inference_seconds: float
    how: str
    done: tuple[str, ...]


def _rocket(seed: int, threads: int) -> Any:
    from aeon.classification.convolution_based import RocketClassifier

    return RocketClassifier(random_state=seed, n_jobs=threads)


def _minirocket(seed: int, threads: int) -> Any:
    from aeon.classification.convolution_based import MiniRocketClassifier

    return MiniRocketClassifier(random_state=seed, n_jobs=threads)


def _multirocket_hydra(seed: int, threads: int) -> Any:
    from aeon.classification.convolution_based import MultiRocketHydraClassifier

    return MultiRocketHydraClassifier(random_state=seed, n_jobs=threads)


def _hydra(seed: int, threads: int) -> Any:
    from aeon.classification.convolution_based import HydraClassifier

    return HydraClassifier(random_state=seed, n_jobs=threads)


def _quant(seed: int, threads: int) -> Any:
    from aeon.classification.interval_based import QUANTClassifier

    return QUANTClassifier(random_state=seed)


def _nearest(seed: int, threads: int) -> Any:
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    return KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1, n_jobs=threads)


BASELINES = {
    one.word: one
    for one in (
        Baseline(word="rocket", summary="10,000 random convolutions and a ridge", build=_rocket),
        Baseline(word="minirocket", summary="fixed convolutions and a ridge", build=_minirocket, cost=0.1),
        Baseline(
            word="multirocket-hydra",
            summary="MultiRocket and Hydra features and a ridge",
            build=_multirocket_hydra,
            cost=0.6,
        ),
        Baseline(word="hydra", summary="competing convolutions and a ridge", build=_hydra, cost=0.3),
        Baseline(
            word="quant",
            summary="quantiles of intervals and extremely random trees",
            build=_quant,
            probabilities=True,
            cost=0.1,
        ),
        Baseline(
            word="1nn-dtw",
            summary="the nearest training case by dynamic time warping without a window",
            build=_nearest,
            unequal=True,
            seeded=False,
            cost=0.0,
            pairs=2e-5,
        ),
    )
}


def find_baseline(word: str) -> Baseline:
    """The baseline of that word. InputError with the near word for another."""
    if (found := BASELINES.get(word)) is not None:
        return found
    near = difflib.get_close_matches(word, BASELINES, n=1, cutoff=0.4)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise InputError(f"--baseline {word}: there is no such one.{hint} There are: {', '.join(BASELINES)}.")


def judge(baseline: Baseline, train: Collection, test: Collection, seed: int, threads: int) -> Judged:
    """Fits on all of `train`, which has a label a case, and answers every case of `test`."""
    import aeon

    assert train.labels is not None
    fit_on, answer, done = as_aeon_wants(baseline, train, test)
    classifier = baseline.build(seed, threads)
    begun = time.perf_counter()
    classifier.fit(fit_on, np.array(train.labels))
    fitted = time.perf_counter()
    raw = classifier.predict_proba(answer) if baseline.probabilities else classifier.predict(answer)
    ended = time.perf_counter()
    known = [str(label) for label in classifier.classes_]
    columns = [train.classes.index(label) for label in known]
    probabilities = np.zeros((len(test), len(train.classes)))
    if baseline.probabilities:
        probabilities[:, columns] = raw
    else:
        probabilities[np.arange(len(test)), [train.classes.index(str(label)) for label in raw]] = 1
    return Judged(
        probabilities=probabilities,
        train_seconds=fitted - begun,
        inference_seconds=ended - fitted,
        how=f"{baseline.word} of aeon {aeon.__version__} as it comes",
        done=tuple(done),
    )


Series = NDArray[np.float64] | list[NDArray[np.float64]]


def as_aeon_wants(
    baseline: Baseline, train: Collection, test: Collection
) -> tuple[Series, Series, list[str]]:
    """Series of TRAIN and of TEST for aeon, and in words what was done to them.

    (cases, channels, timepoints), or a (channels, timepoints) each where lengths differ and may.
    """
    done = []
    lengths = np.concatenate([train.lengths, test.lengths])
    gaps = any(_has_gaps(part) for part in (train, test))
    if gaps:
        done.append("missing values interpolated over time")
        middle = np.array([_mean(train, channel) for channel in range(len(train.channels))])
        train, test = (without_gaps(part, middle) for part in (train, test))
        lengths = np.concatenate([train.lengths, test.lengths])
    equal = lengths.min() == lengths.max()
    wanted = int(train.lengths.max())
    if baseline.unequal:
        if not equal:
            return *(_each(part) for part in (train, test)), done  # type: ignore[return-value]
    elif not equal or wanted < SHORTEST:
        points = max(wanted, SHORTEST)
        cut = ", longer ones cut" if lengths.max() > points else ""
        done.append(f"series padded with zeros to {points} timepoints{cut}")
        train, test = (_padded(part, points) for part in (train, test))
    return *(_whole(part) for part in (train, test)), done  # type: ignore[return-value]


def without_gaps(cases: Collection, middle: NDArray[np.float64]) -> Collection:
    """With every missing value within a case's length interpolated in its channel; ends take the nearest.

    middle: (channels,) what a channel takes in a case that has no value of it. A case without any value is
    one timepoint of these.
    """
    values = cases.values.copy()
    for case, length in enumerate(np.maximum(cases.lengths, 1)):
        points = np.arange(length)
        for channel, series in enumerate(values[case]):
            there = np.flatnonzero(~np.isnan(series[:length]))
            if len(there) == 0:
                series[:length] = middle[channel]
            elif len(there) < length:
                series[:length] = np.interp(points, there, series[there])
    return replace(cases, values=values)


def _padded(cases: Collection, points: int) -> Collection:
    """Every case at that length: zeros after its end, or cut. There are no gaps before."""
    values = np.zeros((*cases.values.shape[:2], points), np.float32)
    there = cases.values[:, :, :points]
    values[:, :, : there.shape[2]] = np.nan_to_num(there, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return replace(cases, values=values)


def _has_gaps(cases: Collection) -> bool:
    lengths = cases.lengths
    within = np.arange(cases.values.shape[2]) < np.maximum(lengths, 1)[:, None]
    return bool((np.isnan(cases.values) & within[:, None, :]).any())


def _mean(cases: Collection, channel: int) -> float:
    values = cases.values[:, channel]
    return 0.0 if np.isnan(values).all() else float(np.nanmean(values))


def _each(cases: Collection) -> list[NDArray[np.float64]]:
    lengths: Sequence[int] = cases.lengths.tolist()
    return [case[:, :length].astype(np.float64) for case, length in zip(cases.values, lengths, strict=True)]


def _whole(cases: Collection) -> NDArray[np.float64]:
    return cases.values[:, :, : int(cases.lengths.max())].astype(np.float64)

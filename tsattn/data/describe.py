"""What a Collection holds, in numbers: sizes, gaps, classes, and cases that are there twice.

Pure numpy. Cases are compared by what was observed in them, up to the last observed timepoint, so
that padding plays no part. Not covered: cases that are nearly alike.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection

GAP = 1.5
"""A step in time longer than this many periods is a gap."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a Collection holds.

    shortest, median, longest: timepoints of a case up to its last observed one. missing: share, 0 to 1,
    of the values within these lengths that were not observed. classes: label → cases, in the order of
    the Collection, labels without a case too; None without labels. constant: channels with one value
    only. empty: channels in which nothing is observed. unobserved: ids of cases in which nothing is.
    twins: ids of cases that are the same, group by group, in the order of the Collection.
    contradictions: those of `twins` whose labels differ. infinite: values that are infinite.
    """

    cases: int
    channels: tuple[str, ...]
    shortest: int
    median: float
    longest: int
    missing: float
    classes: dict[str, int] | None
    constant: tuple[str, ...]
    empty: tuple[str, ...]
    unobserved: tuple[str, ...]
    twins: tuple[tuple[str, ...], ...]
    contradictions: tuple[tuple[str, ...], ...]
    infinite: int

    @property
    def duplicates(self) -> int:
        """Cases that repeat an earlier one."""
        return sum(len(group) - 1 for group in self.twins)

    @property
    def imbalance(self) -> float | None:
        """Cases of the largest class over those of the smallest that has any; None without labels."""
        counts = [count for count in (self.classes or {}).values() if count]
        return max(counts) / min(counts) if counts else None


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The steps of a time column.

    period: median difference of neighbouring times within a case, in seconds if `seconds`, else in the
    column's own unit. gaps: steps longer than 1.5 periods; gap_cases: cases that have one. even: True
    if all steps are the same to a thousandth of the period.
    """

    period: float
    seconds: bool
    gaps: int
    gap_cases: int
    even: bool


def describe(collection: Collection) -> Facts:
    """The facts of `collection`, which has at least one case."""
    values = collection.values
    absent = np.isnan(values)
    present = np.logical_not(absent.all(axis=1))  # (cases, timepoints)
    lengths = _lengths(present)
    within = int(lengths.sum()) * values.shape[1]
    observed = values.size - int(absent.sum())
    low, high = np.fmin.reduce(values, axis=(0, 2)), np.fmax.reduce(values, axis=(0, 2))  # (channels,)
    groups = _twins(collection, lengths)
    labels = collection.labels
    return Facts(
        cases=len(collection),
        channels=collection.channels,
        shortest=int(lengths.min()),
        median=float(np.median(lengths)),
        longest=int(lengths.max()),
        missing=1 - observed / within if within else 0.0,
        classes=None if labels is None else _counts(labels, collection.classes),
        constant=_named(collection.channels, low == high),
        empty=_named(collection.channels, np.isnan(low)),
        unobserved=_named(collection.ids, lengths == 0),
        twins=tuple(tuple(collection.ids[i] for i in group) for group in groups),
        contradictions=tuple(
            tuple(collection.ids[i] for i in group)
            for group in groups
            if labels is not None and len({labels[i] for i in group}) > 1
        ),
        infinite=int(np.isinf(values).sum()) if np.isinf([low, high]).any() else 0,
    )


def shared_cases(train: Collection, test: Collection) -> tuple[tuple[str, str], ...]:
    """(id in train, id in test) of every case of `test` that stands in `train` too, whatever its label.

    Cases in which nothing is observed are left out: they say nothing. None are shared where the numbers
    of channels differ.
    """
    if len(train.channels) != len(test.channels):
        return ()
    lengths, test_lengths = train.lengths, test.lengths
    marks, test_marks = _marks(train, lengths), _marks(test, test_lengths)
    both = set(marks).intersection(test_marks)
    known: dict[bytes, int] = {}
    for i, mark in enumerate(marks):
        if mark in both and lengths[i]:
            known.setdefault(_key(train, i, lengths), i)
    keys = {i: _key(test, i, test_lengths) for i, mark in enumerate(test_marks) if mark in both}
    return tuple((train.ids[known[key]], test.ids[i]) for i, key in keys.items() if key in known)


def sampling(
    times: NDArray[np.float64], cases: NDArray[np.int64], *, seconds: bool = False
) -> Sampling | None:
    """The steps of `times` (rows,), where `cases` (rows,) numbers the case of a row, ascending.

    Times of a case are put in order first. None where no case has two rows.
    """
    order = np.lexsort((times, cases))
    steps = np.diff(times[order])
    case = cases[order]
    inside = case[1:] == case[:-1]
    steps, case = steps[inside], case[1:][inside]
    if not len(steps):
        return None
    period = float(np.median(steps))
    wide = steps > GAP * period
    return Sampling(
        period=period,
        seconds=seconds,
        gaps=int(wide.sum()),
        gap_cases=len(np.unique(case[wide])),
        even=bool((np.abs(steps - period) <= 1e-3 * abs(period)).all()),
    )


def _lengths(present: NDArray[np.bool_]) -> NDArray[np.int64]:
    last = present.shape[1] - np.argmax(present[:, ::-1], axis=1)
    return np.where(present.any(axis=1), last, 0).astype(np.int64)


def _counts(labels: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    found = Counter(labels)
    return {label: found[label] for label in classes}


def _named(names: Sequence[str], which: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(names[i] for i in np.flatnonzero(which))


def _twins(collection: Collection, lengths: NDArray[np.int64]) -> list[list[int]]:
    """Indices of cases with the same content, two or more a group; not those that hold nothing."""
    marks = _marks(collection, lengths)
    count = Counter(marks)
    same: dict[bytes, list[int]] = defaultdict(list)
    for i, mark in enumerate(marks):
        if count[mark] > 1 and lengths[i]:
            same[_key(collection, i, lengths)].append(i)
    return [group for group in same.values() if len(group) > 1]


def _marks(collection: Collection, lengths: NDArray[np.int64]) -> list[tuple[int, bytes]]:
    """Length and three timepoints of each case: cases that differ here need no closer look."""
    cases = np.arange(len(collection))
    points = (np.zeros_like(lengths), lengths // 2, np.maximum(lengths - 1, 0))
    shown = _plain(np.stack([collection.values[cases, :, point] for point in points], axis=1))
    whole = shown.reshape(len(shown), -1).view(np.dtype(f"V{shown[0].nbytes}"))  # (cases, 1), its bytes
    return list(zip(lengths.tolist(), whole.ravel().tolist(), strict=True))


def _key(collection: Collection, case: int, lengths: NDArray[np.int64]) -> bytes:
    """A hash of all that a case holds."""
    return hashlib.blake2b(
        _plain(collection.values[case, :, : lengths[case]]).tobytes(), digest_size=16
    ).digest()


def _plain(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """A copy in which zero and NaN have one pattern of bits each."""
    plain = values + np.float32(0)  # -0 becomes 0
    plain[np.isnan(plain)] = np.nan
    return plain

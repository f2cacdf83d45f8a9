"""What is done to recordings before they are cases: resampling to one length, cutting into windows.

Training notes it in the model card, and evaluation and prediction do the same to what they read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How recordings become cases; nothing is done where all are None.

    resample: timepoints that every recording is brought to, by linear interpolation.
    window, stride: timepoints of a window and between the starts of two; both or neither.
    """

    resample: int | None = None
    window: int | None = None
    stride: int | None = None

    def as_dict(self) -> dict[str, int]:
        """What is set, for the model card."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Preparation:
        """Reads `as_dict`'s values. InputError for others."""
        numbers = {name: value for name, value in values.items() if isinstance(value, int) and value > 0}
        if numbers != values or not set(values) <= {"resample", "window", "stride"}:
            raise InputError(
                f"preparation {dict(values)}: expected resample, window and stride, each a whole number."
            )
        return cls(**numbers)

    def __bool__(self) -> bool:
        return bool(self.as_dict())


@dataclass(frozen=True, eq=False)
class PreparedCases:
    """Cases that were made of recordings.

    recording: (cases,) place of each case's recording. start: (cases,) its first timepoint there.
    """

    cases: Collection
    recording: NDArray[np.int64]
    start: NDArray[np.int64]


def parse_preparation(
    resample: str | None, window: int | None, stride: int | None, train: Collection
) -> Preparation:
    """The preparation that options name; 'mean-length' is the mean length of the training recordings.

    stride: half a window where only the window is given. InputError for options that make no sense.
    """
    if stride is not None and window is None:
        raise InputError(f"--stride {stride} says how far windows are apart: type --window LENGTH too.")
    points = None
    if resample == "mean-length":
        points = max(1, round(float(train.lengths.mean())))
    elif resample is not None:
        if not resample.isdecimal() or int(resample) < 1:
            raise InputError(
                f"--resample {resample}: expected a number of timepoints, at least 1, or mean-length."
            )
        points = int(resample)
    return Preparation(
        resample=points,
        window=window,
        stride=None if window is None else stride or max(1, window // 2),
    )


def prepare_cases(recordings: Collection, how: Preparation) -> PreparedCases:
    """Resamples, then cuts into windows, as far as `how` says.

    Where labels hold for timepoints a window takes the one that covers most of it, and a window
    without any is left out.
    """
    if how.resample is not None:
        recordings = resample(recordings, how.resample)
    if how.window is None or how.stride is None:
        count = len(recordings)
        return PreparedCases(recordings, np.arange(count), np.zeros(count, np.int64))
    return cut_windows(recordings, how.window, how.stride)


def with_labels_of_recordings(recordings: Collection) -> Collection:
    """With a label a recording where every recording has one from its beginning to its end, else as given."""
    codes = recordings.timepoint_labels
    if codes is None or not len(recordings):
        return recordings
    first, lengths = codes[:, :1], recordings.lengths
    within = np.arange(codes.shape[1]) < np.maximum(lengths, 1)[:, None]
    if not ((codes == first) & (codes >= 0) | ~within & (codes < 0)).all():
        return recordings
    labels = tuple(recordings.classes[code] for code in first[:, 0])
    return replace(recordings, labels=labels, timepoint_labels=None)


def mean_by_recording(
    probabilities: NDArray[np.float32], recording: NDArray[np.int64], recordings: int
) -> NDArray[np.float32]:
    """(recordings, classes) means of the cases' (cases, classes); every recording has a case."""
    summed = np.zeros((recordings, probabilities.shape[1]))
    np.add.at(summed, recording, probabilities)
    cases = np.bincount(recording, minlength=recordings)
    return (summed / cases[:, None]).astype(np.float32)


def resample(recordings: Collection, points: int) -> Collection:
    """Every recording at `points` places spread evenly from its first timepoint to its last.

    Linear between two timepoints; missing where one of the two is. A recording in which nothing is
    observed stays so.
    """
    values = np.full((*recordings.values.shape[:2], points), np.nan, np.float32)
    for case, length in enumerate(recordings.lengths):
        if length == 0:
            continue
        place = np.linspace(0, length - 1, points)
        before = np.floor(place).astype(np.int64)
        after = np.minimum(before + 1, length - 1)
        share = (place - before).astype(np.float32)
        series = recordings.values[case]  # (channels, timepoints)
        between = series[:, before] * (1 - share) + series[:, after] * share
        values[case] = np.where(share == 0, series[:, before], between)
    return replace(recordings, values=values, timepoint_labels=_nearest(recordings, points))


def _nearest(recordings: Collection, points: int) -> NDArray[np.int32] | None:
    """(recordings, points) the label of the timepoint nearest to each place of `resample`."""
    if recordings.timepoint_labels is None:
        return None
    last = np.maximum(recordings.lengths - 1, 0)
    place = np.rint(last[:, None] * np.linspace(0, 1, points)).astype(np.int64)
    return np.take_along_axis(recordings.timepoint_labels, place, axis=1)


def cut_windows(recordings: Collection, length: int, stride: int) -> PreparedCases:
    """Windows of `length` timepoints every `stride`, and one flush with the end where a rest is left.

    A recording shorter than a window is one window, padded. Ids are RECORDING@START, START being the
    window's first timepoint. Labels as `prepare_cases` says.
    """
    owner: list[int] = []
    starts: list[int] = []
    for case, points in enumerate(recordings.lengths.tolist()):
        last = max(points - length, 0)
        of_case = list(range(0, last + 1, stride))
        if of_case[-1] != last:
            of_case.append(last)
        owner += [case] * len(of_case)
        starts += of_case
    recording, start = np.array(owner, np.int64), np.array(starts, np.int64)
    place = start[:, None] + np.arange(length)  # (windows, length)
    beyond = place >= recordings.values.shape[2]
    place = np.where(beyond, 0, place)
    values = recordings.values[recording[:, None], :, place].transpose(0, 2, 1)  # (windows, channels, length)
    values = np.where(beyond[:, None, :], np.float32(np.nan), values)
    ids = tuple(f"{recordings.ids[case]}@{first}" for case, first in zip(owner, starts, strict=True))
    cases = replace(recordings.take(recording), values=values, ids=ids, timepoint_labels=None)
    timepoint_labels = recordings.timepoint_labels
    if timepoint_labels is None:
        return PreparedCases(cases, recording, start)
    covering = _most_covering(
        np.where(beyond, -1, timepoint_labels[recording[:, None], place]), len(recordings.classes)
    )
    known = np.flatnonzero(covering >= 0)
    named = tuple(recordings.classes[code] if code >= 0 else "" for code in covering)
    labelled = replace(cases.take(known), labels=tuple(named[window] for window in known))
    return PreparedCases(labelled, recording[known], start[known])


def _most_covering(codes: NDArray[np.int32], classes: int) -> NDArray[np.int64]:
    """(windows,) the most frequent code ≥ 0 of each row of (windows, length), −1 where there is none."""
    counts = np.stack([(codes == code).sum(axis=1) for code in range(classes)], axis=1)
    return np.where(counts.max(axis=1) > 0, counts.argmax(axis=1), -1)

"""Recordings become cases: resampled, cut into windows, each with the right label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.preparation import (
    Preparation,
    cut_windows,
    mean_by_recording,
    parse_preparation,
    prepare_cases,
    resample,
    with_labels_of_recordings,
)
from tsattn.data.sources import load_split
from tsattn.errors import InputError

NAN = float("nan")


def recordings(*series: list[float]) -> Collection:
    """Recordings of one channel, labelled a, b, a, b …"""
    longest = max(map(len, series))
    values = np.full((len(series), 1, longest), NAN, np.float32)
    for case, points in enumerate(series):
        values[case, 0, : len(points)] = points
    labels = tuple("ab"[case % 2] for case in range(len(series)))
    return Collection(
        values=values,
        ids=tuple(f"r{case}" for case in range(len(series))),
        channels=("x",),
        labels=labels,
        classes=("a", "b"),
    )


def points(collection: Collection) -> NDArray[np.float32]:
    return collection.values[:, 0]


def test_windows_end_flush_and_short_recordings_are_one() -> None:
    cut = cut_windows(recordings([0, 1, 2, 3, 4, 5, 6], [10, 11]), length=3, stride=2)
    np.testing.assert_array_equal(points(cut.cases), [[0, 1, 2], [2, 3, 4], [4, 5, 6], [10, 11, NAN]])
    assert cut.cases.ids == ("r0@0", "r0@2", "r0@4", "r1@0")
    assert cut.cases.labels == ("a", "a", "a", "b")
    assert cut.recording.tolist() == [0, 0, 0, 1]
    flush = cut_windows(recordings([0, 1, 2, 3, 4, 5]), length=3, stride=2)
    np.testing.assert_array_equal(points(flush.cases), [[0, 1, 2], [2, 3, 4], [3, 4, 5]])


def test_a_window_takes_the_label_that_covers_most_of_it() -> None:
    series = recordings([0, 1, 2, 3, 4, 5], [6, 7, 8])
    codes: NDArray[np.int32] = np.array([[0, 0, 1, 1, 1, -1], [-1, -1, -1, 0, 0, 0]], np.int32)
    cut = cut_windows(replace(series, timepoint_labels=codes), length=3, stride=1)
    assert dict(zip(cut.cases.ids, cut.cases.labels or (), strict=True)) == {
        "r0@0": "a",
        "r0@1": "b",
        "r0@2": "b",
        "r0@3": "b",
    }  # r1 has no labelled timepoint within its length
    assert cut.recording.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("codes", "labels"),
    [
        ([[0, 0, 0], [1, 1, -1]], ("go", "stop")),
        ([[0, 1, 0], [1, 1, -1]], None),
        ([[0, 0, -1], [1, 1, -1]], None),
        ([[0, 0, 0], [-1, -1, -1]], None),
        ([[0, 0, 0], [1, 1, 0]], None),
    ],
)
def test_recordings_have_a_label_if_it_holds_from_end_to_end(
    codes: list[list[int]], labels: tuple[str, ...] | None
) -> None:
    timepoint_labels = np.array(codes, np.int32)
    changing = replace(
        recordings([1, 2, 3], [4, 5]), labels=None, classes=("go", "stop"), timepoint_labels=timepoint_labels
    )
    whole = with_labels_of_recordings(changing)
    assert whole.labels == labels
    assert (whole.timepoint_labels is None) == (labels is not None)


def test_windows_cover_every_timepoint_of_real_recordings() -> None:
    plaid = load_split("PickupGestureWiimoteZ", "train", TableOptions()).collection
    cut = cut_windows(plaid, length=50, stride=25)
    for case in range(len(plaid)):
        length = plaid.lengths[case]
        seen = np.zeros(length, bool)
        for window in np.flatnonzero(cut.recording == case):
            start = int(cut.cases.ids[window].rpartition("@")[2])
            piece = plaid.values[case, :, start : start + 50]
            np.testing.assert_array_equal(cut.cases.values[window, :, : piece.shape[1]], piece)
            seen[start : start + 50] = True
        assert seen.all()


def test_resampling_is_linear_and_keeps_what_is_missing() -> None:
    series = recordings([0, 1, 2, 3], [0, NAN, 2], [5])
    np.testing.assert_allclose(
        points(resample(series, 5)),
        np.array([[0, 0.75, 1.5, 2.25, 3], [0, NAN, NAN, NAN, 2], [5] * 5]),
    )
    np.testing.assert_array_equal(resample(series, 4).values[0], series.values[0])
    nothing = recordings([NAN, NAN])
    assert np.isnan(resample(nothing, 3).values).all()


def test_resampling_then_windows() -> None:
    how = Preparation(resample=4, window=2, stride=2)
    done = prepare_cases(recordings([0, 3], [0, 1, 2, 3, 4, 5, 6]), how)
    np.testing.assert_allclose(points(done.cases), [[0, 1], [2, 3], [0, 2], [4, 6]])
    assert prepare_cases(recordings([1, 2]), Preparation()).recording.tolist() == [0]


def test_options_become_numbers() -> None:
    train = recordings([0, 1, 2], [0, 1, 2, 3, 4, 5])
    assert parse_preparation("mean-length", None, None, train) == Preparation(resample=4)
    assert parse_preparation(None, 10, None, train) == Preparation(window=10, stride=5)
    assert not parse_preparation(None, None, None, train)
    how = Preparation(resample=3, window=2, stride=1)
    assert Preparation.from_dict(how.as_dict()) == how


@pytest.mark.parametrize("word", ["0", "-3", "x", "1.5"])
def test_refusals(word: str) -> None:
    with pytest.raises(InputError, match=f"--resample {word}: expected a number of timepoints"):
        parse_preparation(word, None, None, recordings([1]))
    with pytest.raises(
        InputError, match="--stride 3 says how far windows are apart: type --window LENGTH too"
    ):
        parse_preparation(None, None, 3, recordings([1]))


def test_means_by_recording() -> None:
    probabilities = np.array([[0.2, 0.8], [0.4, 0.6], [1.0, 0.0]], np.float32)
    means = mean_by_recording(probabilities, np.array([1, 1, 0]), 2)
    np.testing.assert_allclose(means, [[1.0, 0.0], [0.3, 0.7]], rtol=1e-6)

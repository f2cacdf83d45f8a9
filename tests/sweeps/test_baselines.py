"""Baselines of aeon: what is done to series first, and that a fitted one answers every case."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.sweeps.baselines import BASELINES, as_aeon_wants, find_baseline, judge, without_gaps

NAN = np.nan


def collection(values: ArrayLike, labels: str) -> Collection:
    array = np.asarray(values, np.float32)
    return Collection(
        values=array,
        ids=tuple(map(str, range(len(array)))),
        channels=tuple(f"c{channel}" for channel in range(array.shape[1])),
        labels=tuple(labels),
        classes=tuple(sorted(set(labels))),
    )


def test_missing_values_are_interpolated_within_a_case() -> None:
    cases = collection([[[NAN, 1, NAN, 3, NAN, NAN], [5, NAN, NAN, NAN, 9, NAN]], [[NAN] * 6] * 2], "ab")
    filled = without_gaps(cases, np.array([7.0, 8.0])).values
    np.testing.assert_array_equal(filled[0], [[1, 1, 2, 3, 3, NAN], [5, 6, 7, 8, 9, NAN]])
    np.testing.assert_array_equal(filled[1, :, 0], [7, 8])


def test_what_wants_one_length_gets_that_of_train() -> None:
    ramp = np.arange(12.0)
    train = collection([[ramp], [np.where(ramp < 10, ramp, NAN)]], "ab")
    test = collection([[np.arange(20.0)]], "a")
    first, second, done = as_aeon_wants(find_baseline("rocket"), train, test)
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    assert (first.shape, second.shape) == ((2, 1, 12), (1, 1, 12))
    assert done == ["series padded with zeros to 12 timepoints, longer ones cut"]
    np.testing.assert_array_equal(second[0, 0], ramp)
    np.testing.assert_array_equal(first[1, 0], np.where(ramp < 10, ramp, 0))


def test_what_takes_any_length_gets_it() -> None:
    train = collection([[[1, 2, 3, NAN]], [[1, NAN, 3, 4]]], "ab")
    first, second, done = as_aeon_wants(find_baseline("1nn-dtw"), train, train)
    assert [case.shape for case in first] == [(1, 3), (1, 4)] == [case.shape for case in second]
    assert done == ["missing values interpolated over time"]


def test_short_series_are_made_long_enough_and_equal_ones_stay_as_they_are() -> None:
    short = collection(np.ones((2, 1, 4)), "ab")
    first, _, done = as_aeon_wants(find_baseline("rocket"), short, short)
    assert isinstance(first, np.ndarray)
    assert first.shape == (2, 1, 9)
    assert done == ["series padded with zeros to 9 timepoints"]
    equal = collection(np.random.default_rng(0).normal(size=(2, 2, 30)), "ab")
    first, _, done = as_aeon_wants(find_baseline("rocket"), equal, equal)
    np.testing.assert_array_equal(np.asarray(first, np.float32), equal.values)
    assert not done


def test_a_baseline_answers_every_case_and_says_what_it_was() -> None:
    generator = np.random.default_rng(0)
    labels = "ab" * 10
    values = generator.normal(size=(20, 1, 30)) + 5 * np.array([[[label == "b"]] for label in labels])
    cases = collection(values, labels)
    judged = judge(find_baseline("quant"), cases, cases, seed=0, threads=1)
    assert judged.probabilities.shape == (20, 2)
    assert [cases.classes[k] for k in judged.probabilities.argmax(1)] == list(labels)
    np.testing.assert_allclose(judged.probabilities.sum(1), 1)
    assert judged.how.startswith("quant of aeon")
    again = judge(find_baseline("quant"), cases, cases, seed=0, threads=1)
    np.testing.assert_array_equal(judged.probabilities, again.probabilities)


def test_an_unknown_word_is_told_the_near_one() -> None:
    assert {"rocket", "minirocket", "multirocket-hydra", "hydra", "quant", "1nn-dtw"} == set(BASELINES)
    with pytest.raises(InputError, match="Did you mean 'minirocket'"):
        find_baseline("minirocet")


@pytest.mark.parametrize("word", BASELINES)
def test_every_word_builds_a_classifier_of_aeon(word: str) -> None:
    from aeon.classification.base import BaseClassifier

    assert isinstance(BASELINES[word].build(0, 1), BaseClassifier)

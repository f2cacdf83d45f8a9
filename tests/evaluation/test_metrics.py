"""The figures against numbers worked out by hand and against their formulas written plainly."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tsattn.errors import CheckFailed, InputError
from tsattn.evaluation.metrics import PROBABILITY_FLOOR, Report, report

CLASSES = ("walk", "run", "rest")
#                a       b       c       d       e       f
LABELS = ("walk", "walk", "walk", "run", "run", "rest")
PROBABILITIES = np.array(
    [
        [0.50, 0.25, 0.25],  # walk, right
        [0.50, 0.25, 0.25],  # walk, right
        [0.25, 0.50, 0.25],  # walk taken for run
        [0.25, 0.50, 0.25],  # run, right
        [0.50, 0.25, 0.25],  # run taken for walk
        [0.25, 0.50, 0.25],  # rest taken for run
    ],
    dtype=np.float32,
)


@pytest.fixture
def by_hand() -> Report:
    return report(PROBABILITIES, LABELS, CLASSES)


def test_six_cases_by_hand(by_hand: Report) -> None:
    assert by_hand.cases == 6
    assert by_hand.confusion == ((2, 1, 0), (1, 1, 0), (0, 1, 0))
    assert by_hand.accuracy == pytest.approx(3 / 6)
    assert by_hand.balanced_accuracy == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    # F1 = 2·right / (cases of the class + times predicted): walk 4/6, run 2/5, rest 0/1.
    assert by_hand.macro_f1 == pytest.approx((4 / 6 + 2 / 5 + 0) / 3)
    # Half of the truths were given 1/2, half 1/4: the mean of ln 2 and 2 ln 2.
    assert by_hand.log_loss == pytest.approx(1.5 * math.log(2))
    # All six say 1/2 of their answer, and half of them are right.
    assert by_hand.calibration_error == pytest.approx(0)


def test_each_class_by_hand(by_hand: Report) -> None:
    walk, run, rest = by_hand.classes
    assert (walk.label, walk.support) == ("walk", 3)
    assert walk.precision == walk.recall == walk.f1 == pytest.approx(2 / 3)
    assert (run.label, run.support) == ("run", 2)
    assert run.precision == pytest.approx(1 / 3)
    assert run.recall == pytest.approx(1 / 2)
    assert run.f1 == pytest.approx(2 / 5)
    # Never predicted: a precision would be 0/0.
    assert (rest.precision, rest.recall, rest.f1, rest.support) == (None, 0.0, 0.0, 1)


def test_majority_is_that_of_training_where_known() -> None:
    own = report(PROBABILITIES, LABELS, CLASSES)
    assert own.majority_class == "walk"
    assert own.majority_accuracy == pytest.approx(3 / 6)
    known = report(PROBABILITIES, LABELS, CLASSES, majority="rest")
    assert known.majority_class == "rest"
    assert known.majority_accuracy == pytest.approx(1 / 6)
    assert known.accuracy == own.accuracy


def test_a_class_without_cases_counts_in_no_mean() -> None:
    few = report(PROBABILITIES[:2], ("walk", "walk"), CLASSES)
    assert few.accuracy == few.balanced_accuracy == few.macro_f1 == 1.0
    assert few.classes[2].recall is None
    assert few.classes[2].f1 is None
    assert few.classes[2].support == 0


@pytest.mark.parametrize("seed", range(5))
def test_plain_formulas_agree_on_random_answers(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = tuple("abcdefg")
    truth = random.integers(0, 5, 60)  # f and g have no cases
    given = random.dirichlet(np.ones(7), 60).astype(np.float32)
    guess = given.argmax(axis=1)
    found = report(given, [names[i] for i in truth], names)

    recalls, f1s = [], []
    for k in range(7):
        right = sum(1 for t, g in zip(truth, guess, strict=True) if t == g == k)
        cases, predicted = int((truth == k).sum()), int((guess == k).sum())
        if cases:
            recalls.append(right / cases)
        if cases + predicted:
            f1s.append(2 * right / (cases + predicted))
    assert found.balanced_accuracy == pytest.approx(np.mean(recalls))
    assert found.macro_f1 == pytest.approx(np.mean(f1s))
    assert found.accuracy == pytest.approx(np.mean(truth == guess))
    assert found.log_loss == pytest.approx(
        -sum(math.log(row[t]) for row, t in zip(given.tolist(), truth, strict=True)) / 60
    )
    assert np.array(found.confusion).sum() == 60


def test_a_truth_given_no_probability_costs_a_bounded_amount() -> None:
    certain = np.array([[0.0, 1.0, 0.0]], dtype=np.float32)
    assert report(certain, ("walk",), CLASSES).log_loss == pytest.approx(-math.log(PROBABILITY_FLOOR))
    assert report(certain, ("run",), CLASSES).log_loss == 0.0


def test_json_has_no_nan_and_comes_back_equal(by_hand: Report) -> None:
    document = by_hand.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["classes"][2]["precision"] is None


def test_confusions_are_sorted_and_leave_out_what_was_right(by_hand: Report) -> None:
    assert by_hand.confusions() == [("walk", "run", 1), ("run", "walk", 1), ("rest", "run", 1)]


def test_an_unknown_label_is_named_with_the_models_classes() -> None:
    labels = ("walk", "walk", "swim", "run", "swim", "crawl")
    with pytest.raises(InputError) as caught:
        report(PROBABILITIES, labels, CLASSES)
    message = str(caught.value)
    assert "'swim', 'crawl' (first in case 3)" in message
    assert "'walk', 'run', 'rest'" in message
    assert "--label" in message


def test_no_case_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no case"):
        report(np.empty((0, 3), np.float32), (), CLASSES)


def test_a_diverged_model_is_found_out() -> None:
    broken = PROBABILITIES.copy()
    broken[3, 1] = np.nan
    with pytest.raises(CheckFailed, match=r"1 of 6 cases \(first: case 4\)"):
        report(broken, LABELS, CLASSES)

"""The validation part: stratified, repeatable, and possible with very few cases."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.splits import dealt, grouped_split, latest_split, spares_validation, validation_split
from tsattn.errors import InputError

LABELS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=200)


@given(labels=LABELS, fraction=st.floats(0.01, 0.99), seed=st.integers(0, 2**32))
def test_every_class_of_two_is_on_both_sides(labels: list[str], fraction: float, seed: int) -> None:
    training, validation = validation_split(labels, fraction, seed)
    assert sorted([*training, *validation]) == list(range(len(labels)))
    kept, held_out = (Counter(labels[i] for i in part) for part in (training, validation))
    for label, count in Counter(labels).items():
        assert kept[label] >= 1
        assert (held_out[label] >= 1) == (count >= 2)
        assert abs(held_out[label] - fraction * count) <= 1
    for part in (training, validation):
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()


def test_the_seed_decides() -> None:
    labels = ["a", "b"] * 50
    first, again, other = (validation_split(labels, 0.2, seed)[1] for seed in (0, 0, 1))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    assert len(first) == 20


def test_sets_of_few_cases() -> None:
    training, validation = validation_split(["a"] * 4 + ["b"] * 4 + ["c"] * 4, 0.2, seed=0)
    assert (len(training), len(validation)) == (9, 3)
    training, validation = validation_split(["a", "b", "c"], 0.2, seed=0)
    assert (training.tolist(), validation.tolist()) == ([0, 1, 2], [])


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_a_fraction_has_to_be_one(fraction: float) -> None:
    with pytest.raises(
        InputError, match=rf"A validation part of {fraction} is not possible: .* between 0 and 1"
    ):
        validation_split(["a", "a"], fraction, seed=0)


def test_only_large_sets_spare_validation_cases() -> None:
    labels = load_split("JapaneseVowels", "train", TableOptions()).collection.labels
    assert labels is not None
    assert not spares_validation(labels)
    assert spares_validation(labels * 2)
    assert not spares_validation([str(i % 26) for i in range(600)])
    assert not spares_validation([])


@settings(deadline=None)  # the first call imports scikit-learn
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("STUVWXYZ")), min_size=1, max_size=80),
    st.floats(0.1, 0.5),
    st.integers(0, 100),
)
def test_groups_stay_whole(cases: list[tuple[str, str]], fraction: float, seed: int) -> None:
    labels, groups = [label for label, _ in cases], [group for _, group in cases]
    try:
        training, validation = grouped_split(labels, groups, fraction, seed)
    except InputError:  # whole groups do not always allow it; the message is tested below
        return
    assert sorted([*training, *validation]) == list(range(len(cases)))
    assert not {groups[i] for i in training} & {groups[i] for i in validation}
    assert {labels[i] for i in training} == set(labels)
    assert len(validation)


def test_groups_of_many_cases_give_about_the_share() -> None:
    labels = ["ab"[i % 2] for i in range(200)]
    groups = [str(i // 10) for i in range(200)]
    _, validation = grouped_split(labels, groups, 0.2, seed=0)
    assert 30 <= len(validation) <= 50
    assert len({groups[i] for i in validation}) == len(validation) / 10
    others = [grouped_split(labels, groups, 0.2, seed)[1].tolist() for seed in (0, 1)]
    assert others[0] == validation.tolist() != others[1], "the seed decides"


def test_one_group_cannot_be_divided() -> None:
    with pytest.raises(InputError, match=r"The 1 group cannot be divided .* --val-fraction 0"):
        grouped_split(["a", "b"] * 10, ["s"] * 20, 0.2, seed=0)


def test_the_latest_cases_are_held_out() -> None:
    training, validation = latest_split(["a", "b"] * 5, 0.2)
    assert (training.tolist(), validation.tolist()) == (list(range(8)), [8, 9])
    with pytest.raises(
        InputError, match=r"The first 8 of 10 cases hold no case of class 'b'.*smaller --val-fraction"
    ):
        latest_split(["a"] * 8 + ["b"] * 2, 0.2)
    assert latest_split(["a", "b"] * 5, 0.28)[1].tolist() == [7, 8, 9], "the nearest number of cases"
    with pytest.raises(InputError, match="leaves one side empty"):
        latest_split(["a", "b"], 0.01)


@given(
    labels=st.lists(st.sampled_from("abcd"), min_size=1, max_size=60),
    parts=st.integers(2, 12),
    seed=st.integers(0, 2**32),
    group_size=st.sampled_from([0, 1, 3]),
)
def test_any_cases_can_be_dealt_out(labels: list[str], parts: int, seed: int, group_size: int) -> None:
    groups = [str(case // group_size) for case in range(len(labels))] if group_size else None
    found = dealt(labels, parts, seed, groups)
    assert len(found) == parts
    times: Counter[int] = Counter()
    for training, held_out in found:
        assert sorted([*training, *held_out]) == list(range(len(labels)))
        assert {labels[i] for i in training} == set(labels), "every class is trained on"
        times.update(held_out.tolist())
        if groups is not None:
            assert not {groups[i] for i in training} & {groups[i] for i in held_out}
    assert max(times.values(), default=0) <= 1
    if groups is None:
        assert {i for i in range(len(labels)) if labels.count(labels[i]) > 1} == set(times)
        for label in set(labels):
            sizes = [sum(labels[i] == label for i in held_out) for _, held_out in found]
            assert max(sizes) - min(sizes) <= 1, "classes are shared out evenly"


def test_the_seed_deals() -> None:
    labels = ["a", "b"] * 20
    first, again, other = (dealt(labels, 5, seed)[0][1].tolist() for seed in (0, 0, 1))
    assert first == again != other

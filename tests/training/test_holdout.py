"""What is held out, and that nothing leaks from one side to the other."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.preparation import Preparation, PreparedCases, prepare_cases
from tsattn.data.write_tables import write_wide_csv
from tsattn.errors import InputError
from tsattn.training.holdout import BY_SHARE, Holding, divide, groups_of, with_file

LATEST = Holding(latest=True)


def recordings(count: int, length: int = 100) -> Collection:
    """Recordings of one channel whose every value is a number of its own, labelled a, b, a, b …"""
    values = np.arange(count * length, dtype=np.float32).reshape(count, 1, length)
    labels = tuple("ab"[case % 2] for case in range(count))
    return Collection(
        values=values, ids=tuple(map(str, range(count))), channels=("x",), labels=labels, classes=("a", "b")
    )


def cut(count: int, window: int | None = None, stride: int | None = None) -> PreparedCases:
    return prepare_cases(recordings(count), Preparation(window=window, stride=stride))


def values(cases: Collection | None) -> set[float]:
    assert cases is not None
    return set(cases.values.ravel().tolist())


def test_cases_of_their_own_are_stratified() -> None:
    divided = divide(cut(40), 0.25, 0, BY_SHARE, None)
    assert divided.how == "stratified"
    assert divided.validation is not None
    assert sorted(divided.validation.labels or ()) == ["a"] * 5 + ["b"] * 5
    assert sorted(divided.split["train"] + divided.split["validation"]) == list(range(40))


def test_windows_of_one_recording_stay_on_one_side() -> None:
    windows = cut(20, window=30, stride=10)
    divided = divide(windows, 0.2, 0, BY_SHARE, 30)
    assert not values(divided.train) & values(divided.validation)
    assert re.fullmatch(r"whole groups, \d+ of 20", divided.how)


def test_groups_win_over_recordings() -> None:
    windows = cut(20, window=30, stride=10)
    subjects = tuple(f"s{case // 4}" for case in range(20))
    grouped = replace(
        windows, cases=replace(windows.cases, groups=tuple(subjects[r] for r in windows.recording))
    )
    divided = divide(grouped, 0.2, 0, BY_SHARE, 30)
    assert divided.validation is not None
    assert not set(divided.train.groups or ()) & set(divided.validation.groups or ())
    assert groups_of(cut(3)) is None


def test_the_latest_windows_share_no_timepoint_with_what_is_trained_on() -> None:
    windows = cut(5, window=30, stride=10)
    divided = divide(windows, 0.3, 0, LATEST, 30)
    assert not values(divided.train) & values(divided.validation)
    assert max(values(divided.train)) < min(values(divided.validation))
    assert max(divided.split["train"]) < min(divided.split["validation"]) - 1  # overlapping ones are left out


def test_nothing_is_held_out_where_nothing_is_asked() -> None:
    divided = divide(cut(6), 0.0, 0, BY_SHARE, None)
    assert divided.validation is None
    assert divided.split == {"train": [0, 1, 2, 3, 4, 5], "validation": []}


def test_a_file_of_its_own(tmp_path: Path) -> None:
    write_wide_csv(recordings(8), tmp_path / "held-out.csv")
    divided = with_file(cut(6), tmp_path / "held-out.csv", TableOptions(), Preparation())
    assert (len(divided.train), len(divided.validation or ())) == (6, 8)


def test_a_file_that_does_not_fit(tmp_path: Path) -> None:
    file, options, how = tmp_path / "held-out.csv", TableOptions(), Preparation()
    write_wide_csv(replace(recordings(8), channels=("y",)), file)
    with pytest.raises(
        InputError, match=r"held-out\.csv: its channels are y; those of the training cases are x"
    ):
        with_file(cut(6), file, options, how)
    other = replace(recordings(2), labels=("a", "c"), classes=("a", "c"))
    write_wide_csv(other, file)
    with pytest.raises(InputError, match="class 'c' is not among those trained on: a, b"):
        with_file(cut(6), file, options, how)
    write_wide_csv(other, file, label=None)
    with pytest.raises(InputError, match="its cases have no labels"):
        with_file(cut(6), file, options, how)
    with pytest.raises(InputError, match="--time-ordered and --val-file both say what is held out"):
        Holding(latest=True, file=file)


def grouped(cases: int, groups: str) -> PreparedCases:
    """Cases whose groups are the letters of `groups`, again from the start where they do not reach."""
    prepared = cut(cases)
    return replace(
        prepared,
        cases=replace(prepared.cases, groups=tuple(groups[i % len(groups)] for i in range(cases))),
    )


def test_groups_and_the_latest_cannot_both_be_had() -> None:
    with pytest.raises(
        InputError, match=r"^--time-ordered and groups \(--group\): the last cases"
    ):
        divide(grouped(12, "stu"), 0.25, 0, LATEST, None)


def test_a_file_of_its_own_must_not_share_a_group(tmp_path: Path) -> None:
    file, options = tmp_path / "held-out.csv", TableOptions(group="group")
    write_wide_csv(grouped(8, "uvw").cases, file)
    with pytest.raises(InputError, match=r"held-out\.csv: .* have the group 'u' and 1 more of its groups\."):
        with_file(grouped(6, "stuv"), file, options, Preparation())
    assert len(with_file(grouped(6, "st"), file, options, Preparation()).validation or ()) == 8

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
from tsattn.data.write_npz import write_npz
from tsattn.data.write_tables import write_wide_csv
from tsattn.data.write_ts import write_ts
from tsattn.errors import InputError
from tsattn.training import preparing
from tsattn.training.holdout import BY_SHARE, Holding, divide, groups_of, with_file

LATEST = Holding(latest=True)


def recordings(count: int, length: int = 100) -> Collection:
    """Recordings of one channel whose every value is a number of its own, labelled a, b, a, b …"""
    values = np.arange(count * length, dtype=np.float32).reshape(count, 1, length)
    labels = tuple("ab"[case % 2] for case in range(count))
    return Collection(
        values=values, ids=tuple(map(str, range(count))), channels=("x",), labels=labels, classes=("a", "b")
    )


def others(count: int) -> Collection:
    """As `recordings`, but of other values."""
    one = recordings(count)
    return replace(one, values=one.values + np.float32(0.5))


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


def test_a_window_is_left_out_only_for_a_shared_timepoint_of_its_recording() -> None:
    """Windows side by side share none; of three recordings before, the later windows stay too."""
    divided = divide(cut(5, window=10, stride=10), 0.3, 0, LATEST, 10)
    assert divided.split == {"train": list(range(35)), "validation": list(range(35, 50))}
    divided = divide(cut(5, window=20, stride=10), 0.3, 0, LATEST, 20)
    assert divided.split == {"train": list(range(30)), "validation": list(range(31, 45))}


def changing() -> Collection:
    """One recording of 100 timepoints, the first half of class a, the second of class b."""
    codes = np.repeat(np.array([0, 1], np.int32), 50)[None]
    return replace(recordings(1), labels=None, timepoint_labels=codes)


@pytest.mark.parametrize(("window", "before", "left", "lost"), [(20, 12, 9, "b"), (60, 6, 0, "a")])
def test_a_class_that_is_lost_with_the_windows_left_out(
    window: int, before: int, left: int, lost: str
) -> None:
    windows = prepare_cases(changing(), Preparation(window=window, stride=5))
    with pytest.raises(
        InputError,
        match=rf"^Of the {before} windows before the held-out ones {left} share no timepoint with them, and "
        rf"none of these is of class '{lost}', so --time-ordered .* smaller --window or --val-fraction, or",
    ):
        divide(windows, 0.3, 0, LATEST, window)


def test_windows_of_one_recording_cannot_be_divided_by_recordings() -> None:
    windows = prepare_cases(changing(), Preparation(window=10, stride=5))
    with pytest.raises(InputError, match=r"^The 1 recording cannot be divided .* with --time-ordered\.$"):
        divide(windows, 0.3, 0, BY_SHARE, 10)
    with pytest.raises(InputError, match=r"^The 1 group cannot be divided .* name other groups\.$"):
        divide(grouped(8, "s"), 0.3, 0, BY_SHARE, None)


def test_nothing_is_held_out_where_nothing_is_asked() -> None:
    divided = divide(cut(6), 0.0, 0, BY_SHARE, None)
    assert divided.validation is None
    assert divided.split == {"train": [0, 1, 2, 3, 4, 5], "validation": []}


def test_a_file_of_its_own(tmp_path: Path) -> None:
    write_wide_csv(others(8), tmp_path / "held-out.csv")
    divided = with_file(cut(6), tmp_path / "held-out.csv", TableOptions(), Preparation())
    assert (len(divided.train), len(divided.validation or ())) == (6, 8)
    for case in range(8):
        folder = tmp_path / "valid" / "ab"[case % 2]
        folder.mkdir(parents=True, exist_ok=True)
        series = others(8).values[case, 0]
        (folder / f"{case}.csv").write_text("\n".join(["x", *map(str, series)]) + "\n")
    held_out = with_file(cut(6), tmp_path / "valid", TableOptions(), Preparation()).validation
    assert held_out is not None
    assert (len(held_out), held_out.classes) == (8, ("a", "b"))
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"none: no file with data in it\. Type the file with the cases"):
        with_file(cut(6), tmp_path / "none", TableOptions(), Preparation())


def test_a_file_of_training_cases(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, options, how = tmp_path / "held-out.csv", TableOptions(), Preparation()
    write_wide_csv(recordings(4), file)
    with pytest.raises(
        InputError, match=r"held-out\.csv: each of its 4 cases is a training case too, so none"
    ):
        with_file(cut(6), file, options, how)
    with_file(cut(3), file, options, how)
    said = f"{file}: 3 of its 4 cases are training cases too, so what is held out looks better than it is."
    assert said in caplog.text
    caplog.clear()
    write_wide_csv(others(4), file)
    with_file(cut(3), file, options, how)
    assert not caplog.records


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
    with pytest.raises(InputError, match=r"^--time-ordered and groups \(--group\): the last cases"):
        divide(grouped(12, "stu"), 0.25, 0, LATEST, None)


def test_a_file_of_its_own_must_not_share_a_group(tmp_path: Path) -> None:
    file, options = tmp_path / "held-out.csv", TableOptions(group="group")
    write_wide_csv(replace(grouped(8, "uvw").cases, values=others(8).values), file)
    with pytest.raises(InputError, match=r"held-out\.csv: .* have the group 'u' and 1 more of its groups\."):
        with_file(grouped(6, "stuv"), file, options, Preparation())
    assert len(with_file(grouped(6, "st"), file, options, Preparation()).validation or ()) == 8


@pytest.mark.parametrize("form", [".ts", ".npz"])
def test_a_file_of_its_own_has_to_name_groups_where_the_training_cases_do(tmp_path: Path, form: str) -> None:
    file, options, how = tmp_path / f"held-out{form}", TableOptions(group="group"), Preparation()
    write = write_npz if form == ".npz" else write_ts
    unnamed = replace(others(8), channels=("dim_0",))
    write(unnamed, file)

    def trained(groups: str | None) -> PreparedCases:
        prepared = cut(6) if groups is None else grouped(6, groups)
        return replace(prepared, cases=replace(prepared.cases, channels=("dim_0",)))

    with pytest.raises(
        InputError, match=rf"held-out\{form}: it names no groups, as the training cases do, so"
    ):
        with_file(trained("st"), file, options, how)
    assert len(with_file(trained(None), file, TableOptions(), how).validation or ()) == 8
    if form == ".npz":
        write_npz(replace(unnamed, groups=tuple("uvwxuvwx")), file)
        assert len(with_file(trained("st"), file, options, how).validation or ()) == 8
        with pytest.raises(InputError, match="the training cases too have the group 'u'"):
            with_file(trained("stu"), file, options, how)


def test_a_share_and_a_file_cannot_both_be_had(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^--val-fraction and --val-file both say what is held out: type one"
    ):
        preparing.prepare(
            "GunPoint",
            asked={"validation": 0.3},
            preset="base",
            device="cpu",
            threads=None,
            out=None,
            table=TableOptions(),
            holding=Holding(file=tmp_path / "held-out.csv"),
        )

"""Facts of a Collection, on cases small enough to count by hand and on archive sets; `data info`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.describe import Sampling, describe, sampling, shared_cases
from tsattn.data.sources import embedded_folder, load_split

NAN = float("nan")
UEA = Path(__file__).parents[3] / "shared" / "uea"


def small(*cases: list[list[float]], labels: tuple[str, ...] | None = None) -> Collection:
    """Cases as lists of channels, padded to the longest."""
    longest = max(len(channel) for case in cases for channel in case)
    values = np.full((len(cases), len(cases[0]), longest), np.nan, np.float32)
    for row, case in zip(values, cases, strict=True):
        for line, channel in zip(row, case, strict=True):
            line[: len(channel)] = channel
    return Collection(
        values=values,
        ids=tuple(f"c{i}" for i in range(len(cases))),
        channels=tuple("xyz"[: len(cases[0])]),
        labels=labels,
        classes=tuple(sorted(set(labels or ()))),
    )


def test_facts_counted_by_hand() -> None:
    cases = small(
        [[1, NAN, 3, 4], [5, 5, 5, NAN]],
        [[1, 2], [5, 5]],
        [[NAN], [NAN]],
        [[1, 2, NAN], [5, 5, NAN]],
        labels=("a", "b", "a", "c"),
    )
    facts = describe(cases)
    assert (facts.cases, facts.channels) == (4, ("x", "y"))
    assert (facts.shortest, facts.median, facts.longest) == (0, 2.0, 4)
    # Lengths 4, 2, 0, 2 in two channels are 16 values, of which two are missing.
    assert facts.missing == pytest.approx(2 / 16)
    assert facts.classes == {"a": 2, "b": 1, "c": 1}
    assert facts.imbalance == 2
    assert (facts.constant, facts.empty) == (("y",), ())
    assert facts.unobserved == ("c2",)
    assert (facts.twins, facts.duplicates) == ((("c1", "c3"),), 1)
    assert facts.contradictions == (("c1", "c3"),)
    assert facts.infinite == 0


def test_facts_without_labels_of_nothing_and_of_infinity() -> None:
    facts = describe(small([[NAN, NAN]], [[NAN, NAN]]))
    assert (facts.missing, facts.classes, facts.imbalance) == (0.0, None, None)
    assert (facts.constant, facts.empty, facts.twins) == ((), ("x",), ())
    assert facts.unobserved == ("c0", "c1")
    assert describe(small([[np.inf, 1]], [[1, -np.inf]])).infinite == 2


def test_a_class_without_a_case_is_counted_as_0() -> None:
    cases = Collection(np.ones((1, 1, 1), np.float32), ("0",), ("x",), ("a",), ("b", "a"))
    assert describe(cases).classes == {"b": 0, "a": 1}


def test_the_same_case_is_found_whatever_its_padding_sign_of_zero_and_label() -> None:
    train = small([[0.0, 1.0]], [[2.0, NAN, 3.0]], [[9.0]], [[NAN]], labels=("a", "a", "b", "b"))
    test = small([[NAN]], [[2, NAN, 3, NAN, NAN]], [[-0.0, 1]], [[1.0, 0]], labels=("a",) * 4)
    assert shared_cases(train, test) == (("c1", "c1"), ("c0", "c2"))


def test_sampling_in_order_of_time_by_case() -> None:
    times = np.array([0, 2, 1, 3, 10, 11, 15, 16], np.float64)
    cases = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    found = sampling(times, cases)
    assert found == Sampling(period=1, seconds=False, gaps=1, gap_cases=1, even=False)
    even = sampling(times[:4] * 0.02, cases[:4], seconds=True)
    assert even is not None
    assert (round(even.period, 9), even.gaps, even.even, even.seconds) == (0.02, 0, True, True)
    assert sampling(times[:2], np.array([0, 1])) is None


@pytest.mark.parametrize("name", ["JapaneseVowels", "BasicMotions", "PickupGestureWiimoteZ"])
def test_archive_sets_agree_with_the_plain_count(name: str) -> None:
    cases = load_split(name, "train", TableOptions()).collection
    facts = describe(cases)
    assert cases.labels is not None
    assert facts.classes == {label: cases.labels.count(label) for label in cases.classes}
    assert (facts.shortest, facts.longest) == (cases.lengths.min(), cases.lengths.max())
    inside = [case[:, :length] for case, length in zip(cases.values, cases.lengths, strict=True)]
    missing = sum(int(np.isnan(case).sum()) for case in inside)
    assert facts.missing == pytest.approx(missing / sum(case.size for case in inside))


def info(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tsattn", "data", "info", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd)


def test_info_of_a_named_set() -> None:
    done = info("japanesevowels", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["name"], document["archive"]) == ("JapaneseVowels", "UEA")
    assert document["licence"] == "not stated by the archive"
    assert "2018" in document["citation"]
    assert document["record"].startswith("https://zenodo.org/records/")
    train, test = document["parts"]["train"], document["parts"]["test"]
    assert (train["cases"], test["cases"], len(train["channels"])) == (270, 370, 12)
    assert test["lengths"] == {"min": 7, "median": 15.0, "max": 29}
    assert train["classes"] == {str(label): 30 for label in range(1, 10)}
    folder = embedded_folder("JapaneseVowels")
    assert document["place"] == str(folder)
    assert folder is not None
    pair = [folder / f"JapaneseVowels_{split}.ts" for split in ("TRAIN", "TEST")]
    assert document["bytes"] == sum(path.stat().st_size for path in pair)
    text = info("GunPoint").stdout
    for word in ("UCR", "2019", "train", "test", "50", "150", "48.0 %", "not stated", "also in train"):
        assert word in text


def test_info_of_files(tmp_path: Path) -> None:
    folder = embedded_folder("GunPoint")
    assert folder is not None
    shutil.copy(folder / "GunPoint_TRAIN.ts", tmp_path / "points.ts")
    document = json.loads(info("points.ts", "--json", cwd=tmp_path).stdout)
    assert (document["name"], list(document["parts"]), document["cases_in_both"]) == (
        "points.ts",
        ["all"],
        None,
    )
    assert "archive" not in document
    (tmp_path / "t.csv").write_text("rec,x\na,1\na,2\nb,\nb,inf\n")
    done = info("t.csv", "--id", "rec", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "t.csv:5: column 'x' holds 'inf'" in done.stderr
    (tmp_path / "t.csv").write_text("rec,x\na,1\na,2\nb,1\nb,2\n")
    done = info("t.csv", "--id", "rec", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["parts"]["all"]["duplicated_cases"] == [["a", "b"]]
    assert json.loads(done.stdout)["parts"]["all"]["classes"] is None


def test_info_of_half_a_pair_says_which_half_is_missing(tmp_path: Path) -> None:
    folder = embedded_folder("GunPoint")
    assert folder is not None
    shutil.copy(folder / "GunPoint_TEST.ts", tmp_path)
    done = info(str(tmp_path), "--json")
    assert done.returncode == 0
    assert list(json.loads(done.stdout)["parts"]) == ["test"]
    assert "holds no GunPoint_TRAIN.ts" in done.stderr


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("GunPiont", "Did you mean GunPoint"),
        ("nothing.csv", "nothing.csv: no such file or folder."),
        ("no/where", "no/where: no such file or folder."),
    ],
)
def test_info_of_nothing(source: str, says: str) -> None:
    done = info(source)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_info_imports_nothing_that_takes_seconds(tmp_path: Path) -> None:
    folder = embedded_folder("GunPoint")
    assert folder is not None
    code = (
        "import json, sys\n"
        f"sys.argv = ['tsattn', 'data', 'info', {str(folder / 'GunPoint_TRAIN.ts')!r}]\n"
        "from tsattn.cli.app import main\n"
        "try: main()\n"
        "finally: print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    heavy = {"torch", "aeon", "pandas", "sklearn", "matplotlib", "onnxruntime", "pyarrow.compute"}
    assert not heavy & set(json.loads(done.stderr))

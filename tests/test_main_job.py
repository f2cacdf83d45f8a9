"""The main job through real processes, and what every wrong step of it says."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.write_tables import write_long_csv, write_wide_csv

SMALL = ["--epochs", "2", "--width", "16", "--heads", "2", "--layers", "1"]


def tsattn(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tsattn", *words],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with JapaneseVowels as tables, a small run trained from the long one, and its model file."""
    place = tmp_path_factory.mktemp("bench")
    train = load_split("JapaneseVowels", "train", TableOptions()).collection
    test = load_split("JapaneseVowels", "test", TableOptions()).collection
    write_long_csv(train, place / "vowels_TRAIN.csv", label="speaker", id="utterance", time="frame")
    write_long_csv(test, place / "vowels_TEST.csv", label="speaker", id="utterance", time="frame")
    write_wide_csv(test, place / "wide.csv", label="speaker", id="utterance")
    columns = ["--id", "utterance", "--time", "frame", "--label", "speaker"]
    trained = tsattn(place, "train", "vowels_TRAIN.csv", "--out", "run", *columns, *SMALL)
    assert trained.returncode == 0, trained.stderr
    exported = tsattn(place, "export", "onnx", "run", "-o", "model.onnx", "--json")
    assert exported.returncode == 0, exported.stderr
    assert exported.stderr == "", "the exporter talks of its own, which helps nobody"
    document = json.loads(exported.stdout)
    assert document["changed_classes"] == 0
    assert document["largest_difference"] < 1e-4
    return place


def test_run_and_model_file_are_judged_the_same(bench: Path) -> None:
    """The columns named in training are found again; the test file is the one beside the training file."""
    figures = []
    for model in ("run", "model.onnx"):
        judged = tsattn(bench, "eval", model, "--json")
        assert judged.returncode == 0, judged.stderr
        figures.append(json.loads(judged.stdout))
    run, onnx = figures
    assert run["cases"] == onnx["cases"] == 370
    assert run["accuracy"] == onnx["accuracy"] > 0.4
    assert run["confusion"] == onnx["confusion"]
    assert run["log_loss"] == pytest.approx(onnx["log_loss"], abs=1e-5)


def test_run_and_model_file_classify_both_layouts_the_same(bench: Path) -> None:
    answers = {}
    for model in ("run", "model.onnx"):
        for table in ("vowels_TEST.csv", "wide.csv"):
            out = bench / f"{model}-{table}"
            done = tsattn(bench, "predict", model, table, "-o", str(out), "--proba")
            assert done.returncode == 0, done.stderr
            answers[model, table] = rows(out)
    expected = answers.pop(("model.onnx", "wide.csv"))
    assert expected[0][:3] == ["id", "label", "confidence"]
    assert len(expected) == 371
    for found in answers.values():
        assert [row[:2] for row in found] == [row[:2] for row in expected]
        np.testing.assert_allclose(
            np.array([row[2:] for row in found[1:]], float),
            np.array([row[2:] for row in expected[1:]], float),
            rtol=0,
            atol=2e-5,
        )


def test_stdout_holds_the_result_alone_and_stderr_no_bars(bench: Path) -> None:
    done = tsattn(bench, "train", "GunPoint", "--attention", "linear", "--out", "gun", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 2
    assert "linear attention" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert len(done.stderr.splitlines()) == 3


WRONG = {
    "unknown data set": (
        ["train", "JapanesVowels"],
        2,
        ["JapanesVowels", "JapaneseVowels"],
    ),
    "missing file": (["train", "nowhere.csv", "--label", "kind"], 2, ["nowhere.csv"]),
    "unknown spec": (
        ["train", "GunPoint", "--attention", "softmx+bn"],
        2,
        ["there is no part 'softmx'", "Did you mean 'softmax'"],
    ),
    "spec without sense": (
        ["train", "GunPoint", "--attention", "bn+linear"],
        2,
        ["the core stands first, write 'linear+bn'"],
    ),
    "spec that does not fit the heads": (
        ["train", "GunPoint", "--attention", "sh:1,2,4"],
        2,
        ["3 scales cannot be spread evenly over 8 heads"],
    ),
    "unknown tokens": (["train", "GunPoint", "--tokens", "patch"], 2, ["patch needs its length"]),
    "unknown preset": (["train", "GunPoint", "--preset", "bse"], 2, ["Did you mean 'base'"]),
    "width and heads": (
        ["train", "GunPoint", "--width", "20", "--heads", "3"],
        2,
        ["width 20 cannot be divided among 3 heads"],
    ),
    "run folder exists": (["train", "GunPoint", "--out", "run"], 2, ["run: exists already", "--out"]),
    "place not writable": (
        ["train", "GunPoint", "--out", "model.onnx/run"],
        2,
        ["model.onnx", "cannot be written", "--out"],
    ),
    "unknown label column": (["train", "wide.csv", "--label", "speker"], 2, ["'speker'", "speaker"]),
    "device not there": (["train", "GunPoint", "--device", "cuda"], 3, ["--device cuda", "Usable: cpu"]),
    "export of nothing": (["export", "onnx", "nowhere"], 2, ["nowhere: no such run folder"]),
    "export of a model file": (["export", "onnx", "model.onnx"], 2, ["model.onnx", "run folder"]),
    "export to a folder": (["export", "onnx", "run", "-o", "."], 2, ["not a place for a file"]),
    "export without weights": (["export", "onnx", "bare"], 2, ["bare", "model.safetensors is missing"]),
    "export on other data": (
        ["export", "onnx", "run", "-o", "other.onnx", "--data", "GunPoint"],
        2,
        ["1 channel", "12"],
    ),
    "predict of a run without weights": (
        ["predict", "bare", "wide.csv", "-o", "out.csv"],
        2,
        ["bare", "model.safetensors is missing"],
    ),
    "no such option value": (["train", "GunPoint", "--epochs", "0"], 2, ["--epochs"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_once_and_nothing_is_left(case: str, bench: Path) -> None:
    (bench / "bare").mkdir(exist_ok=True)
    (bench / "bare" / "config.yaml").write_text((bench / "run" / "config.yaml").read_text("utf-8"), "utf-8")
    words, code, says = WRONG[case]
    before = {path.name for path in bench.rglob("*")}
    done = tsattn(bench, *words)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in says:
        assert part in done.stderr
    assert {path.name for path in bench.rglob("*")} == before


def test_the_demo(tmp_path: Path) -> None:
    """The commands it shows are run, and the CSV's accuracy is the run's."""
    done = tsattn(tmp_path, "demo", "--out", "shown")
    assert done.returncode == 0, done.stderr
    for name in ("run/model.safetensors", "run/model.onnx", "test.csv", "answers.csv"):
        assert (tmp_path / "shown" / name).is_file()
    assert "the accuracy of the run itself" in done.stdout
    assert done.stdout.count("$ tsattn ") == 4
    truth = {row[0]: row[-1] for row in rows(tmp_path / "shown" / "test.csv")[1:]}
    said = {row[0]: row[1] for row in rows(tmp_path / "shown" / "answers.csv")[1:]}
    right = sum(said[case] == label for case, label in truth.items()) / len(truth)
    assert right == json.loads((tmp_path / "shown/run/metrics.json").read_text())["test"]["accuracy"] > 0.97

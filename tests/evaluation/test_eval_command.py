"""`tsattn eval` on a run that was trained and exported for it.

One test runs a real process; the others call the console script's entry point in this one, which
spares each of them the seconds that imports take.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import Command, command_in, document

from tsattn.cli.report_tables import show_report
from tsattn.data.sources import embedded_folder
from tsattn.evaluation.metrics import report

SET = "BasicMotions"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """command(*words): `tsattn WORDS…` in `place`."""
    return command_in(place, monkeypatch, capsys)


@pytest.fixture
def eval_(command: Command) -> Command:
    """eval_(*words): `tsattn eval WORDS…` in `place`."""
    return partial(command, "eval")


def process(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tsattn", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=cwd, env=environment)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`, trained for two epochs, and `model.onnx` made from it."""
    place = tmp_path_factory.mktemp("eval")
    small = ("--tokens", "linear", "--attention", "softmax", "--width", "16", "--layers", "1")
    for words in (
        ("train", SET, *small, "--epochs", "2", "--out", "run"),
        ("export", "onnx", "run", "-o", "model.onnx"),
    ):
        done = process(*words, cwd=place)
        assert done.returncode == 0, done.stderr
    return place


def test_a_run_and_its_model_file_give_the_same_figures(eval_: Command) -> None:
    run, model = document(eval_("run", "--json")), document(eval_("model.onnx", SET, "--json"))
    for figure in ("cases", "accuracy", "balanced_accuracy", "macro_f1", "majority_accuracy"):
        assert run[figure] == model[figure]
    assert run["confusion"] == model["confusion"]
    assert run["classes"] == model["classes"]
    assert run["log_loss"] == pytest.approx(model["log_loss"], abs=1e-5)
    assert (run["provider"], model["provider"]) == ("torch cpu", "CPUExecutionProvider")
    assert run["cases"] == 40


def test_the_run_folder_keeps_the_test_figures_and_only_those(
    eval_: Command, place: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(place / "run", tmp_path / "run")
    metrics = run / "metrics.json"
    before = json.loads(metrics.read_text())
    before.pop("test", None)
    metrics.write_text(json.dumps(before))
    on_train = eval_(run, "--split", "train", "--json")
    assert "trained on these cases" in on_train.err
    assert document(on_train)["cases"] == 40
    assert json.loads(metrics.read_text()) == before
    found = document(eval_(run, "--json"))
    noted = json.loads(metrics.read_text())["test"]
    assert noted == {name: found[name] for name in noted}
    assert noted["cases"] == 40


def test_a_person_sees_three_tables_and_no_remark(place: Path) -> None:
    done = process("eval", "model.onnx", cwd=place)
    assert done.returncode == 0, done.stderr
    for word in ("accuracy", "balanced accuracy", "macro F1", "log loss", "always", "Badminton", "Confusion"):
        assert word in done.stdout
    assert done.stderr == ""


def test_a_file_of_the_same_problem_can_be_judged(eval_: Command) -> None:
    folder = embedded_folder(SET)
    assert folder is not None
    by_file = document(eval_("model.onnx", folder / f"{SET}_TEST.ts", "--json"))
    assert by_file["confusion"] == document(eval_("model.onnx", "--json"))["confusion"]


WRONG = {
    "no model": (("nowhere.onnx", SET), "nowhere.onnx"),
    "not a run": ((".", SET), "config.yaml"),
    "no source": (("model.onnx", "nowhere.ts"), "no such file"),
    "near name": (("model.onnx", "BasicMotion"), "BasicMotions"),
    "other channels": (("model.onnx", "JapaneseVowels"), "12 channels"),
    "unknown column": (("model.onnx", "other.csv", "--label", "klass"), "klass"),
    "unknown split": (("model.onnx", SET, "--split", "validation"), "--split"),
    "unknown labels": (("model.onnx", "other.csv"), "'swim'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_one_message(case: str, eval_: Command, place: Path) -> None:
    words, expected = WRONG[case]
    columns = [f"dim_{channel}_{time}" for channel in range(6) for time in range(3)]
    rows = [[*columns, "class"], [*["0.5"] * 18, "swim"], [*["0.1"] * 18, "swim"]]
    (place / "other.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    done = eval_(*words)
    assert done.code == 2, done.err
    assert done.out == ""
    assert expected in done.err
    assert "Traceback" not in done.err


def test_many_classes_show_pairs_and_point_to_json(capsys: pytest.CaptureFixture[str]) -> None:
    letters = tuple("abcdefghijklmnopqrstuvwxyz")
    each_taken_for_the_next = np.roll(np.eye(26), 1, axis=1)
    show_report(report(each_taken_for_the_next, letters, letters), "model on letters", "numpy")
    shown = capsys.readouterr().out
    assert "Most frequent confusions" in shown
    assert "--json" in shown
    assert "Confusion (row" not in shown


def test_markup_in_labels_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(report(np.eye(2), ("[red]", "[/]"), ("[red]", "[/]")), "[bold]x", "numpy")
    shown = capsys.readouterr().out
    assert "[red]" in shown
    assert "[/]" in shown
    assert "[bold]x" in shown


def test_heads_are_a_table_more_and_change_no_figure(eval_: Command, place: Path) -> None:
    plain, recorded = document(eval_("run", "--json")), (place / "run" / "metrics.json").read_text()
    found = document(eval_("run", "--heads", "--json"))
    (layer,) = found.pop("heads")
    assert found == plain
    assert (place / "run" / "metrics.json").read_text() == recorded
    assert layer["tokens"] == 40 * 100
    assert layer["distance"] > 0
    assert 0 < layer["cka"] < 1
    shown = eval_("run", "--heads").out
    for word in ("mean distance", "relative distance", "CKA", f"{layer['cka']:.3f}", "4,000 observed tokens"):
        assert word in shown


def test_a_model_file_shows_no_heads(command: Command) -> None:
    for words in (
        ("eval", "model.onnx", "--heads"),
        ("attention", "weights", "model.onnx", "--case", 0, "-o", "w.npz"),
    ):
        done = command(*words)
        assert done.code == 2
        assert "a model file shows only its answers. Give the run folder" in done.err


def test_the_weights_of_a_case_are_written_to_be_drawn(command: Command, place: Path) -> None:
    found = document(command("attention", "weights", "run", "--case", 3, "-o", "w.npz", "--json"))
    assert (found["layers"], found["heads"], found["tokens"], found["timepoints_per_token"]) == (1, 8, 100, 1)
    with np.load(place / "w.npz") as file:
        assert set(file) == {"weights_layer0", "observed", "starts", "ids"}
        assert file["weights_layer0"].shape == (8, 100, 100)
        np.testing.assert_allclose(file["weights_layer0"].sum(axis=2), 1, atol=1e-5)
        assert file["ids"].tolist() == ["3"]
        assert file["starts"].tolist() == list(range(100))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--case", "41", "-o", "w.npz"), "there is no case '41'. Did you mean '4' or '1'?"),
        (("--case", "x", "-o", "w.npz"), "The ids of its 40 cases go from '0' to '39'."),
        (("--case", "3", "-o", "nowhere/w.npz"), "cannot be written"),
        (("-o", "w.npz"), "--case"),
    ],
)
def test_a_case_that_is_not_there_is_said(command: Command, words: tuple[str, ...], expected: str) -> None:
    done = command("attention", "weights", "run", *words)
    assert done.code == 2
    assert done.out == ""
    assert expected in done.err


def test_the_commands_of_the_document_on_heads(command: Command, place: Path) -> None:
    text = (ROOT / "docs" / "attention.md").read_text("utf-8")
    (commands,) = re.findall(r"## What a head does.*?```sh\n(.*?)```", text, re.DOTALL)
    for line in commands.strip().splitlines():
        done = command(*shlex.split(line)[1:])
        assert done.code == 0, (line, done.err)
    assert (place / "case3.npz").is_file()

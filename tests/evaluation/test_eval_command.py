"""`tsattn eval` on a run that was trained and exported for it.

One test runs a real process; the others call the console script's entry point in this one, which
spares each of them the seconds that imports take.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tsattn.cli.app import main
from tsattn.cli.report_tables import show_report
from tsattn.data.sources import embedded_folder
from tsattn.evaluation.metrics import report

SET = "BasicMotions"
ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Eval = Callable[..., Done]


@pytest.fixture
def eval_(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Eval:
    """eval_(*words): `tsattn eval WORDS…` in `place`."""

    logger = logging.getLogger("tsattn")  # which the command line takes over

    def call(*words: object) -> Done:
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", True)
        monkeypatch.chdir(place)
        monkeypatch.setattr(sys, "argv", ["tsattn", "eval", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return Done(int(left.value.code or 0), captured.out, captured.err)

    return call


def document(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


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


def test_a_run_and_its_model_file_give_the_same_figures(eval_: Eval) -> None:
    run, model = document(eval_("run", "--json")), document(eval_("model.onnx", SET, "--json"))
    for figure in ("cases", "accuracy", "balanced_accuracy", "macro_f1", "majority_accuracy"):
        assert run[figure] == model[figure]
    assert run["confusion"] == model["confusion"]
    assert run["classes"] == model["classes"]
    assert run["log_loss"] == pytest.approx(model["log_loss"], abs=1e-5)
    assert (run["provider"], model["provider"]) == ("torch cpu", "CPUExecutionProvider")
    assert run["cases"] == 40


def test_the_run_folder_keeps_the_test_figures_and_only_those(
    eval_: Eval, place: Path, tmp_path: Path
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


def test_a_file_of_the_same_problem_can_be_judged(eval_: Eval) -> None:
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
def test_what_is_wrong_is_said_in_one_message(case: str, eval_: Eval, place: Path) -> None:
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

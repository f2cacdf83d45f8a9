"""--track: what a tracker gets, that it goes on with a resumed run, and that it can harm no training."""

from __future__ import annotations

import csv
import json
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.data.columns import TableOptions
from tsattn.errors import InputError, Interrupted
from tsattn.runs import read_config
from tsattn.training import preparing, tracking, workflow
from tsattn.training.trackers import TRACKERS, Known, Tracking

SMALL = {"epochs": 4, "width": 8, "heads": 2, "layers": 1, "tokens": "linear"}
FIGURES = {"train_loss", "train_accuracy", "learning_rate", "gradient_norm", "seconds"}


def prepare(out: Path, track: str | None = None, preset: str = "base", **asked: Any) -> preparing.Prepared:
    return preparing.prepare(
        "BasicMotions",
        asked={**SMALL, "track": track, **asked},
        preset=preset,
        device="cpu",
        threads=1,
        out=out,
        table=TableOptions(),
    )


def train(out: Path, track: str | None = None, **more: Any) -> workflow.Trained:
    return workflow.train(prepare(out, track, **more), lambda epoch: None)


def train_with_a_stop(out: Path, track: str) -> None:
    """Stopped in the third epoch, then gone on with."""
    epochs: list[int] = []
    with pytest.raises(Interrupted):
        workflow.train(
            prepare(out, track), lambda epoch: epochs.append(epoch.epoch), lambda: len(epochs) == 2
        )
    workflow.train(preparing.prepare_again(out, out=out), lambda epoch: None)


def losses(run: Path) -> dict[int, float]:
    with (run / "history.csv").open(newline="", encoding="utf-8") as file:
        return {int(row["epoch"]): float(row["train_loss"]) for row in csv.DictReader(file)}


class Recorder:
    """Keeps what it is told; raises or waits at one of its calls."""

    fails_at = ""
    holds: threading.Event | None = None

    def __init__(self, given: Tracking) -> None:
        self.told: list[Any] = [given]
        self.identity = given.identity or "a-name"
        self._at("begin")

    def figures(self, figures: Mapping[str, float], epoch: int) -> None:
        self._at("figures")
        self.told.append((epoch, dict(figures)))

    def end(self, figures: Mapping[str, float]) -> None:
        self._at("end")
        self.told.append(dict(figures))

    def close(self) -> None:
        if self.holds is not None:
            self.holds.wait(20)
        self._at("close")
        self.told.append("closed")

    def _at(self, call: str) -> None:
        if call == self.fails_at:
            raise RuntimeError(f"no\n{call}")


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    made: list[Recorder] = []

    def begin(given: Tracking) -> Recorder:
        made.append(Recorder(given))
        return made[-1]

    monkeypatch.setitem(TRACKERS, "recorder", Known("json", begin))
    monkeypatch.setattr(Recorder, "fails_at", "")
    monkeypatch.setattr(Recorder, "holds", None)
    return made


def test_a_tracker_gets_configuration_epochs_and_the_end(tmp_path: Path, recorders: list[Recorder]) -> None:
    out = tmp_path / "runs" / "mine"
    trained = train(out, "recorder")
    begin, *epochs, end, closed = recorders[0].told
    assert begin.config == read_config(out)
    assert begin.name == "runs/mine"
    assert not begin.resumed
    assert begin.settings()["training.epochs"] == "4"
    assert begin.settings()["protocol"].startswith("last: all 40 cases")
    assert {number: figures["train_loss"] for number, figures in epochs} == losses(out)
    assert all(set(figures) == FIGURES for _, figures in epochs)
    assert end["train_accuracy"] == trained.metrics["train"]["accuracy"]
    assert end["epoch"] == 4
    assert closed == "closed"
    assert json.loads((out / "tracking.json").read_text("utf-8")) == {"recorder": "a-name"}


def test_a_resumed_training_is_found_again(tmp_path: Path, recorders: list[Recorder]) -> None:
    train_with_a_stop(tmp_path / "run", "recorder")
    first, second = (recorder.told for recorder in recorders)
    assert [word[0] for word in first[1:-1]] == [1, 2]
    assert first[-1] == "closed"
    assert (second[0].resumed, second[0].identity) == (True, "a-name")
    assert [word[0] for word in second[1:-2]] == [3, 4]


@pytest.mark.parametrize("call", ["begin", "figures", "end", "close"])
def test_a_tracker_that_fails_costs_one_remark(
    call: str,
    tmp_path: Path,
    recorders: list[Recorder],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    train(tmp_path / "without")
    monkeypatch.setattr(Recorder, "fails_at", call)
    train(tmp_path / "with", "recorder")
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"From here on not reported to recorder: no {call}. The training goes on")
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("without", "with"))
    assert all(one[name].equal(other[name]) for name in one)
    assert losses(tmp_path / "with") == losses(tmp_path / "without")


def test_a_tracker_that_does_not_answer_is_left(
    tmp_path: Path,
    recorders: list[Recorder],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tracking, "PATIENCE", 0.05)
    monkeypatch.setattr(Recorder, "holds", threading.Event())
    train(tmp_path / "run", "recorder")
    assert Recorder.holds is not None
    (waiting,) = (thread for thread in threading.enumerate() if thread.name == "track-recorder")
    assert waiting.daemon  # python would not end before another one
    Recorder.holds.set()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("recorder did not answer within")


def test_where_the_word_comes_from(tmp_path: Path, recorders: list[Recorder]) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("training:\n  track: recorder\n", "utf-8")
    train(tmp_path / "preset", preset=str(mine))
    assert len(recorders) == 1
    train(tmp_path / "none", "none", preset=str(mine))
    assert len(recorders) == 1
    assert not (tmp_path / "none" / "tracking.json").exists()


def test_seeds_are_runs_of_their_own_and_a_reproduction_is_none(
    tmp_path: Path, recorders: list[Recorder]
) -> None:
    words = [str(word) for name, value in SMALL.items() for word in (f"--{name}", value)]
    many = ["train", "BasicMotions", *words, "--threads", "1", "--seeds", "2", "--out", str(tmp_path / "two")]
    # What is finished stays, wherever it was reported to.
    for typed in ([*many, "--track", "recorder"], many, ["reproduce", str(tmp_path / "two" / "seed1")]):
        done = CliRunner().invoke(app, typed, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert [recorder.told[0].name for recorder in recorders] == ["two/seed0", "two/seed1"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("tensorbord", "--track tensorbord: no such tracker. Known: tensorboard, mlflow, wandb, "),
        ("mlflow+none", "--track none: stands by itself."),
        ("absent", r"needs the package no_such_package, .* Type `pip install 'tsattn\[absent\]'`\."),
    ],
)
def test_what_cannot_be_tracked_is_said_before_data_are_read(
    word: str, message: str, recorders: list[Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(_: Tracking) -> Recorder:
        raise AssertionError

    monkeypatch.setitem(TRACKERS, "absent", Known("no_such_package", begin))
    typed = [part for one in word.split("+") for part in ("--track", one)]
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["train", "no-such-file.csv", *typed], catch_exceptions=False)


def test_a_package_that_is_gone_does_not_keep_a_run_from_going_on(
    tmp_path: Path,
    recorders: list[Recorder],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    epochs: list[int] = []
    out = tmp_path / "run"
    with pytest.raises(Interrupted):
        workflow.train(prepare(out, "recorder"), lambda e: epochs.append(e.epoch), lambda: len(epochs) == 2)
    monkeypatch.setitem(TRACKERS, "recorder", Known("no_such_package", Recorder))
    workflow.train(preparing.prepare_again(out, out=out), lambda epoch: None)
    assert len(losses(out)) == 4
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "Not reported to recorder: --track recorder needs the package" in caplog.text


def test_tensorboard_shows_each_epoch_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "run"
    train_with_a_stop(out, "tensorboard")
    events = EventAccumulator(str(out / "tensorboard")).Reload()
    shown = {event.step: event.value for event in events.Scalars("train_loss")}
    assert shown == pytest.approx(losses(out))
    assert set(events.Tags()["scalars"]) >= FIGURES | {"final/train_accuracy"}
    assert "config/text_summary" in events.Tags()["tensors"]
    assert "_hparams_/session_start_info" in events.summary_metadata


def test_mlflow_has_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    out = tmp_path / "run"
    train_with_a_stop(out, "mlflow")
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("tsattn").experiment_id])
    assert run.info.status == "FINISHED"
    history = client.get_metric_history(run.info.run_id, "train_loss")
    assert {metric.step: metric.value for metric in history} == pytest.approx(losses(out))
    assert run.data.metrics["final/epoch"] == 4
    assert run.data.params["model.attention"] == "bn+sh"


def test_wandb_keeps_the_run_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    out = tmp_path / "run"
    train(out, "wandb")
    (place,) = (out / "wandb").glob("offline-run-*/*.wandb")
    content = place.read_bytes()
    for loss in losses(out).values():
        assert json.dumps(loss).encode() in content
    assert b"final/train_accuracy" in content

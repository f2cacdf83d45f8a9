"""A model trained on windows answers for whole recordings, or window by window, through the real commands."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tsattn.data.collection import Collection
from tsattn.data.write_tables import write_long_csv

SMALL = ["--epochs", "3", "--width", "16", "--heads", "2", "--layers", "1"]


def tsattn(place: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tsattn", *words], cwd=place, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of 150 to 189 timepoints, slow or fast waves, and a model of windows of 40."""
    folder = tmp_path_factory.mktemp("recordings")
    generator = np.random.default_rng(0)
    values = np.full((20, 1, 189), np.nan, np.float32)
    for case in range(20):
        length, rate = 150 + 2 * case, (0.1, 0.9)[case % 2]
        values[case, 0, :length] = np.sin(rate * np.arange(length)) + 0.1 * generator.normal(size=length)
    waves = Collection(
        values=values,
        ids=tuple(f"machine {case}" for case in range(20)),
        channels=("speed",),
        labels=tuple(("slow", "fast")[case % 2] for case in range(20)),
        classes=("fast", "slow"),
    )
    write_long_csv(waves, folder / "waves.csv")
    tsattn(folder, "train", "waves.csv", "--window", "40", "--stride", "20", "--out", "run", *SMALL)
    tsattn(folder, "export", "onnx", "run", "-o", "model.onnx")
    return folder


@pytest.mark.parametrize("model", ["run", "model.onnx"])
def test_a_row_a_recording_is_the_mean_of_its_windows(model: str, place: Path) -> None:
    tsattn(place, "predict", model, "waves.csv", "-o", "whole.csv", "--proba")
    tsattn(place, "predict", model, "waves.csv", "-o", "windows.csv", "--proba", "--per", "window")
    whole, windows = rows(place / "whole.csv"), rows(place / "windows.csv")
    assert [row["id"] for row in whole] == [f"machine {case}" for case in range(20)]
    assert windows[1]["id"] == "machine 0@20"
    for row in whole:
        own = [float(w["probability_slow"]) for w in windows if w["id"].startswith(row["id"] + "@")]
        assert len(own) >= 7
        assert float(row["probability_slow"]) == pytest.approx(np.mean(own), abs=2e-6)


def test_judged_per_recording_and_per_window(place: Path) -> None:
    whole = json.loads(tsattn(place, "eval", "model.onnx", "waves.csv", "--json"))
    windows = json.loads(tsattn(place, "eval", "model.onnx", "waves.csv", "--json", "--per", "window"))
    assert whole["cases"] == 20
    assert windows["cases"] == len(rows(place / "windows.csv"))
    assert whole["accuracy"] > 0.9


def test_a_log_whose_label_changes(tmp_path: Path) -> None:
    """An hour of a machine that runs and idles: windows learn it, and each window is answered."""
    generator = np.random.default_rng(0)
    lines = ["machine,second,load,state"]
    for machine in ("m1", "m2"):
        for second in range(600):
            running = second // 100 % 2 == 1
            lines.append(
                f"{machine},{second},{5 * running + generator.normal():.3f},{'run' if running else 'idle'}"
            )
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    roles = ["--id", "machine", "--time", "second", "--label", "state"]
    tsattn(tmp_path, "train", "log.csv", "--window", "20", "--out", "run", *roles, *SMALL)
    tsattn(tmp_path, "export", "onnx", "run", "-o", "model.onnx")
    judged = json.loads(tsattn(tmp_path, "eval", "model.onnx", "log.csv", "--per", "window", "--json"))
    assert judged["cases"] == 2 * 59
    assert judged["accuracy"] > 0.9
    for model in ("run", "model.onnx"):
        assert json.loads(tsattn(tmp_path, "eval", model, "log.csv", "--json"))["cases"] == 2 * 59
    tsattn(tmp_path, "predict", "model.onnx", "log.csv", "-o", "states.csv", "--per", "window")
    answered = {row["id"]: row["label"] for row in rows(tmp_path / "states.csv")}
    assert (answered["m1@40"], answered["m1@140"]) == ("idle", "run")

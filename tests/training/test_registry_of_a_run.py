"""A run remembers the registry that named its data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.write_tables import write_long_csv


def run(*words: str) -> str:
    done = CliRunner().invoke(app, words, prog_name="tsattn", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_eval_and_export_find_the_data_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        cases = load_split("BasicMotions", split, TableOptions()).collection
        write_long_csv(cases, tmp_path / f"{split}.csv")
    (tmp_path / "mine.yaml").write_text("my-sensors:\n  train: train.csv\n  test: test.csv\n")
    small = ["--width", "8", "--heads", "2", "--layers", "1", "--tokens", "linear", "--epochs", "1"]
    run("train", "my-sensors", "--registry", "mine.yaml", *small, "--out", "made")
    report = json.loads(run("eval", "made", "--json"))
    assert report["cases"] == 40
    assert "test" in json.loads((tmp_path / "made" / "metrics.json").read_text())
    run("export", "onnx", "made")
    assert json.loads(run("eval", "made/model.onnx", "--json"))["accuracy"] == report["accuracy"]

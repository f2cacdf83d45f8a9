"""A run folder predicts what the model file exported from it predicts."""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np

SPEC = importlib.util.find_spec("aeon")
assert SPEC is not None
assert SPEC.submodule_search_locations is not None
VOWELS = Path(SPEC.submodule_search_locations[0]) / "datasets/data/JapaneseVowels/JapaneseVowels_TEST.ts"


def tsattn(*words: object) -> str:
    command = [sys.executable, "-m", "tsattn", *map(str, words)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stderr


def table(path: Path) -> tuple[list[list[str]], np.ndarray]:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    numbers = np.array([[float(cell) for cell in row[2:]] for row in rows[1:]])
    return [rows[0], *(row[:2] for row in rows[1:])], numbers


def test_a_run_folder_predicts_the_same_file(tmp_path: Path) -> None:
    small = (
        "--epochs",
        1,
        "--width",
        16,
        "--heads",
        2,
        "--layers",
        1,
        "--tokens",
        "linear",
        "--device",
        "cpu",
    )
    tsattn("train", "JapaneseVowels", "--attention", "bn+sh", *small, "--out", tmp_path / "run")
    tsattn("export", "onnx", tmp_path / "run", "-o", tmp_path / "model.onnx")
    said = tsattn(
        "predict", tmp_path / "run", VOWELS, "-o", tmp_path / "run.csv", "--proba", "--device", "cpu"
    )
    assert "torch cpu" in said
    tsattn("predict", tmp_path / "model.onnx", VOWELS, "-o", tmp_path / "onnx.csv", "--proba")
    names, shares = table(tmp_path / "run.csv")
    other_names, other_shares = table(tmp_path / "onnx.csv")
    assert names == other_names
    assert len(names) == 371
    np.testing.assert_allclose(shares, other_shares, atol=1e-4)

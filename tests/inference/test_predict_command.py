"""`tsattn predict` in real processes, on real series and on whatever can be wrong."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tsattn.data.collection import Collection
from tsattn.data.ts import read_ts

MakeModel = Callable[..., Path]

SPEC = importlib.util.find_spec("aeon")
assert SPEC is not None
assert SPEC.submodule_search_locations is not None
VOWELS = Path(SPEC.submodule_search_locations[0]) / "datasets/data/JapaneseVowels/JapaneseVowels_TEST.ts"
CHANNELS = tuple(f"c{i}" for i in range(12))
CLASSES = tuple("123456789")


def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tsattn", "predict", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, cwd=cwd, env=environment
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def confidences(rows: list[dict[str, str]]) -> list[float]:
    return [float(row["confidence"]) for row in rows]


@pytest.fixture(scope="module")
def vowels() -> Collection:
    """Every fourth test case of JapaneseVowels: 12 channels, unequal lengths."""
    return read_ts(VOWELS).take(np.arange(0, 370, 4))


def write_long(cases: Collection, path: Path, ids: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "t", *CHANNELS])
        for name, values, length in zip(ids, cases.values, cases.lengths, strict=True):
            writer.writerows([name, t, *map(str, values[:, t])] for t in range(length))
    return path


def write_wide(cases: Collection, path: Path, ids: list[str]) -> Path:
    timepoints = cases.values.shape[2]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", *(f"{c}_{t}" for c in CHANNELS for t in range(timepoints))])
        for name, values in zip(ids, cases.values, strict=True):
            writer.writerow([name, *("" if np.isnan(v) else str(v) for v in values.ravel())])
    return path


def test_both_layouts_and_ts_give_the_same_rows_in_the_order_of_the_input(
    make_model: MakeModel, vowels: Collection, tmp_path: Path
) -> None:
    model = make_model(CLASSES, CHANNELS)
    ids = [f"case {n}" for n in reversed(range(len(vowels)))]
    long = write_long(vowels, tmp_path / "long.csv", ids)
    wide = write_wide(vowels, tmp_path / "wide.csv", ids)
    outputs = [tmp_path / f"{n}.csv" for n in range(4)]
    for words in (
        (model, long, "-o", outputs[0], "--id", "case", "--time", "t"),
        (model, wide, "-o", outputs[1], "--id", "case"),
        (model, wide, "-o", outputs[2], "--id", "case", "--batch-size", "7", "--threads", "3"),
        (model, VOWELS, "-o", outputs[3]),
    ):
        result = run(*words)
        assert result.returncode == 0, result.stderr
        assert "CPUExecutionProvider" in result.stderr
        assert "cases/s" in result.stdout
    first = rows_of(outputs[0])
    assert [row["id"] for row in first] == ids
    assert [row["id"] for row in rows_of(outputs[1])] == [row["id"] for row in rows_of(outputs[2])] == ids
    assert len(rows_of(outputs[3])) == 370
    for other in (rows_of(outputs[1]), rows_of(outputs[2]), rows_of(outputs[3])[::4]):
        assert [row["label"] for row in other] == [row["label"] for row in first]
        np.testing.assert_allclose(confidences(other), confidences(first), atol=2e-6)
    assert len({row["label"] for row in first}) > 2


def test_probabilities_sum_to_one_and_confidence_is_the_largest(
    make_model: MakeModel, vowels: Collection, tmp_path: Path
) -> None:
    wide = write_wide(vowels, tmp_path / "wide.csv", [str(n) for n in range(93)])
    result = run(
        make_model(CLASSES, CHANNELS), wide, "-o", tmp_path / "o.csv", "--id", "case", "--proba", "--json"
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["cases"] == 93
    for row in rows_of(tmp_path / "o.csv"):
        shares = {name: float(row[f"probability_{name}"]) for name in CLASSES}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
        assert max(shares, key=lambda name: shares[name]) == row["label"]
        assert row["confidence"] == row[f"probability_{row['label']}"]


def test_odd_ids_and_labels_come_back_as_they_went_in(make_model: MakeModel, tmp_path: Path) -> None:
    classes = ("a,b", 'say "x"', " lead", "NaN", "1.0", "zwei\nZeilen", "🙂")
    source = tmp_path / "in.csv"
    ids = ["001", "1.0", "a,b", 'q"q', "é", " x "]
    with source.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "t", "x"])
        writer.writerows([name, t, 0.5 * n - 1] for n, name in enumerate(ids) for t in range(3))
    result = run(
        make_model(classes, ("x",)),
        source,
        "-o",
        tmp_path / "o.csv",
        "--id",
        "case",
        "--time",
        "t",
        "--proba",
    )
    assert result.returncode == 0, result.stderr
    rows = rows_of(tmp_path / "o.csv")
    assert [row["id"] for row in rows] == ids
    assert {row["label"] for row in rows} <= set(classes)
    assert list(rows[0])[3:] == [f"probability_{name}" for name in classes]


def test_columns_named_in_training_are_found_again_and_labels_ignored(
    make_model: MakeModel, tmp_path: Path
) -> None:
    model = make_model(
        ("a", "b"), ("x", "y"), {"layout": "long", "id": "subject", "time": "at", "label": "what"}
    )
    body = "\n".join(f"{n},{t},{n + t},{n - t},{'q' if n else 7}" for n in range(3) for t in range(4))
    source = tmp_path / "in.csv"
    source.write_text(f"subject,at,x,y,what\n{body}\n")
    result = run(model, source, source, "-o", tmp_path / "o.csv")
    assert result.returncode == 0, result.stderr
    assert [row["id"] for row in rows_of(tmp_path / "o.csv")] == ["0", "1", "2", "0", "1", "2"]


def test_neither_torch_nor_aeon_is_imported(
    make_model: MakeModel, vowels: Collection, tmp_path: Path
) -> None:
    wide = write_wide(vowels, tmp_path / "wide.csv", [str(n) for n in range(93)])
    words = ["tsattn", "predict", str(make_model(CLASSES, CHANNELS)), str(wide), "--id", "case"]
    program = (
        f"import sys; sys.argv = {[*words, '-o', str(tmp_path / 'o.csv')]!r}\n"
        "from tsattn.cli.app import main\n"
        "try: main()\n"
        "finally: print('MODULES', *sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    modules = result.stdout.split("MODULES")[1].split()
    assert "onnxruntime" in modules
    assert not {"torch", "aeon", "sklearn", "matplotlib", "pandas", "onnx", "numba"} & set(modules)


@pytest.mark.parametrize("trained", ["long", "wide"])
def test_a_file_in_the_other_layout_than_in_training_is_read_right(
    trained: str, make_model: MakeModel, vowels: Collection, tmp_path: Path
) -> None:
    time_column = {"time": "t"} if trained == "long" else {}
    model = make_model(CLASSES, CHANNELS, {"layout": trained, "id": "case", **time_column})
    ids = [str(n) for n in range(len(vowels))]
    for name, write in (("long", write_long), ("wide", write_wide)):
        source = write(vowels, tmp_path / f"{name}.csv", ids)
        typed = ("--time", "t") if (name, trained) == ("long", "wide") else ()
        result = run(model, source, "-o", tmp_path / f"{name}.out.csv", *typed)
        assert result.returncode == 0, result.stderr
    long, wide = (rows_of(tmp_path / f"{name}.out.csv") for name in ("long", "wide"))
    assert [row["id"] for row in long] == [row["id"] for row in wide] == ids
    assert [row["label"] for row in long] == [row["label"] for row in wide]

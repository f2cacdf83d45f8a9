"""cell.json: written whole, read strictly."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tsattn.errors import InputError
from tsattn.sweeps.cell import CELL, Cell, cell_folder, file_name, read_cell, read_cells, write_cell

METRICS = {
    "accuracy": 0.5,
    "balanced_accuracy": 0.5,
    "macro_f1": 0.4,
    "log_loss": None,
    "calibration_error": None,
}
DONE = Cell(
    data="GunPoint", method="bn+sh width=64", kind="transformer", seed=3, status="done", finished="now",
    grid={"width": 64}, metrics=dict(METRICS),
)  # fmt: skip


def test_cells_of_before_lack_the_calibration_error() -> None:
    metrics = {name: value for name, value in METRICS.items() if name != "calibration_error"}
    text = dataclasses.replace(DONE, metrics=metrics).to_json()
    assert Cell.from_json(text, "cell.json").metrics == metrics


def test_a_cell_is_there_once_it_is_finished(tmp_path: Path) -> None:
    folder = cell_folder(tmp_path, DONE.data, DONE.method, DONE.seed)
    assert folder == tmp_path / "cells" / "GunPoint" / "bn+sh@width=64" / "seed3"
    assert read_cell(folder) is None
    folder.mkdir(parents=True)
    write_cell(folder, DONE)
    assert read_cell(folder) == DONE
    assert list(read_cells(tmp_path)) == [DONE]
    assert [file.name for file in folder.iterdir()] == [CELL]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "of format 2"),
        ({"seed": "3"}, "seed is '3'"),
        ({"seed": True}, "seed is True"),
        ({"data": None}, "data is None"),
        ({"colour": 1}, "colour is unknown"),
        ({"kind": "oracle"}, "kind is 'oracle'"),
        ({"metrics": {}}, "metrics lacks accuracy"),
        ({"metrics": {**METRICS, "accuracy": "high"}}, "accuracy 'high'"),
        ({"metrics": {**METRICS, "accuracy": 7}}, "accuracy 7"),
        ({"metrics": {**METRICS, "macro_f1": float("nan")}}, "macro_f1 nan"),
        ({"metrics": {**METRICS, "accuracy": None}}, "accuracy None"),
        ({"metrics": {**METRICS, "log_loss": float("inf")}}, "log_loss inf"),
        ({"seed": -1}, "seed is -1"),
        ({"train_seconds": float("nan")}, "train_seconds is nan"),
    ],
)
def test_what_is_no_cell_is_refused_with_its_place(change: dict[str, Any], said: str) -> None:
    text = json.dumps({**json.loads(DONE.to_json()), **change})
    with pytest.raises(InputError, match=said) as refused:
        Cell.from_json(text, "here/cell.json")
    assert "here/cell.json" in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 1}', "[" * 100_000])
def test_no_json_is_no_cell(text: str) -> None:
    with pytest.raises(InputError, match=r"cell\.json"):
        Cell.from_json(text, "cell.json")


def test_any_file_system_takes_the_names() -> None:
    assert file_name("local:32+bn+sh:1,1,2") == "local-32+bn+sh-1,1,2"
    assert file_name("a/b\\c:d*") == "a-b-c-d-"
    assert file_name("softmax lr=0.001") == "softmax@lr=0.001"

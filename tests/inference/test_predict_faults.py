"""Faults that might cost a case beside them, or the meaning of what is written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tsattn.data.columns import TableOptions
from tsattn.inference.pipeline import Wanted, predict_files
from tsattn.inference.session import OnnxPredictor, open_model

MakeModel = Callable[..., Path]


@pytest.fixture
def model(make_model: MakeModel) -> OnnxPredictor:
    return open_model(make_model(("a", "b"), ("x", "y")), "cpu", 2, parallel_calls=True)


def marked(model: OnnxPredictor, source: Path, text: str, **how: Any) -> list[tuple[str, str | None]]:
    """The id and the error of every row."""
    source.write_text(text, newline="")
    out = io.BytesIO()
    wanted = Wanted(format="jsonl", on_error="mark", **how)
    predict_files(model, [source], out, TableOptions(), batch_size=5, wanted=wanted, threads=2)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all((row["label"] is None) == (row["error"] is not None) for row in rows)
    return [(row["id"], row["error"]) for row in rows]


def long_rows(*names: str) -> str:
    return "".join(f"{name},{t},{t}.5,1\n" for name in names for t in range(3))


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize(
    "faulty", ["s,0,high,1\n", "s,0,inf,1\n", "s,0,1,1\ns,zz,1,1\n", "s,0,?!,1\ns,1,?!,1\n"]
)
def test_a_case_of_faulty_rows_stays_one_and_leaves_its_neighbours_alone(
    faulty: str, sort: bool, model: OnnxPredictor, tmp_path: Path
) -> None:
    cases = (faulty, long_rows("a"), faulty.replace("s", "t"), long_rows("b"), faulty.replace("s", "u"))
    text = "id,time,x,y\n" + "".join(cases)
    rows = marked(model, tmp_path / "in.csv", text, sort=sort)
    assert [name for name, _ in rows] == ["s", "a", "t", "b", "u"]
    assert [name for name, error in rows if error] == ["s", "t", "u"]


def test_files_put_one_behind_the_other_with_their_headers(model: OnnxPredictor, tmp_path: Path) -> None:
    parts = [f"id,time,x,y\n{long_rows(*names)}" for names in (("a", "b"), ("c",), ("d",))]
    rows = marked(model, tmp_path / "in.csv", "".join(parts))
    assert [name for name, _ in rows] == ["a", "b", "", "c", "", "d"]
    assert [error for _, error in rows if error] == [
        f"{tmp_path / 'in.csv'}:{line}: the header again. Remove the line." for line in (8, 12)
    ]


def test_a_carriage_return_in_a_cell_beside_a_faulty_row(model: OnnxPredictor, tmp_path: Path) -> None:
    text = 'id,x_0,x_1,y_0,y_1\n"a\rb",1,2,3,4\nc,high,2,3,4\n"d\r\ne",1,2,3,4\n'
    rows = marked(model, tmp_path / "in.csv", text)
    assert [name for name, _ in rows] == ["a\rb", "c", "d\r\ne"]
    assert [name for name, error in rows if error] == ["c"]


def test_digits_of_other_scripts_are_a_fault_of_their_row(model: OnnxPredictor, tmp_path: Path) -> None:
    rows = marked(model, tmp_path / "in.csv", "id,x_0,x_1,y_0,y_1\na,1,2,3,4\nb,١٢,2,3,4\n")
    assert [(name, "'١٢'" in (error or "")) for name, error in rows] == [("a", False), ("b", True)]

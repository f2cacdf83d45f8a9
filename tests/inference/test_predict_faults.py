"""Faults that might cost a case beside them, or the meaning of what is written."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from tsattn.card import ModelCard
from tsattn.cli.app import app
from tsattn.data.columns import TableOptions
from tsattn.errors import InputError
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


ODD = 'a,"b"\r\nc'


def test_odd_text_comes_back_from_every_form_of_output(make_model: MakeModel, tmp_path: Path) -> None:
    """Read by pandas, as users do; the same name twice would lose a column there."""
    model = open_model(make_model((ODD, "ü\r", "\u2028😀"), ("x", "y")), "cpu", 2)
    source, proba = tmp_path / "in.csv", [f"probability_{name}" for name in model.card.classes]
    rows = [[f"i\r{n}", *np.random.default_rng(n).normal(size=4), f"s\r{n}", "k", "e"] for n in range(30)]
    header = ["id", "x_0", "x_1", "y_0", "y_1", proba[0], "kept_id", "error"]
    pd.DataFrame(rows, columns=header).to_csv(source, index=False, quoting=csv.QUOTE_ALL)
    keep = (proba[0], "id", "kept_id", "id", "error")
    wanted = Wanted(proba=True, keep=keep, on_error="mark")
    outputs = [tmp_path / name for name in ("o.csv", "o.parquet", "o.jsonl")]
    for out in outputs:
        predict_files(model, [source], out, TableOptions(), batch_size=4, wanted=wanted)
    tables = [pd.read_csv(outputs[0]), pd.read_parquet(outputs[1]), pd.read_json(outputs[2], lines=True)]
    kept = [f"kept_{proba[0]}", "kept_id", "kept_kept_id", "kept_error"]
    for table in tables:
        assert list(table) == ["id", "label", "confidence", *proba, *kept, "error"]
        assert table["id"].tolist() == table["kept_id"].tolist() == [row[0] for row in rows]
        assert table[kept[0]].tolist() == [row[5] for row in rows]
        assert set(table["label"]) == set(model.card.classes)
        assert (table["label"] == tables[0]["label"]).all()
        np.testing.assert_allclose(table[proba], tables[0][proba], atol=2e-6)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes only there")
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_whose_name_is_no_text(form: str, model: OnnxPredictor, tmp_path: Path) -> None:
    source = tmp_path / os.fsdecode(b"caf\xe9.csv")
    source.write_text("time,x,y\n0,1,2\n1,2,3\n")
    out = tmp_path / f"o.{form}"
    wanted = Wanted(resume=True)
    options = TableOptions(layout="file")
    predict_files(model, [source], out, options, batch_size=4, wanted=wanted, model=str(source))
    assert b"caf\\udce9" in out.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["", "-o", "o.csv"], "An empty word was typed"),
        (["a" * 300 + ".csv", "-o", "o.csv"], "File name too long"),
        (["in.csv", "-o", "a" * 300 + ".csv"], "File name too long"),
        (["in.csv", "-o", "loop.csv"], "leads back to itself"),
        (["in.csv", "-o", "o.csv.gz"], "not packed. Type a file ending in .csv, .jsonl or .parquet"),
        (["in.csv", "-o", "o.csv.gz", "--format", "csv"], "not packed"),
        (["in.csv", "-o", "o.JSON"], "not written as .json"),
    ],
)
def test_names_that_cannot_be_meant(
    words: list[str], said: str, make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("id,x_0,y_0\na,1,2\n")
    Path("loop.csv").symlink_to("loop.csv")
    path = make_model(("a", "b"), ("x", "y"))
    before = sorted(tmp_path.iterdir())
    done = CliRunner().invoke(app, ["predict", str(path), *words])
    assert isinstance(done.exception, InputError), done.exception
    assert said in str(done.exception)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("classes", "channels"), [(("a", "b", "c"), ("x", "y")), (("a", "b"), ("x",))])
def test_a_card_that_is_not_the_graph_s(
    classes: tuple[str, ...], channels: tuple[str, ...], make_model: MakeModel
) -> None:
    path = make_model(("a", "b"), ("x", "y"))
    proto = onnx.load(path)
    card = ModelCard.from_json(proto.metadata_props[0].value, "")
    other = replace(card, classes=classes, channels=channels, mean=(), std=())
    onnx.helper.set_model_props(proto, {"tsattn": other.to_json()})
    onnx.save(proto, path)
    with pytest.raises(InputError, match=r"the model card says \d c"):
        open_model(path, "cpu")


def test_streams_that_are_closed(
    make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a service may be. The files need none of them."""
    model, source = str(make_model(("a", "b"), ("x", "y"))), tmp_path / "in.csv"
    source.write_text("id,x_0,y_0\na,1,2\n")
    monkeypatch.setattr(sys, "stdin", None)
    main = typer.main.get_command(app)
    with pytest.raises(InputError, match="stdin is closed"):
        main(["predict", model, "-", "-o", str(tmp_path / "o.csv")], standalone_mode=False)
    main(["predict", model, str(source), "-o", str(tmp_path / "o.csv")], standalone_mode=False)
    assert (tmp_path / "o.csv").exists()
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(InputError, match="stdout is closed"):
        main(["predict", model, str(source), "-o", "-"], standalone_mode=False)


@pytest.mark.parametrize("words", [["no/in.csv"], ["no/*.csv"], ["in.ts"], ["data"]])
def test_what_may_not_be_looked_at_is_said(
    words: list[str], make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's own refusals cannot be had by root, as whom tests may run; so they are made."""
    model = make_model(("a", "b"), ("x", "y"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "no").mkdir(parents=True)
    for name in ("data/in.csv", "in.ts"):
        (tmp_path / name).write_text("id,x_0,y_0\na,1,2\n")
    stat, scan, opened = os.stat, os.scandir, io.open

    def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(path: Any = ".", *rest: Any, **how: Any) -> Any:
            if str(path).startswith(("no/", "data/no")) or (function is opened and str(path) == "in.ts"):
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *rest, **how)

        return refuse

    for place, name, function in ((os, "stat", stat), (os, "scandir", scan), (io, "open", opened)):
        monkeypatch.setattr(place, name, refusing(function))
    done = CliRunner().invoke(app, ["predict", str(model), *words, "-o", "o.csv"])
    monkeypatch.undo()
    assert isinstance(done.exception, InputError), done.exception
    assert "Permission denied" in str(done.exception)


def test_channels_of_a_numpy_file_are_matched_by_name(
    model: OnnxPredictor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = np.random.default_rng(0).normal(size=(3, 3, 4)).astype(np.float32)

    def answers(places: list[int], names: list[str]) -> bytes:
        np.savez(tmp_path / "in.npz", X=values[:, places], channels=np.array(names))
        out = io.BytesIO()
        wanted = Wanted(proba=True)
        predict_files(model, [tmp_path / "in.npz"], out, TableOptions(), batch_size=4, wanted=wanted)
        return out.getvalue()

    expected = answers([0, 1], ["x", "y"])
    assert answers([1, 0], ["y", "x"]) == expected
    assert not caplog.messages
    assert answers([2, 1, 0], ["z", "y", "x"]) == expected
    assert "in.npz: not in the training data and not used: z." in caplog.text
    assert answers([0, 1], ["y", "z"]) == expected
    assert "(y, z) are not called as in training (x, y); they are taken in their order" in caplog.text
    with pytest.raises(InputError, match="3 channels"):
        answers([0, 1, 2], ["a", "b", "c"])

"""What a model knows of its training table is found again, and what it is made of is not overwritten."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tsattn.cli.model_source import read_split
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.tables import stream_table, table_roles
from tsattn.errors import InputError
from tsattn.inference.cases import match_channels
from tsattn.inference.output import refuse_model
from tsattn.inference.pipeline import roles_of
from tsattn.inference.session import open_model

MakeModel = Callable[..., Path]
LONG = {"layout": "long", "id": "rec", "time": "t", "label": "kind"}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "rec,t,temp c,kind\nc,0,1.5,a\nc,1,2.5,a\nd,0,3.5,b\n",
            r"1 channel \(temp c\), the model expects 2",
        ),
        ("rec,t,temp c,kind\nc,0,1.5,a\nd,0,3.5,b\n", r"1 channel \(temp c\), the model expects 2"),
        ("t,temp c\n0,1.5\n1,2.5\n", "needs the column that names the case"),
    ],
)
def test_the_time_of_training_never_becomes_a_channel(
    text: str, said: str, make_model: MakeModel, tmp_path: Path
) -> None:
    card = open_model(make_model(("a", "b"), ("temp c", "hum"), LONG)).card
    file = written(tmp_path / "new.csv", text)
    with pytest.raises(InputError, match=said):
        table_roles(file, roles_of(file, TableOptions(), card), card.channels)


def test_nameless_columns_are_found_again_by_name(
    make_model: MakeModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train = written(tmp_path / "train.csv", "t0,t1,t2,y\n1,2,3,0\n4,5,6,1\n")
    table = load_split(str(train), "train", TableOptions(label="y")).table
    assert json.loads(table["columns"]) == ["t0", "t1", "t2"]
    card = open_model(make_model(("0", "1"), ("value",), table, source=str(train))).card
    again = read_split(card, str(train), "test", TableOptions(), None)
    assert again.collection.values.tolist() == [[[1, 2, 3]], [[4, 5, 6]]]
    new = written(tmp_path / "new.csv", "Y,t2,t1,age,t0\n0,3,2,40,1\n1,6,5,50,4\n")
    with caplog.at_level(logging.WARNING, logger="tsattn"):
        (block,) = stream_table(new, roles_of(new, TableOptions(), card), channels=card.channels)
    assert block.values.tolist() == [[[1, 2, 3]], [[4, 5, 6]]]
    assert "not used: Y, age" in caplog.text


def test_other_nameless_columns_are_taken_as_they_stand_and_said(
    make_model: MakeModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = {"layout": "wide", "label": "y", "columns": '["t0", "t1", "t2"]'}
    card = open_model(make_model(("0", "1"), ("value",), table)).card
    new = written(tmp_path / "new.csv", "t0,u1,u2,y\n1,2,3,0\n4,5,6,1\n")
    with caplog.at_level(logging.WARNING, logger="tsattn"):
        (block,) = stream_table(new, roles_of(new, TableOptions(), card), channels=card.channels)
    assert block.values.tolist() == [[[1, 2, 3]], [[4, 5, 6]]]
    assert "no column 't1' as in training" in caplog.text


def test_a_test_table_is_read_by_the_names_of_its_training_table(tmp_path: Path) -> None:
    train = written(tmp_path / "X_TRAIN.csv", "p,q,label\n1,2,a\n4,5,b\n")
    written(tmp_path / "X_TEST.csv", "q,p,label\n2,1,a\n5,4,b\n")
    assert load_split(str(train), "test", TableOptions()).collection.values.tolist() == [[[1, 2]], [[4, 5]]]


@pytest.mark.parametrize(
    "text",
    [
        "rec,t,hum,rain,temp c,kind\nc,0,2,9,1,a\nc,1,4,9,3,a\nd,0,2,9,1,b\nd,1,4,9,3,b\n",
        "rec,hum_0,hum_1,rain_0,rain_1,temp c_0,temp c_1,kind\nc,2,4,9,9,1,3,a\nd,2,4,9,9,1,3,b\n",
    ],
)
def test_surplus_channels_are_left_out_and_named_by_predict_and_eval(
    text: str, make_model: MakeModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    card = open_model(make_model(("a", "b"), ("temp c", "hum"), LONG)).card
    file = written(tmp_path / "new.csv", text)
    options = roles_of(file, TableOptions(), card)
    with caplog.at_level(logging.WARNING, logger="tsattn"):
        (block,) = stream_table(file, options, channels=card.channels)
        assert "not used: rain" in caplog.text
        caplog.clear()
        judged = match_channels(load_split(str(file), "test", options).collection, card)
    assert "not used: rain" in caplog.text
    assert judged.channels == card.channels
    assert block.values.tolist() == judged.values.tolist() == [[[1, 3], [2, 4]]] * 2
    assert judged.values.dtype == np.float32


def test_the_model_is_never_the_output(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model(("a", "b"), ("x",))
    run = tmp_path / "run"
    run.mkdir()
    for name in ("model.safetensors", "config.yaml", "history.csv", "predictions.csv", "model.onnx"):
        written(run / name, "")
    (tmp_path / "link.csv").symlink_to(run / "model.safetensors")
    for output, of in ((model, model), (run / "history.csv", run), (tmp_path / "link.csv", run)):
        with pytest.raises(InputError, match="would be overwritten"):
            refuse_model(output, of, but=(".csv",))
    refuse_model(run / "predictions.csv", run, but=(".csv",))
    refuse_model(run / "model.onnx", run, but=(".onnx",))
    refuse_model(tmp_path / "absent.csv", model)

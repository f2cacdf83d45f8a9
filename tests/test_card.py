"""A model card that was edited is refused by name, and whatever was written is read again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tsattn.card import ModelCard
from tsattn.errors import InputError

CARD = ModelCard(
    classes=("b", "a"),
    channels=("x", "y"),
    attention="bn",
    tokens="linear",
    preset="base",
    lengths=(1, 2, 3),
    mean=(0.0, 1.0),
    std=(1.0, 1.0),
    source="in.csv",
    protocol="last",
    fingerprint="0",
    least=(float("nan"), 0.0),  # of a channel without a value
    greatest=(float("nan"), 1.0),
    export={"measured": None},
)


def test_what_was_written_is_read_again() -> None:
    assert ModelCard.from_json(CARD.to_json(), "m.onnx").to_json() == CARD.to_json()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("classes", "ba"),
        ("classes", [1, 2]),
        ("classes", ["a", "a"]),
        ("classes", []),
        ("channels", []),
        ("channels", [None, "y"]),
        ("lengths", [1, 2]),
        ("lengths", ["1", "2", "3"]),
        ("mean", [0.0]),
        ("std", ["1", "1"]),
        ("least", None),
        ("greatest", [1.0]),
        ("attention", 5),
        ("protocol", None),
        ("table", []),
        ("table", {"id": 5}),
        ("preparation", [1]),
        ("test", [1]),
        ("versions", None),
        ("export", {"measured": 5}),
        ("calibration", 5),
        ("missing", "x"),
        ("temperature", 0),
        ("unknown_below", "x"),
        ("unknown_below", float("nan")),
        ("unknown_below", 5),
        ("format", 2),
        ("colour", "red"),
    ],
)
def test_an_edited_field_is_named(field: str, value: Any) -> None:
    text = json.dumps(json.loads(CARD.to_json()) | {field: value})
    with pytest.raises(InputError, match=rf"m\.onnx: .*card.*{field}"):
        ModelCard.from_json(text, "m.onnx")


@pytest.mark.parametrize("text", ["", "{", "5", "null", "[1]", '"x"', "[" * 100_000])
def test_what_is_no_card_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"m\.onnx: the model card cannot be read"):
        ModelCard.from_json(text, "m.onnx")

"""Labels of probabilities: the most probable class, or that the model does not know."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from tsattn.card import ModelCard
from tsattn.inference.labels import UNKNOWN, labels_of

CARD = ModelCard(
    classes=("b", "A"),
    channels=("x",),
    attention="softmax",
    tokens="linear",
    preset="base",
    lengths=(1, 1, 1),
    mean=(0.0,),
    std=(1.0,),
    source="",
    protocol="",
    fingerprint="",
)
SHARES = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5], [np.nan, np.nan]], np.float32)


def test_the_most_probable_class() -> None:
    assert labels_of(SHARES[:3], CARD) == ["b", "A", "b"]


def test_what_is_less_sure_than_the_card_asks_is_unknown() -> None:
    assert labels_of(SHARES, replace(CARD, unknown_below=0.6)) == ["b", "A", UNKNOWN, UNKNOWN]
    assert labels_of(SHARES[:0], replace(CARD, unknown_below=0.6)) == []


def test_a_card_of_before_there_was_a_threshold_is_read() -> None:
    older = json.loads(CARD.to_json())
    for name in ("export", "temperature", "calibration", "unknown_below"):
        del older[name]
    assert ModelCard.from_json(json.dumps(older), "m.onnx") == CARD

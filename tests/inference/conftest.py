"""A small real model file, made without torch: masked mean over time, one linear layer, softmax."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tsattn.card import ModelCard

MakeModel = Callable[..., Path]


def card_of(classes: tuple[str, ...], channels: tuple[str, ...], table: dict[str, str]) -> ModelCard:
    return ModelCard(
        classes=classes,
        channels=channels,
        attention="softmax",
        tokens="linear",
        preset="default",
        lengths=(7, 15, 29),
        mean=(0.0,) * len(channels),
        std=(1.0,) * len(channels),
        source="test",
        protocol="none",
        fingerprint="0" * 64,
        table=table,
    )


def weights(channels: int, classes: int) -> np.ndarray:
    """(channels, classes): fixed, large enough that cases differ in their class."""
    return 3 * np.random.default_rng(0).normal(size=(channels, classes)).astype(np.float32)


def masked_mean_model(card: ModelCard) -> onnx.ModelProto:
    """`values` (batch, channels, time), dynamic batch and time, to `probabilities` (batch, classes)."""
    channels, classes = len(card.channels), len(card.classes)
    nodes = [
        helper.make_node("IsNaN", ["values"], ["missing"]),
        helper.make_node("Where", ["missing", "zero", "values"], ["filled"]),
        helper.make_node("Not", ["missing"], ["seen"]),
        helper.make_node("Cast", ["seen"], ["weight"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["filled", "time"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["weight", "time"], ["count"], keepdims=0),
        helper.make_node("Max", ["count", "one"], ["divisor"]),
        helper.make_node("Div", ["sum", "divisor"], ["mean"]),
        helper.make_node("MatMul", ["mean", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    constants: dict[str, np.ndarray] = {
        "zero": np.array(0, np.float32),
        "one": np.array(1, np.float32),
        "time": np.array([2], np.int64),
        "weights": weights(channels, classes),
    }
    graph = helper.make_graph(
        nodes,
        "masked_mean",
        [helper.make_tensor_value_info("values", TensorProto.FLOAT, ["batch", channels, "time"])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", classes])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(model, {"tsattn": card.to_json()})
    onnx.checker.check_model(model)
    return model


@pytest.fixture
def make_model(tmp_path: Path) -> MakeModel:
    """make_model(classes, channels, table={}, name="model.onnx", **card) → path of the file."""

    def make(
        classes: tuple[str, ...],
        channels: tuple[str, ...],
        table: dict[str, str] | None = None,
        name: str = "model.onnx",
        **changes: object,
    ) -> Path:
        card = dataclasses.replace(card_of(classes, channels, table or {}), **changes)  # type: ignore[arg-type]
        path = tmp_path / name
        onnx.save(masked_mean_model(card), path)
        return path

    return make

"""Writes a classifier as one ONNX file: dynamic batch and length, preprocessing inside, card in it."""

from __future__ import annotations

import logging
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import onnx
import torch
from onnxscript.optimizer import fold_constants
from torch import nn

from tsattn.card import ModelCard
from tsattn.export.opsets import DEFAULT_OPSET, FUSED_ATTENTION, IR_VERSION
from tsattn.models.attention.product import products_written_out
from tsattn.models.classifier import Probabilities

CARD_KEY = "tsattn"
MOST_FOLDED = 1 << 28  # bytes


def write_onnx(model: nn.Module, card: ModelCard, path: Path, opset: int = DEFAULT_OPSET) -> None:
    """Exports `model`: `values` (batch, channels, time) in, `probabilities` (batch, classes) out.

    The card's temperature divides the logits inside the graph.
    """
    save(to_proto(model, card, opset), card, path)


def to_proto(model: nn.Module, card: ModelCard, opset: int) -> onnx.ModelProto:
    """The ONNX graph of a model, for values of any batch and length."""
    length = max(card.lengths[1], 8)  # the trace's own length never matters; a short one traces faster
    example = torch.zeros(2, len(card.channels), min(length, 64))
    with warnings.catch_warnings(), quiet("torch.onnx"), _attention_of(opset):
        warnings.simplefilter("ignore")
        # Of the module and not of a trace made by torch.export, which takes numbers of blocks that are one
        # at the trace's length for always one.
        program = torch.onnx.export(
            Probabilities(model, card.temperature).eval(),
            (example,),
            dynamo=True,
            external_data=False,
            opset_version=opset,
            input_names=["values"],
            output_names=["probabilities"],
            dynamic_shapes={"values": {0: "batch", 2: "time"}},
            verbose=False,
        )
    assert program is not None
    _fold(program)
    proto = program.model_proto
    proto.ir_version = IR_VERSION[opset]
    _forget_where_it_was_made(proto)
    return proto


def save(proto: onnx.ModelProto, card: ModelCard, path: Path) -> None:
    """Writes a checked graph with its card."""
    onnx.helper.set_model_props(proto, {CARD_KEY: card.to_json()})
    proto.producer_name, proto.producer_version = "tsattn", card.versions.get("tsattn", "")
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, path)


def _attention_of(opset: int) -> AbstractContextManager[None]:
    """From opset 23 on a softmax attention is one node; before, it is written out."""
    return nullcontext() if opset >= FUSED_ATTENTION else products_written_out()


def _fold(program: torch.onnx.ONNXProgram) -> None:
    """Parts of weights become weights; the exporter itself leaves large ones to be cut at every load."""
    fold_constants(program.model, input_size_limit=MOST_FOLDED, output_size_limit=MOST_FOLDED)


def _forget_where_it_was_made(proto: onnx.ModelProto) -> None:
    """Drops the exporter's notes on every node: half the size of a small file, and paths of this machine.

    Shapes of what lies between nodes go too. With them ONNX Runtime knows that a softmax may write over what
    it reads, and then takes twice as long for rows of a length that is no multiple of 16: it loads a row's
    beginning from where it has just stored the end of the row before.
    """
    graphs = [proto.graph, *proto.functions]
    for graph in graphs:
        del graph.metadata_props[:]
        del graph.value_info[:]
        for node in graph.node:
            del node.metadata_props[:]
            node.doc_string = ""
    for value in (*proto.graph.initializer, *proto.graph.input, *proto.graph.output):
        del value.metadata_props[:]


class quiet:  # noqa: N801 - used as a verb
    """Keeps a logger's warnings away while something of its library runs."""

    def __init__(self, name: str) -> None:
        self.logger = logging.getLogger(name)

    def __enter__(self) -> None:
        self.level = self.logger.level
        self.logger.setLevel(logging.ERROR)

    def __exit__(self, *_: object) -> None:
        self.logger.setLevel(self.level)

"""The law of attention that needs a model file: ONNX Runtime says what torch says."""

from __future__ import annotations

import io
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path

import numpy as np
import torch

from tsattn.card import ModelCard
from tsattn.config import ModelConfig, RunConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.export.onnx import write_onnx
from tsattn.export.parity import TOLERANCE, compare
from tsattn.inference.session import open_model
from tsattn.models.attention.laws import HEADS, Finding, judge
from tsattn.models.classifier import TransformerClassifier
from tsattn.runs import Run, TorchPredictor

LENGTHS = (7, 15, 29)


def examine(spec: str) -> Finding:
    """Exports a classifier of random weights with this attention and compares the two engines.

    At batches and lengths that the export never saw, with gaps and with a case of nothing observed.
    """
    return judge(spec, "torch as ONNX Runtime", partial(_apart, spec), TOLERANCE)


def untrained(series: Collection, attention: str, tokens: str = "linear", heads: int = 4) -> Run:
    """A run without a folder whose weights are random and whose standardisation is not the identity."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        shape = ModelConfig(
            channels=len(series.channels),
            classes=len(series.classes),
            attention=attention,
            tokens=tokens,
            width=4 * heads,
            heads=heads,
            layers=1,
        )
        model = TransformerClassifier(shape).eval()
        model.standardise.mean.uniform_(-1, 1)
        model.standardise.std.uniform_(0.5, 2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    card = ModelCard(
        classes=series.classes,
        channels=series.channels,
        attention=attention,
        tokens=tokens,
        preset="base",
        lengths=LENGTHS,
        mean=tuple(model.standardise.mean.tolist()),
        std=tuple(model.standardise.std.tolist()),
        source="",
        protocol="untrained",
        fingerprint=series.fingerprint(),
    )
    config = RunConfig(
        source="",
        preset="base",
        device="cpu",
        threads=1,
        model=shape,
        training=TrainingConfig(epochs=1, batch_size=1),
    )
    return Run(path=Path(), config=config, card=card, model=model)


def _apart(spec: str) -> float:
    """The largest difference between two probabilities."""
    series = _walks()
    run = untrained(series, spec, heads=HEADS.count)
    with tempfile.TemporaryDirectory() as folder, _quiet_failures():
        path = Path(folder) / "model.onnx"
        write_onnx(run.model, run.card, path)
        exported = open_model(path, "cpu")
        return compare(TorchPredictor(run, torch.device("cpu")), exported, series).difference


def _walks() -> Collection:
    """Twelve random walks of three channels, as long as LENGTHS say."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(12, 3, max(LENGTHS))).cumsum(axis=2).astype(np.float32)
    for case in range(len(values)):
        values[case, :, LENGTHS[case % len(LENGTHS)] :] = np.nan
    return Collection(
        values=values,
        ids=tuple(map(str, range(len(values)))),
        channels=("x", "y", "z"),
        labels=tuple("abcd"[case % 4] for case in range(len(values))),
        classes=tuple("abcd"),
    )


@contextmanager
def _quiet_failures() -> Iterator[None]:
    """A failed export is a finding; what torch logs and prints about it besides is kept away."""
    logging.disable(logging.ERROR)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)

"""A model file with random weights for benchmarks/predict.py.

python benchmarks/predict_models.py OUT.onnx WIDTH HEADS LAYERS ATTENTION TOKENS
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import save_file

from tsattn.card import ModelCard
from tsattn.config import ModelConfig
from tsattn.export.onnx import write_onnx
from tsattn.models.classifier import TransformerClassifier

CHANNELS, POINTS, CLASSES = 12, 29, 9


def make_model(path: Path, size: tuple[int, int, int], attention: str, tokens: str) -> None:
    """A model file, and beside it configuration and weights for the script."""
    width, heads, layers = size
    config = ModelConfig(
        channels=CHANNELS,
        classes=CLASSES,
        attention=attention,
        tokens=tokens,
        width=width,
        heads=heads,
        layers=layers,
    )
    model = TransformerClassifier(config).eval()
    card = ModelCard(
        classes=tuple(map(str, range(1, CLASSES + 1))),
        channels=tuple(f"channel{c}" for c in range(CHANNELS)),
        attention=attention,
        tokens=tokens,
        preset=path.stem,
        lengths=(7, 15, POINTS),
        mean=(0.0,) * CHANNELS,
        std=(1.0,) * CHANNELS,
        least=(-4.0,) * CHANNELS,
        greatest=(4.0,) * CHANNELS,
        missing=0.0,
        source="random weights",
        protocol="none",
        fingerprint="0" * 64,
    )
    write_onnx(model, card, path)
    save_file(model.state_dict(), path.with_suffix(".safetensors"))
    path.with_suffix(".json").write_text(json.dumps(asdict(config)), "utf-8")


if __name__ == "__main__":
    width, heads, layers = map(int, sys.argv[2:5])
    make_model(Path(sys.argv[1]), (width, heads, layers), sys.argv[5], sys.argv[6])

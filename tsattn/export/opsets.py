"""Which ONNX opsets a model file may be written in, and the oldest onnxruntime that runs each."""

from __future__ import annotations

from tsattn.errors import InputError

OLDEST_RUNTIME = {18: "1.15", 19: "1.16", 20: "1.17", 21: "1.18", 22: "1.21", 23: "1.23"}
"""Files were run in each and refused by the release before; of 18 there is none older to try."""
IR_VERSION = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
"""The file format of the opset's time; the exporter's own would lock out runtimes that know the opset."""
DEFAULT_OPSET = 20
FUSED_ATTENTION = 23
"""From this opset on ONNX has a node for softmax attention."""


def check_opset(opset: int) -> None:
    """InputError for an opset that model files are not written in."""
    if opset not in OLDEST_RUNTIME:
        known = "; ".join(f"{one} runs from onnxruntime {oldest}" for one, oldest in OLDEST_RUNTIME.items())
        raise InputError(
            f"--opset {opset}: model files are written in opset {min(OLDEST_RUNTIME)} to "
            f"{max(OLDEST_RUNTIME)} ({known}). Leave the option away for {DEFAULT_OPSET}."
        )

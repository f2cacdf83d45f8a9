"""One provider of onnxruntime, tried with a real inference. Runs in a process of its own, see `trials`."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

MODEL = base64.b64decode(
    "CAg66QEKHAoGdmFsdWVzCgZrZXJuZWwSBHN1bXMiBENvbnYKHAoEc3VtcwoEb25lcxIGdG90YWxzIgZNYXRNdWwSBXRyaWFs"
    "Kh4IAQgBCAMQAUIGa2VybmVsSgwAAIA/AACAPwAAgD8qPggGCAIQAUIEb25lc0owAACAPwAAgD8AAIA/AACAPwAAgD8AAIA/"
    "AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/WiEKBnZhbHVlcxIXChUIARIRCgcSBWNhc2VzCgIIAQoCCAhiIQoGdG90YWxzEhcK"
    "FQgBEhEKBxIFY2FzZXMKAggBCgIIAkIECgAQEQ=="
)
"""A convolution (on CUDA it needs cuDNN) and a product, all weights 1: (cases, 1, 8) → (cases, 1, 2).

Kept as it is so that a machine which only predicts, without the package onnx, can try it too.
"""
TOTAL = 18.0
"""What every output is when every value is 1: six sums of three."""


def try_provider(provider: str) -> dict[str, Any]:
    """Whether onnxruntime really computes there: `used`, what it used instead, and what it said.

    keys: used (the provider), right (whether the result is), said.
    """
    import contextlib
    import io

    import onnxruntime as ort

    from tsattn.inference import cuda

    said: list[str] = []
    if provider != cuda.CPU:
        said.append(cuda.load_libraries())
    options = ort.SessionOptions()
    options.log_severity_level = 4
    ort.set_default_logger_severity(4)
    asked = [provider] if provider == cuda.CPU else [provider, cuda.CPU]
    spoken = io.StringIO()
    with contextlib.redirect_stdout(spoken):  # it prints why it falls back
        session = ort.InferenceSession(MODEL, options, providers=asked)
        (totals,) = session.run(None, {"values": np.ones((2, 1, 8), np.float32)})
    said += [line for line in spoken.getvalue().splitlines() if line.startswith("EP Error")]
    return {
        "used": session.get_providers()[0],
        "right": bool(np.allclose(totals, TOTAL, rtol=1e-2)),  # TF32 and half precision are right too
        "said": "; ".join(line for line in said if line),
    }


def onnxruntime_here() -> dict[str, Any]:
    """version, cuda (what it was built for, '' for none), providers (that it was built with, best first)."""
    import onnxruntime as ort
    from onnxruntime.capi import build_and_package_info

    return {
        "version": ort.__version__,
        "cuda": getattr(build_and_package_info, "cuda_version", ""),
        "providers": ort.get_available_providers(),
    }

"""Is CUDA there for onnxruntime, and if not, why not.

onnxruntime-gpu lists CUDA on every machine and runs on the CPU without a word where it cannot be
had, so the only proof is the provider of a session that was made; this module finds the reasons.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import sys

import onnxruntime as ort

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"


def obstacle() -> str | None:
    """Why CUDA cannot be had on this machine with this onnxruntime; None if nothing stands against it."""
    if CUDA not in ort.get_available_providers():
        return (
            f"the installed onnxruntime {ort.__version__} is built without CUDA; "
            "`pip uninstall onnxruntime`, then `pip install onnxruntime-gpu`"
        )
    driver = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(driver)
    except OSError:
        return f"this machine has no NVIDIA driver ({driver} is not found)"
    return None


def load_libraries() -> str:
    """Loads the CUDA and cuDNN libraries that pip installed; returns what failed, or ''."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):  # preload_dlls prints its failures instead of raising them
        ort.preload_dlls()
    return "; ".join(line for line in said.getvalue().splitlines() if line.startswith("Failed"))

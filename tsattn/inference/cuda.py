"""Is CUDA there for onnxruntime, and if not, why not.

onnxruntime-gpu lists CUDA on every machine and runs on the CPU without a word where it cannot be
had, so the only proof is the provider of a session that was made; this module finds the reasons.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import re
import sys
from dataclasses import dataclass

import onnxruntime as ort

from tsattn.errors import InputError

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
PROVIDERS = {"tensorrt": TENSORRT, "cuda": CUDA, "cpu": CPU}
"""The words for onnxruntime's providers."""
_DEVICE = re.compile(r"auto|cpu|cuda(?::(\d+))?")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a session is to run on.

    names: onnxruntime's providers, all of which have to be had, the best first. typed: the option that
    says so. number: of the GPU. may_be_cpu: the CPU will do where there is no GPU.
    """

    names: tuple[str, ...]
    typed: str
    number: int = 0
    may_be_cpu: bool = False

    def with_options(self) -> list[tuple[str, dict[str, str]]]:
        """The providers with their options, without the CPU's."""
        options = {
            # lengths vary, so a search for the best convolution would repeat
            CUDA: {"device_id": str(self.number), "cudnn_conv_algo_search": "HEURISTIC"},
            TENSORRT: {"device_id": str(self.number)},
        }
        return [(name, options[name]) for name in self.names if name != CPU]


def asked_for(device: str, providers: str | None) -> Asked:
    """What --device and --providers mean together. InputError for words that mean nothing."""
    match = _DEVICE.fullmatch(device)
    if match is None:
        raise InputError(
            f"--device {device}: onnxruntime runs on cpu and cuda only. "
            "Type --device auto, or predict with the run folder instead of the model file."
        )
    number = int(match[1] or 0)
    if providers is None:
        names = (CPU,) if device == "cpu" else (CUDA,)
        return Asked(names=names, typed=f"--device {device}", number=number, may_be_cpu=device == "auto")
    words = tuple(providers.split(","))
    unknown = next((word for word in words if word not in PROVIDERS), None)
    if unknown is not None or len(set(words)) < len(words):
        raise InputError(
            f"--providers {providers}: {unknown!r} is none. Type one or more of {', '.join(PROVIDERS)}, "
            "each once and with commas between them, the best first."
        )
    if device == "cpu" and words != ("cpu",):
        raise InputError(f"--device cpu and --providers {providers} do not go together. Leave one out.")
    return Asked(
        names=tuple(PROVIDERS[word] for word in words), typed=f"--providers {providers}", number=number
    )


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

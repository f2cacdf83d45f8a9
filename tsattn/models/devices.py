"""Where to compute, checked before anything is started."""

from __future__ import annotations

import torch

from tsattn.errors import CheckFailed


def resolve_device(name: str) -> torch.device:
    """The device that 'auto', 'cpu', 'cuda' or 'mps' means here. CheckFailed where it is not there."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(device for device in ("cuda", "mps", "cpu") if there[device])
    if not there[name]:
        built = f"torch {torch.__version__}" + ("" if torch.version.cuda else " is built without CUDA")
        usable = ", ".join(device for device, is_there in there.items() if is_there)
        raise CheckFailed(
            f"--device {name}: there is none that torch can use here ({built}). "
            f"Usable: {usable}. Type --device auto to take the best of them."
        )
    return torch.device(name)

"""Where to compute, checked before anything is started."""

from __future__ import annotations

import torch

from tsattn.errors import CheckFailed, InputError


def resolve_device(name: str) -> torch.device:
    """The device that 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps' means here.

    InputError for another word, CheckFailed for a device that is not there.
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(device for device in ("cuda", "mps", "cpu") if there[device])
    kind, colon, number = name.partition(":")
    if kind not in there or (colon and not (kind == "cuda" and number.isdecimal())):
        raise InputError(f"--device {name} is not known. Type auto, cpu, cuda, cuda:N or mps.")
    if not there[kind] or (colon and int(number) >= torch.cuda.device_count()):
        built = f"torch {torch.__version__}" + ("" if torch.version.cuda else " is built without CUDA")
        usable = ", ".join(device for device, is_there in there.items() if is_there)
        raise CheckFailed(
            f"--device {name}: there is none that torch can use here ({built}). "
            f"Usable: {usable}. Type --device auto to take the best of them."
        )
    return torch.device(name)

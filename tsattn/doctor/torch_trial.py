"""torch, tried with a real product on each of its devices. Runs in a process of its own, see `trials`."""

from __future__ import annotations

import time
from typing import Any


def try_torch() -> dict[str, Any]:
    """What torch is and where it computes.

    keys: version, cuda (what it was built for, None for none), cudnn, threads, import_seconds, why_no_cuda
    (None where there is CUDA or where it was built without), devices: name, what it is, bytes, right.
    """
    began = time.perf_counter()
    import torch

    seconds = time.perf_counter() - began
    places: list[tuple[str, str, int | None]] = [("cpu", "CPU", None)]
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(number)
        places.append((f"cuda:{number}", properties.name, properties.total_memory))
    if torch.backends.mps.is_available():
        places.append(("mps", "Apple GPU", None))
    devices = [
        {"device": device, "name": name, "bytes": size, **_computes(device)} for device, name, size in places
    ]
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        "threads": torch.get_num_threads(),
        "import_seconds": round(seconds, 1),
        "why_no_cuda": _why_no_cuda(),
        "devices": devices,
    }


def _computes(device: str) -> dict[str, Any]:
    import torch

    try:
        ones = torch.ones(8, 8, device=device)
        right = bool((ones @ ones == 8).all())
    except RuntimeError as error:
        return {"right": False, "said": str(error).splitlines()[0]}
    return {"right": right, "said": ""}


def _why_no_cuda() -> str | None:
    import torch

    if torch.version.cuda is None or torch.cuda.is_available():
        return None
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return str(error).splitlines()[0]
    return "it finds no device"

"""How much memory there is to take: of the device, or of the host within the limits set for this process."""

from __future__ import annotations

import torch

from tsattn import host
from tsattn.models.memory import kept_bytes


def free_bytes(device: torch.device) -> int | None:
    """What could be allocated there now; None where nobody tells.

    CUDA: what the driver has and what torch keeps unused. CPU: what the host has for this process, and what
    its heap keeps unused.
    """
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    if device.type != "cpu":
        return None
    free = host.free_memory()
    return None if free is None else free + kept_bytes()

"""How much memory there is to take: of the device, or of the host within the limits set for this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from tsattn.models.memory import kept_bytes

CGROUPS = Path("/sys/fs/cgroup")


def free_bytes(device: torch.device) -> int | None:
    """What could be allocated there now; None where nobody tells.

    CUDA: what the driver has and what torch keeps unused. Linux: the least of what is available without
    swapping, of what control groups leave and of what is left of the limit of the address space; and what the
    heap keeps unused.
    """
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    if device.type != "cpu" or sys.platform != "linux":
        return None
    found = [_kilobytes("/proc/meminfo", "MemAvailable"), _left_of_address_space(), *_left_of_groups()]
    known = [left for left in found if left is not None]
    return min(known) + kept_bytes() if known else None


def _left_of_address_space() -> int | None:
    if sys.platform != "linux":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _kilobytes("/proc/self/status", "VmSize")
    return None if limit == resource.RLIM_INFINITY or taken is None else max(0, limit - taken)


def _left_of_groups() -> Iterator[int]:
    """Of each control group around this process that has a limit; what is only cached counts as free."""
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            root = CGROUPS / "memory"
        else:
            continue
        # Inside a container the path may be the host's and not there: then its root is the container.
        place = root / path.lstrip("/")
        for group in (place, *place.parents[: len(place.parts) - len(root.parts)]):
            limit, taken = _number(group / names[0]), _number(group / names[1])
            if limit is not None and taken is not None:
                yield max(0, limit - taken + _cached(group, names[2]))


def _cached(group: Path, name: str) -> int:
    words = (line.split() for line in _lines(group / "memory.stat"))
    return next((int(word[1]) for word in words if word[0] == name), 0)


def _number(file: Path) -> int | None:
    """None for 'max' and where there is no such file."""
    word = "".join(_lines(file)).strip()
    return int(word) if word.isdecimal() else None


def _kilobytes(file: str, name: str) -> int | None:
    lines = (line for line in _lines(file) if line.startswith(f"{name}:"))
    return next((1024 * int(line.split()[1]) for line in lines), None)


def _lines(file: str | Path) -> list[str]:
    try:
        return Path(file).read_text("utf-8").splitlines()
    except OSError:
        return []

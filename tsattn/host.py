"""What this machine leaves to this process: cores and memory, within the limits that are set for it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """CPU cores that this process may run on; a share of their time may be less, see `share_of_cores`."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_of_cores() -> float | None:
    """How many cores' time a control group, such as a container, allows; None where none limits it."""
    if sys.platform != "linux":
        return None
    found = []
    for group, _ in _groups():
        quota, _, period = "".join(_lines(group / "cpu.max")[:1]).partition(" ")
        if quota.isdecimal() and period.isdecimal():
            found.append(int(quota) / int(period))
    return min(found, default=None)


def free_memory() -> int | None:
    """Bytes that this process could take now; None where nobody tells.

    Linux: the least of what is available without swapping, of what control groups leave and of what is left
    of the limit of the address space.
    """
    if sys.platform != "linux":
        return None
    found = [_kilobytes("/proc/meminfo", "MemAvailable"), _left_of_address_space(), *_left_of_groups()]
    return min((left for left in found if left is not None), default=None)


def _left_of_address_space() -> int | None:
    if sys.platform != "linux":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _kilobytes("/proc/self/status", "VmSize")
    return None if limit == resource.RLIM_INFINITY or taken is None else max(0, limit - taken)


def _left_of_groups() -> Iterator[int]:
    """Of each control group around this process that has a limit; what is only cached counts as free."""
    for group, unified in _groups():
        names = (
            ("memory.max", "memory.current", "inactive_file")
            if unified
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        )
        limit, taken = _number(group / names[0]), _number(group / names[1])
        if limit is not None and taken is not None:
            yield max(0, limit - taken + _cached(group, names[2]))


def _groups() -> Iterator[tuple[Path, bool]]:
    """Control groups around this process, and whether they are of version 2; of version 1 those of memory."""
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory") and "memory" not in controllers.split(","):
            continue
        root = CGROUPS if controllers == "" else CGROUPS / "memory"
        # Inside a container the path may be the host's and not there: then its root is the container.
        place = root / path.lstrip("/")
        for group in (place, *place.parents[: len(place.parts) - len(root.parts)]):
            yield group, controllers == ""


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


def peak_memory() -> int | None:
    """Bytes of the largest resident set that this process has had; None where nobody tells.

    On Linux of the program that runs now: what getrusage says begins with the set of the process it was
    started by.
    """
    system = platform.system()  # not sys.platform, by which mypy judges one system only
    if system == "Linux":
        return _kilobytes("/proc/self/status", "VmHWM")
    if system == "Windows":
        return None
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if system == "Darwin" else 1024 * largest

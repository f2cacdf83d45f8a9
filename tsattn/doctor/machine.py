"""Python, cores, memory, disk and cache folder of this machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tsattn import host
from tsattn.data.home import home
from tsattn.doctor.findings import JOBS, Finding

OLDEST_PYTHON = (3, 11)
LITTLE_MEMORY, LITTLE_DISK = 2 * 10**9, 2 * 10**9
"""Bytes below which the demo's training, or a larger set and its cache, may not fit."""


def machine() -> Iterator[Finding]:
    """What can be seen without starting anything."""
    python = ".".join(map(str, sys.version_info[:3]))
    old = sys.version_info[:2] < OLDEST_PYTHON
    yield Finding(
        area="machine",
        name="Python",
        value=f"{platform.python_implementation()} {python}, {platform.system()} {platform.machine()}",
        state="broken" if old else "good",
        advice=f"tsattn needs Python {'.'.join(map(str, OLDEST_PYTHON))} or newer." if old else "",
        jobs=JOBS,
    )
    yield _cores()
    yield from _threads()
    yield _memory()
    yield _disk("working folder", Path.cwd())
    yield _cache(home())


def _cores() -> Finding:
    usable, share, there = host.cores(), host.share_of_cores(), os.cpu_count()
    value = f"{usable} of {there} usable" if there != usable else f"{usable}"
    if share is None or share >= usable:
        return Finding(area="machine", name="CPU cores", value=value)
    fit = max(1, int(share))
    return Finding(
        area="machine",
        name="CPU cores",
        value=f"{value}, of whose time a control group allows {share:g}",
        state="note",
        advice=f"More threads than that wait for one another: type --threads {fit}.",
    )


def _threads() -> Iterator[Finding]:
    policy = os.environ.get("OMP_WAIT_POLICY", "")
    spins = policy.lower() == "active"
    yield Finding(
        area="machine",
        name="OMP_WAIT_POLICY",
        value=policy or "not set",
        state="note" if spins else "good",
        advice="Threads that spin stop one another where cores are shared: unset it." if spins else "",
    )
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if (value := os.environ.get(name)) is None:
            continue
        many = value.isdecimal() and int(value) > host.cores()
        yield Finding(
            area="machine",
            name=name,
            value=value,
            state="note" if many else "good",
            advice=f"That is more than the {host.cores()} cores here: unset it." if many else "",
        )


def _memory() -> Finding:
    free = host.free_memory()
    if free is None:
        return Finding(area="machine", name="free memory", value="not told by this system")
    little = free < LITTLE_MEMORY
    return Finding(
        area="machine",
        name="free memory",
        value=in_words(free),
        state="note" if little else "good",
        advice="Little for training: take a small --batch-size." if little else "",
    )


def _disk(name: str, place: Path, told: str = "") -> Finding:
    """Of an existing folder: how much is free there, and whether it can be written."""
    free = shutil.disk_usage(place).free
    value = f"{told or place}, {in_words(free)} free"
    if (refusal := _refuses(place)) is not None:
        advice = "Give --out and -o another place."
        return Finding(area="machine", name=name, value=f"{value}, {refusal}", state="note", advice=advice)
    little = free < LITTLE_DISK
    return Finding(
        area="machine",
        name=name,
        value=value,
        state="note" if little else "good",
        advice="Make room there." if little else "",
    )


def _cache(place: Path) -> Finding:
    """Of the folder where data sets are kept, which need not exist yet."""
    there = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
    refusal = "is a file" if not there.is_dir() else _refuses(there)
    if refusal is not None:
        what = "" if there == place else f"{there} "
        return Finding(
            area="machine",
            name="cache folder",
            value=f"{place}: {what}{refusal}",
            state="broken",
            advice="Set TSATTN_HOME to a folder that can be written.",
            jobs=("train",),
        )
    return _disk("cache folder", there, str(place) if there == place else f"{place} (made when needed)")


def _refuses(folder: Path) -> str | None:
    """Why nothing can be written there; the rights alone do not tell, as where all is mounted read-only."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"cannot be written ({error.strerror or error})"
    return None


def in_words(size: float) -> str:
    """Bytes as MB or GB."""
    return f"{size / 1e6:,.0f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"

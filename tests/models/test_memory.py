"""Freed memory is kept where the C library can be told to."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

PAGES = """
import resource, sys, torch
from tsattn.models.memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def step():
    held = [torch.ones(6_000_000) for _ in range(4)]  # 24 MB each
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(word: str) -> int:
    """Pages that five steps ask for. glibc adapts its thresholds as it goes; a set one stays until told."""
    done = subprocess.run(
        [sys.executable, "-c", PAGES, word],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 20)},
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_pages_are_not_asked_for_again() -> None:
    """96 MB are 23,000 pages of 4 KiB or 46 of 2 MiB a step; a heap that settles late asks for some more."""
    given_back = faults("give back")
    assert given_back > 200
    assert faults("keep") < given_back / 2

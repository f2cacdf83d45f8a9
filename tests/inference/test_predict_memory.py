"""The memory of predict does not grow with the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "predict_memory.py"


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory of a child is read with wait4")
def test_three_times_the_file_takes_the_same_memory(make_model: Callable[..., Path]) -> None:
    # pyarrow reads up to 32 MB ahead; the shorter file has to be longer than that.
    channels = tuple(f"channel{c}" for c in range(12))
    model = make_model(tuple("123456789"), channels)
    result = subprocess.run(
        [sys.executable, str(SCRIPT), str(model), "12", "29", "22000", "66000"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=SCRIPT.parents[1],
    )
    assert result.returncode == 0, result.stdout + result.stderr

"""The memory of predict does not grow with the file."""

from __future__ import annotations

import os
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


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process with RLIMIT_DATA")
def test_more_values_than_the_process_may_hold(make_model: Callable[..., Path], tmp_path: Path) -> None:
    """35 million values, 140 MB as float32, where 400 MB are all that code, threads and data may take.

    Without a file the process needs 300 of them. A hundred million values in a GB:
    TSATTN_TEST_CASES=288000 TSATTN_TEST_MB=1024.
    """
    cases, limit = (
        int(os.environ.get("TSATTN_TEST_CASES", "100000")),
        int(os.environ.get("TSATTN_TEST_MB", "400")),
    )
    row = ",".join(["0.5"] * 348) + "\n"
    with (tmp_path / "big.csv").open("w") as file:
        file.write("case," + ",".join(f"channel{c}_{t}" for c in range(12) for t in range(29)) + "\n")
        for start in range(0, cases, 1000):
            file.write("".join(f"{n},{row}" for n in range(start, start + 1000)))
    model = make_model(tuple("123456789"), tuple(f"channel{c}" for c in range(12)))
    words = ["tsattn", "predict", str(model), str(tmp_path / "big.csv"), "-o", str(tmp_path / "o.csv")]
    program = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, ({limit} << 20, {limit} << 20))\n"
        f"sys.argv = {[*words, '--threads', '2']!r}\n"
        "from tsattn.cli.app import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr[-2000:]
    with (tmp_path / "o.csv").open("rb") as file:
        assert sum(1 for _ in file) == cases + 1

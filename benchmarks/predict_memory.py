"""Does the memory of `tsattn predict` grow with the file? Peak memory for a short and a long CSV.

    python benchmarks/predict_memory.py MODEL.onnx [CHANNELS TIMEPOINTS [SHORT LONG]]

Writes two wide CSV files of random numbers (default 12 channels × 29 timepoints = 348 values a
row; 20,000 and 200,000 cases), predicts each in a process of its own and prints peak memory, time
and rate; leaves with 1 if the long file's peak is above LIMIT times the short one's.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LIMIT = 1.10


def write_wide(path: Path, cases: int, channels: int, timepoints: int) -> None:
    """One row a case; 500 different rows in turn, because formatting numbers takes longest."""
    values = np.random.default_rng(0).normal(size=(500, channels * timepoints))
    rows = [",".join(f"{value:.5f}" for value in row) for row in values]
    with path.open("w") as file:
        names = ",".join(f"channel{c}_{t}" for c in range(channels) for t in range(timepoints))
        file.write(f"case,{names}\n")
        file.writelines(f"{n},{rows[n % len(rows)]}\n" for n in range(cases))


def peak(model: str, path: Path) -> tuple[float, float]:
    """Peak resident memory in MB and seconds of one fresh process that predicts the file."""
    output = path.with_suffix(".out.csv")
    words = ("-m", "tsattn", "predict", model, str(path), "-o", str(output), "--id", "case", "--json")
    start = time.perf_counter()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, *words],
        dict(os.environ),
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"predict {path.name} failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss * unit / 1e6, time.perf_counter() - start


def main(
    model: str, channels: int = 12, timepoints: int = 29, short: int = 20_000, long: int = 200_000
) -> int:
    """Prints the two peaks and their ratio; 1 if it is above LIMIT."""
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for cases in (short, long):
            path = Path(folder) / f"{cases}.csv"
            write_wide(path, cases, channels, timepoints)
            megabytes, seconds = peak(model, path)
            peaks.append(megabytes)
            size = path.stat().st_size / 1e6
            print(
                f"{cases:>9,} cases {size:>8,.0f} MB file {megabytes:>8,.1f} MB peak "
                f"{seconds:>7.1f} s {cases / seconds:>8,.0f} cases/s"
            )
    print(f"ratio {peaks[1] / peaks[0]:.3f}, limit {LIMIT}")
    return int(peaks[1] > LIMIT * peaks[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))

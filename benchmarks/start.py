"""How long `tsattn --help` takes, against the least that a typer and rich application can take.

    python benchmarks/start.py [REPEATS]

Both commands run alternately as fresh processes, so that whatever else the machine does meets both.
Prints the medians in milliseconds and their ratio; leaves with 1 if the ratio is above LIMIT.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

LIMIT = 2.5
HELP = (sys.executable, "-m", "tsattn", "--help")
LEAST = (sys.executable, "-c", "import typer, rich")


def seconds(command: tuple[str, ...]) -> float:
    """Wall time of one fresh process, in seconds; its output is thrown away."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def medians(repeats: int) -> tuple[float, float]:
    """Median seconds of `tsattn --help` and of the bare imports, after one unmeasured round."""
    rounds = [(seconds(HELP), seconds(LEAST)) for _ in range(repeats + 1)][1:]
    help_times, least_times = zip(*rounds, strict=True)
    return statistics.median(help_times), statistics.median(least_times)


def main() -> None:
    """Measures and prints; see the module's docstring."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    help_time, least_time = medians(repeats)
    ratio = help_time / least_time
    print(f"tsattn --help           {help_time * 1000:6.0f} ms")
    print(f"import typer, rich      {least_time * 1000:6.0f} ms")
    print(f"ratio                   {ratio:6.2f}    (at most {LIMIT}; median of {repeats} alternating runs)")
    sys.exit(ratio > LIMIT)


if __name__ == "__main__":
    main()

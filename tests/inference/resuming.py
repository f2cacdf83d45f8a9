"""Predicts with --resume in a process that is killed again and again, and then to the end.

    python resuming.py MODEL OUTPUT KILLS FILE...

Everything is imported once; each attempt is a fork that computes slowly, and is killed with SIGKILL at a
random moment. Prints, as JSON, the cases that each attempt found there and how many kills it took.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import filelock  # noqa: F401 - so that a fork need not
import numpy as np
from numpy.typing import NDArray

from tsattn.data.columns import TableOptions
from tsattn.inference import output as output_of
from tsattn.inference.pipeline import Wanted, predict_files
from tsattn.inference.session import OnnxPredictor, open_model


class Slow(OnnxPredictor):
    """Takes its time, so that a kill finds work to interrupt."""

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """As those of the model, later."""
        time.sleep(0.002)
        return super().probabilities(values)


def attempt(model: Path, output: Path, files: list[Path]) -> int:
    """Goes on as far as it gets; the cases that were there."""
    output_of._SECONDS = 0.004
    predictor = open_model(model, "cpu", 2, parallel_calls=True)
    predictor.__class__ = Slow
    wanted = Wanted(resume=True, on_error="mark", keep=("site",))
    return predict_files(
        predictor, files, output, TableOptions(), batch_size=5, wanted=wanted, threads=2
    ).resumed


def noted(output: Path) -> int:
    """When the journal changed."""
    try:
        return (output.parent / f".{output.name}.part.json").stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def wait_until(true: Callable[[], bool]) -> None:
    """Until it is, or two seconds have passed."""
    end = time.monotonic() + 2
    while not true() and time.monotonic() < end:
        time.sleep(0.002)


def main(model: Path, output: Path, kills: int, files: list[Path]) -> None:
    """Kills, and lets the last attempt end."""
    chance = random.Random(7)
    killed = 0
    while killed < kills:
        child = os.fork()
        if child == 0:
            attempt(model, output, files)
            os._exit(0)
        before = noted(output)
        if killed % 4:  # else at any moment, also before a row is written
            wait_until(lambda: noted(output) != before)  # noqa: B023 - it is called here
        time.sleep(chance.uniform(0, 0.12))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            break
        killed += 1
    left = sorted(path.name for path in output.parent.glob(f".{output.name}.*"))
    resumed = attempt(model, output, files)
    sys.stdout.write(json.dumps({"killed": killed, "left": left, "resumed": resumed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), [Path(word) for word in sys.argv[4:]])

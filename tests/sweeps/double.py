"""Stands for the process of a cell: does what the data are called, without the imports that make one slow."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    job = json.loads(sys.stdin.readline())
    place, word = Path(job["folder"]), job["data"]
    tries = place.parent / f"{word}.tries"
    place.mkdir(parents=True, exist_ok=True)
    with tries.open("a", encoding="utf-8") as file:
        file.write("x")
    if word == "fails":
        sys.stderr.write("a remark\n")
        sys.exit("the disk is full of eels")
    if word == "raises":
        raise KeyError("nothing")
    if word == "dies" or (word == "dies-once" and len(tries.read_text("utf-8")) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "hangs":

        def leave(*_: object) -> None:
            tries.with_suffix(".state").write_text("kept", "utf-8")
            sys.exit(130)

        signal.signal(signal.SIGTERM, leave)
        tries.with_suffix(".ready").touch()
        time.sleep(60)
    metrics = dict.fromkeys(
        ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "calibration_error"), 0.5
    )
    cell = {
        "format": 1,
        "data": word,
        "status": "done",
        "finished": "now",
        "metrics": metrics,
        **{name: job[name] for name in ("method", "kind", "seed", "grid")},
    }
    (place / "cell.json").write_text(json.dumps(cell), "utf-8")


if __name__ == "__main__":
    main()

"""One cell of a sweep, in a process of its own: `python -m tsattn.sweeps.one`, the job on stdin.

The first line of stdin is the job; when stdin ends, the sweep is gone and so is this process. SIGTERM keeps
the state of a training. A cell that is done is written; why another could not be done stands at the end of
stderr, and the sweep writes that down.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from filelock import FileLock, Timeout

from tsattn.errors import InputError, Interrupted, TsattnError
from tsattn.sweeps.cell import write_cell
from tsattn.sweeps.fitted import baseline
from tsattn.sweeps.job import Job
from tsattn.sweeps.trained import transformer

PATIENCE = 120.0
"""Seconds for the process of a sweep that was killed to leave the cell."""


def _leave_with_the_sweep() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _advised(said: str, job: Job) -> str:
    """With how a sweep begins a cell anew whose run folder is spoilt."""
    if job.folder not in said or not job.place.exists():
        return said
    return f"{said} In a sweep: delete {job.folder} and type the sweep again."


def main() -> None:
    """The body of the process. Leaves with 0 where the cell is written, 130 where it was stopped."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if not (byte := os.read(0, 1)):  # nothing beyond the line may be taken from the watching thread
            sys.exit("python -m tsattn.sweeps.one: a job is expected on stdin; `tsattn bench` sends it.")
        line += byte
    job = Job(**json.loads(line))
    threading.Thread(target=_leave_with_the_sweep, daemon=True).start()
    try:
        Path(job.lock).parent.mkdir(parents=True, exist_ok=True)
        with FileLock(job.lock, timeout=PATIENCE):
            write_cell(job.place, transformer(job) if job.kind == "transformer" else baseline(job))
    except Timeout:
        sys.exit(f"{job.folder}: another process is at this cell. Stop it and type the sweep again.")
    except Interrupted:
        sys.exit(130)
    except TsattnError as error:
        sys.exit(_advised(str(error), job))
    except OSError as error:
        sys.exit(str(InputError(f"{job.folder}: {error.strerror or error}")))


if __name__ == "__main__":
    main()

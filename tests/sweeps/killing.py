"""A sweep whole, then the same one killed again and again: `python killing.py WHOLE KILLED KILLS WORDS…`.

Prints how many kills found a process at work and how many left the state of a training. Sweeps and cells are
forked from this process, in which everything is imported, so that a life is a moment; one thread, because the
threads of a pool do not survive a fork.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import sklearn.metrics  # noqa: F401
import torch._dynamo  # noqa: F401

import tsattn.evaluation.evaluate
import tsattn.sweeps.workflow
import tsattn.training.workflow  # noqa: F401
from tsattn.cli.app import main
from tsattn.sweeps import one
from tsattn.sweeps.job import Job
from tsattn.sweeps.processes import last_line
from tsattn.sweeps.running import run


class Forked:
    """The process of a cell, by a fork instead of a start; its stdin is a pipe as ever."""

    def __init__(self, job: Job) -> None:
        self.log = Path(job.lock).with_suffix(".log")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        end, self.pipe = os.pipe()
        self.ended: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            said = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for old, new in ((end, 0), (said, 1), (said, 2)):
                os.dup2(old, new)
            os.closerange(3, 256)  # pipes and locks of the sweep, as the start of a program would
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            os._exit(status_of(one.main))
        os.close(end)
        os.write(self.pipe, job.to_json().encode() + b"\n")

    def status(self) -> int | None:
        if self.ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.ended = os.waitstatus_to_exitcode(status) if pid else None
        return self.ended

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def said(self) -> str:
        return last_line(self.log)

    def close(self, *, well: bool) -> None:
        with contextlib.suppress(OSError):
            os.close(self.pipe)


def status_of(call: Callable[[], object]) -> int:
    """What a process that calls this leaves with."""
    try:
        call()
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            os.write(2, leaving.code.encode() + b"\n")
            return 1
        return leaving.code or 0
    return 0


def start(words: list[str], folder: Path) -> int:
    """Forks a sweep."""
    pid = os.fork()
    if pid == 0:
        sys.stdout = sys.stderr
        sys.argv = ["tsattn", "bench", *words, "-o", str(folder)]
        os._exit(status_of(main))
    return pid


def children(pid: int) -> list[int]:
    """Its cells; none where that cannot be seen."""
    try:
        return [int(w) for w in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()]
    except OSError:
        return []


def killed(whole: Path, folder: Path, kills: int, words: list[str]) -> tuple[int, int]:
    """(kills that found the sweep at work, kills after which the state of a training was there)."""
    begun = time.monotonic()
    assert os.waitpid(start(words, whole), 0)[1] == 0
    longest = 0.16 * (time.monotonic() - begun)
    moments, at_work, states = random.Random(5), 0, 0
    for kill in range(kills):
        sweep = start(words, folder)
        time.sleep(moments.uniform(0.3, 1.0) * longest)
        cells = children(sweep)
        if kill % 3 == 2 and cells:  # then the sweep puts the cell off, and is killed itself
            os.kill(cells[0], signal.SIGKILL)
            time.sleep(0.3)
        os.kill(sweep, signal.SIGKILL)
        at_work += os.WIFSIGNALED(os.waitpid(sweep, 0)[1])
        states += bool(list(folder.glob("cells/*/*/*/state/*.safetensors")))
    assert os.waitpid(start(words, folder), 0)[1] == 0
    return at_work, states


if __name__ == "__main__":
    assert run.__kwdefaults__ is not None
    run.__kwdefaults__["begin"] = Forked
    found = killed(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    sys.stdout.write("{} {}\n".format(*found))

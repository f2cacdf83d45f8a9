"""The process of one cell as a sweep sees it, and those of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tsattn.errors import InputError
from tsattn.sweeps.job import Job

CELL_PROCESS = (sys.executable, "-m", "tsattn.sweeps.one")
STOPPED = 130
"""Status of a process that was asked to stop and has saved its state."""
LONGEST = 2000
"""Letters of what a process said last."""


class Process(Protocol):
    """A cell that is being computed somewhere."""

    def status(self) -> int | None:
        """How it ended: 0, STOPPED, another number where it failed, minus the signal; None while it runs."""

    def stop(self) -> None:
        """Asks it to save its state and leave."""

    def kill(self) -> None:
        """Ends it at once, and waits until it is gone."""

    def said(self) -> str:
        """The last line of what it said, once it has ended."""

    def close(self, *, well: bool) -> None:
        """Lets go of it after its end. well: what it said is not needed any more."""


class Here:
    """A process of this machine.

    command: takes a job on stdin and writes its cell. It says what it says to a file beside the job's lock.
    """

    def __init__(self, job: Job, command: Sequence[str] = CELL_PROCESS) -> None:
        self._log = Path(job.lock).with_suffix(".log")
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("wb") as said:
                self._process = started(job.to_json(), job.threads or job.cores, command, said.fileno())
        except OSError as error:
            raise InputError(
                f"{self._log}: what a cell says cannot be written there ({error.strerror or error}). Make "
                "room for it and type the sweep again; nothing is lost."
            ) from None

    def status(self) -> int | None:
        """As `Process` says."""
        return self._process.poll()

    def stop(self) -> None:
        """By SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """By SIGKILL."""
        self._process.kill()
        self._process.wait()

    def said(self) -> str:
        """The last line of its log."""
        return last_line(self._log)

    def close(self, *, well: bool) -> None:
        """Closes its stdin; the log stays where something went wrong."""
        let_go(self._process)
        if well:
            self._log.unlink(missing_ok=True)


def started(
    job: str, threads: int, command: Sequence[str], said: int, folder: str | None = None
) -> subprocess.Popen[bytes]:
    """A process that has heard its job. said: file descriptor for all it says. folder: where it runs."""
    environment = {"OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads), **os.environ}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=said,
        stderr=said,
        env=environment,
        cwd=folder,
        start_new_session=True,  # Ctrl-C in a terminal is for the sweep, which then stops its cells
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died at once, which is found when it is looked at
        process.stdin.write(job.encode() + b"\n")
        process.stdin.flush()
    return process


def let_go(process: subprocess.Popen[bytes]) -> None:
    """Closes the pipe whose end tells a process that the sweep is gone."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def last_line(log: Path) -> str:
    """What stands last in a file, '' where that is nothing."""
    try:
        lines = log.read_text("utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:LONGEST]


def in_words(status: int, said: str) -> str:
    """How a process ended, for people."""
    if status == STOPPED:
        return "stopped by others"
    if status >= 0:
        return said or f"ended with status {status} and said nothing"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    why = "; that is what a system does where memory runs out" if name == "SIGKILL" else ""
    return f"killed by {name}{why}"

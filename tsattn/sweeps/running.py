"""The processes of a sweep: so many at a time, each at one cell; whatever ends one, the rest goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from tsattn import __version__
from tsattn.errors import InputError
from tsattn.sweeps.cell import Cell, read_cell, write_cell
from tsattn.sweeps.one import Job, now
from tsattn.sweeps.plan import Task

BEAT = 0.1
"""Seconds between two looks at the processes."""
GRACE = 60.0
"""Seconds for a training to save its state when it is stopped."""
LOCK, LOGS = "lock", "logs"
CELL_PROCESS = (sys.executable, "-m", "tsattn.sweeps.one")
LONGEST = 2000
"""Letters of a failure's message."""
INTERRUPTED = 130


class Watch(Protocol):
    """What hears how a sweep goes."""

    def begun(self, task: Task) -> None:
        """Its process has been started."""

    def ended(self, task: Task, cell: Cell, seconds: float) -> None:
        """It is done or has failed, after so many seconds of its last process."""

    def put_off(self, task: Task, why: str) -> None:
        """Its process was killed by others; it will be tried once more, after all the rest."""

    def beat(self) -> None:
        """Some time has passed."""


@dataclass(kw_only=True)
class _Running:
    task: Task
    process: subprocess.Popen[bytes]
    log: Path
    begun: float = field(default_factory=time.monotonic)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keeps a sweep for this process alone; InputError where another one has it. A killed one lets go."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=0)
        lock.acquire()
    except Timeout:
        raise InputError(f"{folder}: another process is at this sweep. Wait for it, or stop it.") from None
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror or error}). Choose another folder with -o."
        ) from None
    try:
        yield
    finally:
        lock.release()


def run(
    tasks: Sequence[Task],
    job_of: Callable[[Task], Job],
    *,
    jobs: int,
    watch: Watch,
    stopping: Callable[[], bool],
    process: Sequence[str] = CELL_PROCESS,
) -> list[Task]:
    """Computes the cells in this order, `jobs` at a time; returns those that are left when it was stopped.

    process: the command that takes a job on stdin and writes its cell.
    stopping: asked at every beat; once True nothing more is begun, and what runs saves its state and leaves.
    """
    waiting, put_off = list(tasks), set[Path]()
    running: list[_Running] = []
    try:
        while (waiting or running) and not stopping():
            while waiting and len(running) < jobs:
                running.append(_start(waiting.pop(0), job_of, watch, process))
            time.sleep(BEAT)
            watch.beat()
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                _let_go(one)
                seconds = time.monotonic() - one.begun
                by_others = one.process.returncode < 0 or one.process.returncode == INTERRUPTED
                first = one.task.folder not in put_off
                if by_others and first and read_cell(one.task.folder) is None:
                    put_off.add(one.task.folder)
                    waiting.append(one.task)
                    watch.put_off(one.task, _how_it_ended(one))
                else:
                    watch.ended(one.task, _outcome(one), seconds)
        return _stopped(running, watch) + waiting
    finally:
        for one in running:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
            _let_go(one)


def _start(task: Task, job_of: Callable[[Task], Job], watch: Watch, command: Sequence[str]) -> _Running:
    job = job_of(task)
    log = Path(job.lock).with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    threads = str(job.threads or job.cores)
    environment = {"OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads, **os.environ}
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            env=environment,
            start_new_session=True,  # Ctrl-C in a terminal is for the sweep, which then stops its cells
        )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died at once, which the next beat finds
        process.stdin.write(job.to_json().encode() + b"\n")
        process.stdin.flush()
    watch.begun(task)
    return _Running(task=task, process=process, log=log)


def _let_go(one: _Running) -> None:
    """Closes the pipe whose end tells a process that the sweep is gone."""
    if one.process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            one.process.stdin.close()


def _stopped(running: list[_Running], watch: Watch) -> list[Task]:
    """Ends what runs, which saves its state; returns what is not finished."""
    for one in running:
        one.process.terminate()
    until = time.monotonic() + GRACE
    left = []
    for one in running:
        try:
            one.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()
        _let_go(one)
        if (cell := read_cell(one.task.folder)) is not None:
            watch.ended(one.task, cell, time.monotonic() - one.begun)
        else:
            left.append(one.task)
    return left


def _outcome(one: _Running) -> Cell:
    """The cell that its process has written, or else one that says how it failed."""
    if (cell := read_cell(one.task.folder)) is not None:
        one.log.unlink(missing_ok=True)
        return cell
    task = one.task
    cell = Cell(
        data=task.source.name,
        method=task.method.label,
        kind=task.method.kind,
        seed=task.seed,
        grid=task.method.grid,
        status="failed",
        message=_how_it_ended(one),
        tsattn=__version__,
        finished=now(),
    )
    try:
        task.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{task.folder}: cannot be written ({error.strerror or error}).") from None
    write_cell(task.folder, cell)
    return cell


def _how_it_ended(one: _Running) -> str:
    code = one.process.returncode
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        why = "; that is what a system does where memory runs out" if name == "SIGKILL" else ""
        return f"killed by {name}{why}"
    if code == INTERRUPTED:
        return "stopped by others"
    try:
        lines = one.log.read_text("utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return (last or f"ended with status {code} and said nothing")[:LONGEST]

"""The cells of a sweep: so many at a time, each a process of its own; whatever ends one, the rest goes on."""

from __future__ import annotations

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
from tsattn.sweeps.job import Job, now
from tsattn.sweeps.plan import Task
from tsattn.sweeps.processes import STOPPED, Here, Process, in_words
from tsattn.sweeps.request import LOCK

BEAT = 0.1
"""Seconds between two looks at the processes."""
GRACE = 60.0
"""Seconds for a training to save its state when it is stopped."""
LOGS = "logs"


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
    process: Process
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun


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
    begin: Callable[[Job], Process] = Here,
) -> list[Task]:
    """Computes the cells in this order, `jobs` at a time; returns those that are left when it was stopped.

    begin: starts the process of a job, somewhere.
    stopping: asked at every beat; once True nothing more is begun, and what runs saves its state and leaves.
    """
    waiting, put_off = list(tasks), set[Path]()
    running: list[_Running] = []
    try:
        while (waiting or running) and not stopping():
            while waiting and len(running) < jobs:
                task = waiting.pop(0)
                running.append(_Running(task=task, process=begin(job_of(task))))
                watch.begun(task)
            time.sleep(BEAT)
            watch.beat()
            for one in [one for one in running if one.process.status() is not None]:
                running.remove(one)
                why = _killed_by_others(one)
                if why and one.task.folder not in put_off:
                    put_off.add(one.task.folder)
                    waiting.append(one.task)
                    one.process.close(well=False)
                    watch.put_off(one.task, why)
                else:
                    watch.ended(one.task, _outcome(one), one.seconds)
        return _stopped(running, watch) + waiting
    finally:
        for one in running:
            if one.process.status() is None:
                one.process.kill()
            one.process.close(well=False)


def _killed_by_others(one: _Running) -> str:
    """How, in words; '' for a cell that is there and a process that left by itself."""
    status = one.process.status()
    assert status is not None
    by_others = status < 0 or status == STOPPED
    return in_words(status, "") if by_others and read_cell(one.task.folder) is None else ""


def _stopped(running: list[_Running], watch: Watch) -> list[Task]:
    """Ends what runs, which saves its state; returns what is not finished."""
    for one in running:
        one.process.stop()
    until = time.monotonic() + GRACE
    while any(one.process.status() is None for one in running) and time.monotonic() < until:
        time.sleep(BEAT / 2)
    left = []
    for one in running:
        if one.process.status() is None:
            one.process.kill()
        if (cell := read_cell(one.task.folder)) is not None:
            watch.ended(one.task, cell, one.seconds)
        else:
            left.append(one.task)
    return left


def _outcome(one: _Running) -> Cell:
    """The cell that its process has written, or else one that says how it failed."""
    cell = read_cell(one.task.folder)
    if cell is None:
        status = one.process.status()
        assert status is not None
        cell = _failed(one.task, in_words(status, one.process.said()))
    one.process.close(well=cell.status == "done")
    return cell


def _failed(task: Task, message: str) -> Cell:
    cell = Cell(
        data=task.source.name,
        method=task.method.label,
        kind=task.method.kind,
        seed=task.seed,
        grid=task.method.grid,
        status="failed",
        message=message,
        tsattn=__version__,
        finished=now(),
    )
    try:
        task.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{task.folder}: cannot be written ({error.strerror or error}).") from None
    write_cell(task.folder, cell)
    return cell

"""The processes of a sweep: real ones, that do, fail, die, hang and are asked to stop."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tsattn.errors import InputError
from tsattn.host import peak_memory
from tsattn.sweeps.cell import Cell, cell_folder, read_cell
from tsattn.sweeps.job import Job
from tsattn.sweeps.methods import Method
from tsattn.sweeps.plan import Task
from tsattn.sweeps.processes import Here
from tsattn.sweeps.request import Size, Source
from tsattn.sweeps.running import held, run

SIZE = Size(train=10, test=10, length=10)

DOUBLE = Path(__file__).parent / "double.py"


class Heard:
    """A Watch that notes what it hears."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def begun(self, task: Task) -> None:
        self.words.append(f"begun {task.source.name}")

    def ended(self, task: Task, cell: Cell, seconds: float) -> None:
        self.words.append(f"{cell.status} {task.source.name}")

    def put_off(self, task: Task, why: str) -> None:
        self.words.append(f"put off {task.source.name}")

    def beat(self) -> None:
        pass


def task(folder: Path, name: str, place: int = 0) -> Task:
    return Task(
        source=Source(name=name, source=name, size=SIZE),
        method=Method(label="bn", kind="transformer", word="bn"),
        seed=0,
        folder=cell_folder(folder, name, "bn", 0),
        place=place,
        cost=1.0,
    )


def job(one: Task) -> Job:
    return Job(
        folder=str(one.folder), lock=str(one.folder.parents[3] / "logs" / f"{one.source.name}.lock"),
        data=one.source.name, source=one.source.source, method="bn", kind="transformer", word="bn", seed=0,
        preset="base", protocol="auto", device="cpu", threads=1, cores=1,
    )  # fmt: skip


def sweep(
    folder: Path, *names: str, jobs: int = 1, stopping: Callable[[], bool] = lambda: False
) -> tuple[list[str], list[str]]:
    """(names that are left, what was heard)."""
    heard = Heard()
    tasks = [task(folder, name) for name in names]
    left = run(
        tasks,
        job,
        jobs=jobs,
        watch=heard,
        stopping=stopping,
        begin=partial(Here, command=(sys.executable, str(DOUBLE))),
    )
    return [one.source.name for one in left], heard.words


def cell(folder: Path, name: str) -> Cell | None:
    return read_cell(cell_folder(folder, name, "bn", 0))


def test_a_cell_that_fails_is_noted_with_its_message_and_the_rest_goes_on(tmp_path: Path) -> None:
    left, heard = sweep(tmp_path, "fails", "raises", "works")
    assert not left
    assert heard == [
        "begun fails", "failed fails", "begun raises", "failed raises", "begun works", "done works",
    ]  # fmt: skip
    failed, raised = cell(tmp_path, "fails"), cell(tmp_path, "raises")
    assert failed is not None
    assert (failed.status, failed.message) == ("failed", "the disk is full of eels")
    assert raised is not None
    assert raised.message == "KeyError: 'nothing'"
    assert "Traceback" in (tmp_path / "logs" / "raises.log").read_text("utf-8")
    assert not (tmp_path / "logs" / "works.log").exists()


def test_what_others_killed_is_tried_once_more_after_the_rest(tmp_path: Path) -> None:
    left, heard = sweep(tmp_path, "dies-once", "dies", "works")
    assert not left
    assert heard == [
        "begun dies-once", "put off dies-once", "begun dies", "put off dies", "begun works", "done works",
        "begun dies-once", "done dies-once", "begun dies", "failed dies",
    ]  # fmt: skip
    dead = cell(tmp_path, "dies")
    assert dead is not None
    assert dead.message.startswith("killed by SIGKILL")


def test_stopping_lets_cells_keep_their_state_and_begins_nothing_more(tmp_path: Path) -> None:
    ready = tmp_path / "cells" / "hangs" / "bn" / "hangs.ready"
    left, heard = sweep(tmp_path, "hangs", "works", stopping=ready.exists)
    assert left == ["hangs", "works"]
    assert heard == ["begun hangs"]
    assert ready.with_suffix(".state").read_text("utf-8") == "kept"
    assert cell(tmp_path, "hangs") is None


def test_so_many_at_a_time(tmp_path: Path) -> None:
    places = [tmp_path / "cells" / name / "bn" / f"{name}.tries" for name in ("hangs", "works")]
    left, heard = sweep(
        tmp_path, "hangs", "works", jobs=2, stopping=lambda: cell(tmp_path, "works") is not None
    )
    assert all(place.exists() for place in places[1:])
    assert heard[:2] == ["begun hangs", "begun works"]
    assert left == ["hangs"]


def test_another_sweep_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(InputError, match="another process is at this sweep"), held(tmp_path):
        raise AssertionError
    with held(tmp_path):
        pass


def test_a_process_without_a_sweep_leaves(tmp_path: Path) -> None:
    """Its stdin is a pipe that ends with the sweep, however that ends."""
    done = subprocess.run(
        [sys.executable, "-m", "tsattn.sweeps.one"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "a job is expected" in done.stderr
    work = job(task(tmp_path, "GunPoint"))
    lonely = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import tsattn.sweeps.one as o, time; o.transformer = lambda job: time.sleep(60); o.main()",
        ],
        stdin=subprocess.PIPE,
    )
    assert lonely.stdin is not None
    lonely.stdin.write(work.to_json().encode() + b"\n")
    lonely.stdin.close()
    assert lonely.wait(30) == -signal.SIGTERM


def test_a_job_travels_whole(tmp_path: Path) -> None:
    one = job(task(tmp_path, "a\nb"))
    assert "\n" not in one.to_json()
    assert Job(**json.loads(one.to_json())) == one


def test_the_peak_of_memory_is_that_of_this_process() -> None:
    """Not of the larger one that started it, with which getrusage would begin on Linux."""
    large = bytearray(300_000_000)
    code = "from tsattn.host import peak_memory; print(peak_memory())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    own = peak_memory()
    if own is None:
        pytest.skip("nobody tells here")
    assert own > len(large)
    assert 1_000_000 < int(done.stdout) < 200_000_000

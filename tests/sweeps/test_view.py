"""The grid of a sweep as it is drawn: asked order, means of seeds, what fails, what fits."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from tsattn.cli.bench_view import View, grid
from tsattn.sweeps.cell import Cell
from tsattn.sweeps.methods import Method
from tsattn.sweeps.plan import Task
from tsattn.sweeps.request import Size, Source

METHODS = [Method(label=label, kind="transformer", word=label) for label in ("bn", "softmax width=64")]


def tasks(names: list[str], seeds: int) -> list[Task]:
    """In the order of cost, which is that of the names backwards."""
    found: list[Task] = []
    for name in names:
        for seed in range(seeds):
            for method in METHODS:
                size = Size(train=1, test=1, length=1)
                found.append(
                    Task(
                        source=Source(name=name, source=name, size=size),
                        method=method, seed=seed, folder=Path(), place=len(found), cost=10_000.0,
                    )
                )  # fmt: skip
    return found[::-1]


def cell(task: Task, accuracy: float | None) -> Cell:
    names = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "calibration_error")
    return Cell(
        data=task.source.name, method=task.method.label, kind="transformer", seed=task.seed,
        status="failed" if accuracy is None else "done", finished="now",
        metrics={} if accuracy is None else dict.fromkeys(names, accuracy),
    )  # fmt: skip


def drawn(
    all_of_them: list[Task], done: dict[Task, Cell], running: list[Task], rows: int | None = None
) -> list[list[str]]:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(grid(all_of_them, done, running, rows))
    return [line.split() for line in console.export_text().splitlines()]


def test_a_place_is_the_mean_of_its_seeds_or_says_what_it_lacks() -> None:
    every = tasks(["A", "B"], 2)
    of = {(task.source.name, task.method.label, task.seed): task for task in every}
    done = {
        of["A", "bn", 0]: cell(of["A", "bn", 0], 0.5),
        of["A", "bn", 1]: cell(of["A", "bn", 1], 0.7),
        of["A", "softmax width=64", 0]: cell(of["A", "softmax width=64", 0], 0.25),
        of["B", "bn", 0]: cell(of["B", "bn", 0], None),
    }
    head, first, second = drawn(every, done, [of["B", "softmax width=64", 0]])
    assert head == ["data", "bn", "softmax", "width=64"]
    assert first == ["A", "60.00", "±14.14", "25.00", "1/2"]
    assert second == ["B", "1/2", "1", "failed", "0/2", "▶"]


def test_where_rows_are_few_those_at_work_are_seen() -> None:
    names = [f"set{place}" for place in range(9)]
    every = tasks(names, 1)
    done = {task: cell(task, 1.0) for task in every if task.source.name == "set8"}
    assert [line[0] for line in drawn(every, done, [every[2]], rows=3)[1:]] == ["set5", "set6", "set7"]
    assert len(drawn(every, done, [], rows=20)) == 10


def test_the_time_left_follows_what_cells_took() -> None:
    every = tasks(["A"], 2)
    view = View(every, [], jobs=1)
    assert view.progress() == "0 of 4 cells, about 4 s left"
    view.begun(every[0])
    view.ended(every[0], cell(every[0], 0.5), 100.0)
    assert view.progress() == "1 of 4 cells, about 5 min left"
    assert View(every, [(task, cell(task, 0.5)) for task in every], jobs=1).progress() == "4 of 4 cells"

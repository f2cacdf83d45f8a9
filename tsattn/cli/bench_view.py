"""A sweep as it is seen: on a terminal a grid of cells that fills, elsewhere a line a cell."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tsattn.cli import console
from tsattn.sweeps.estimate import Estimate, in_words

if TYPE_CHECKING:
    from tsattn.sweeps.cell import Cell
    from tsattn.sweeps.plan import Task

LINES_BESIDE = 8
"""Of the terminal that are not rows of the grid."""


class View:
    """Counts what a sweep does and says so line by line; `LiveView` draws it instead.

    tasks: all cells. cells: those that were finished before, by folder.
    """

    def __init__(self, tasks: Sequence[Task], cells: Sequence[tuple[Task, Cell]], jobs: int) -> None:
        self.tasks, self.jobs = tasks, jobs
        self.done: dict[Task, Cell] = {}
        self.running: dict[Task, float] = {}
        self.estimate = Estimate()
        for task, cell in cells:
            self.done[task] = cell
            if cell.train_seconds is not None:
                self.estimate.learn(task, cell.train_seconds + 5)

    def begun(self, task: Task) -> None:
        """Its process runs from now on."""
        self.running[task] = time.monotonic()

    def ended(self, task: Task, cell: Cell, seconds: float) -> None:
        """Counts a cell that is done or has failed."""
        self.running.pop(task, None)
        self.done[task] = cell
        if cell.status == "done":
            self.estimate.learn(task, seconds)
        self.say(task, cell, seconds)

    def put_off(self, task: Task, why: str) -> None:
        """Says that a process was killed."""
        self.running.pop(task, None)
        console.remark(f"{task}: {why}; it is tried once more, after the others")

    def beat(self) -> None:
        """Nothing to be said."""

    def say(self, task: Task, cell: Cell, seconds: float) -> None:
        """A line for a cell."""
        if cell.status == "failed":
            console.remark(f"{task}: failed: {cell.message}")
            return
        accuracy = 100 * (cell.metrics["accuracy"] or 0.0)
        console.remark(f"{task}: {accuracy:.2f} %, {in_words(seconds)} ({self.progress()})")

    def progress(self) -> str:
        """'7 of 40 cells, about 12 min left'."""
        waiting = [task for task in self.tasks if task not in self.done and task not in self.running]
        now = time.monotonic()
        running = [(task, now - begun) for task, begun in self.running.items()]
        words = f"{len(self.done)} of {len(self.tasks)} cells"
        if not waiting and not running:
            return words
        return f"{words}, about {in_words(self.estimate.left(waiting, running, self.jobs))} left"


class LiveView(View):
    """The grid on stderr."""

    def __init__(self, tasks: Sequence[Task], cells: Sequence[tuple[Task, Cell]], jobs: int) -> None:
        super().__init__(tasks, cells, jobs)
        self.live = Live(console=console.err, get_renderable=self.draw, refresh_per_second=2, transient=True)

    def say(self, task: Task, cell: Cell, seconds: float) -> None:
        """A line for a failure; the grid says the rest."""
        if cell.status == "failed":
            super().say(task, cell, seconds)

    def draw(self) -> Group:
        """The grid, what runs and the time left."""
        running = ", ".join(
            f"{task} ({in_words(time.monotonic() - begun)})" for task, begun in list(self.running.items())
        )
        room = max(3, console.err.size.height - LINES_BESIDE)
        return Group(
            grid(self.tasks, self.done, self.running, rows=room),
            Text(f"running  {running or '–'}", style="dim"),
            Text(self.progress()),
        )


@contextmanager
def watching(tasks: Sequence[Task], cells: Sequence[tuple[Task, Cell]], jobs: int) -> Iterator[View]:
    """The view that suits stderr."""
    if not console.err.is_terminal:
        yield View(tasks, cells, jobs)
        return
    view = LiveView(tasks, cells, jobs)
    with view.live:
        yield view


def grid(
    tasks: Sequence[Task], done: dict[Task, Cell], running: Iterable[Task] = (), rows: int | None = None
) -> Table:
    """Data sets by methods: mean test accuracy of the seeds that are done, and how many of how many.

    rows: at most so many, those with the cells that are at work or come next.
    """
    by_place: dict[str, dict[str, list[Task]]] = {}
    labels: dict[str, None] = {}
    for task in sorted(tasks, key=lambda task: task.place):
        by_place.setdefault(task.source.name, {}).setdefault(task.method.label, []).append(task)
        labels[task.method.label] = None
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("data", no_wrap=True)
    for label in labels:
        table.add_column(escape(label), justify="right", overflow="fold")
    names = list(by_place)
    if rows is not None and len(names) > rows:
        next_ones = dict.fromkeys(task.source.name for task in tasks if task not in done)
        shown = list(dict.fromkeys([*next_ones, *names]))[:rows]
        names = [name for name in names if name in shown]
    at_work = set(running)
    for name in names:
        table.add_row(
            escape(name), *(_place(by_place[name].get(label, []), done, at_work) for label in labels)
        )
    return table


def _place(tasks: list[Task], done: dict[Task, Cell], running: set[Task]) -> Text:
    if not tasks:
        return Text("")
    cells = [done[task] for task in tasks if task in done]
    accuracies = [100 * (cell.metrics["accuracy"] or 0.0) for cell in cells if cell.status == "done"]
    failed = len(cells) - len(accuracies)
    text = Text(f"{statistics.fmean(accuracies):.2f}" if accuracies else "")
    if len(accuracies) > 1:
        text.append(f" ±{statistics.stdev(accuracies):.2f}", style="dim")
    if len(cells) < len(tasks):
        text.append(f" {len(cells)}/{len(tasks)}" if len(tasks) > 1 else "–", style="dim")
    if failed:
        text.append(f" {failed} failed" if len(tasks) > 1 else "failed", style="red")
    if any(task in running for task in tasks):
        text.append(" ▶", style="cyan")
    return text

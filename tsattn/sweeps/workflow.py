"""From what was typed to the cells of a sweep: all decided and checked, nothing computed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tsattn.data.columns import TableOptions
from tsattn.errors import InputError
from tsattn.host import cores
from tsattn.presets.reading import load_preset
from tsattn.sweeps import request as requests
from tsattn.sweeps.cell import CELL, Cell, read_cell
from tsattn.sweeps.job import Job
from tsattn.sweeps.methods import PRESET, Method, check_method, methods, parse_grid, split_words
from tsattn.sweeps.plan import Task, tasks
from tsattn.sweeps.request import Recipe, Request
from tsattn.sweeps.running import LOGS
from tsattn.sweeps.sources import find_sources
from tsattn.training.holdout import Holding
from tsattn.training.protocols import Protocol, parse_protocol, refuse_parts_of_several, settle

DEFAULT = "base"
"""The preset where none is typed."""
NONE = "none"
"""For no attention at all."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A sweep as typed. options: by field of the configurations, None where nothing was typed; so `table`."""

    folder: Path
    data: Sequence[str]
    archives: Sequence[str]
    collections: Sequence[str]
    attentions: Sequence[str]
    baselines: Sequence[str]
    grid: Sequence[str]
    seeds: tuple[int, ...]
    preset: str
    protocol: str
    device: str
    threads: int | None
    registry: Path | None
    allow_code: bool
    jobs: int
    table: dict[str, str | None] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep about to begin or to go on. tasks: every cell, cheap ones first."""

    folder: Path
    request: Request
    tasks: tuple[Task, ...]
    threads: int | None
    jobs: int
    allow_code: bool

    def note(self) -> None:
        """Writes what is asked into the folder, which the caller holds. InputError where that disagrees."""
        requests.note(self.folder, self.request)

    def finished(self, *, but_failed: bool) -> list[tuple[Task, Cell]]:
        """The cells that are there. but_failed: those that failed are taken away, to be tried again."""
        found = []
        for task in self.tasks:
            if (cell := read_cell(task.folder)) is None:
                continue
            _check_own(cell, task)
            if but_failed and cell.status == "failed":
                (task.folder / CELL).unlink()
                with contextlib.suppress(OSError):  # not empty where a training had begun
                    task.folder.rmdir()
                continue
            found.append((task, cell))
        return found

    def job(self, task: Task) -> Job:
        """What the process of a cell is told."""
        recipe, method = self.request.recipe, task.method
        name = "--".join((*task.folder.parts[-3:-1], task.folder.name))
        return Job(
            folder=str(task.folder),
            lock=str(self.folder / LOGS / f"{name}.lock"),
            data=task.source.name,
            source=task.source.source,
            method=method.label,
            kind=method.kind,
            word=method.word,
            seed=task.seed,
            preset=method.preset or recipe.preset,
            protocol=recipe.protocol,
            device=recipe.device,
            threads=self.threads,
            cores=max(1, cores() // self.jobs),
            grid=method.grid,
            asked={**recipe.options, **method.asked},
            table=recipe.table,
            registry=recipe.registry,
            allow_code=self.allow_code,
        )


def prepare(asked: Asked) -> Sweep:
    """Everything that can be said before anything is computed is said here, as InputError."""
    requests.check_free(asked.folder)
    options = {name: value for name, value in asked.options.items() if value is not None}
    protocol = parse_protocol(asked.protocol)
    settle(Protocol(name="holdout") if protocol.name == "refit" else protocol, options, Holding())
    attentions = [word for word in split_words(asked.attentions) if word != NONE]
    baselines = split_words(asked.baselines)
    grid = parse_grid(asked.grid)
    columns = methods(attentions, grid, baselines)
    if not columns:
        raise InputError("Compare what? --attention none leaves nothing: type --baseline too, e.g. rocket.")
    recipe = Recipe(
        preset=asked.preset,
        protocol=asked.protocol,
        device=asked.device,
        options=options,
        preset_sets=_sets(asked.preset),
        table={name: word for name, word in asked.table.items() if word is not None},
        registry="" if asked.registry is None else str(asked.registry),
    )
    request = Request(
        sources=(),
        attentions=tuple(attentions),
        baselines=tuple(baselines),
        grid=grid,
        seeds=asked.seeds,
        recipe=recipe,
        presets={method.grid[PRESET]: _sets(method.preset) for method in columns if method.preset},
    )
    for method in columns:
        refuse_parts_of_several(protocol, method.preset or asked.preset)
        _check(method, request, asked)
    sources = find_sources(
        asked.data,
        asked.archives,
        asked.collections,
        TableOptions.of(recipe.table),
        asked.registry,
        judged=not recipe.folds,
    )
    request = replace(request, sources=tuple(sources))
    cells = tuple(tasks(request, columns, asked.folder))
    _check_folders(cells)
    return Sweep(
        folder=asked.folder,
        request=request,
        tasks=cells,
        threads=asked.threads,
        jobs=asked.jobs,
        allow_code=asked.allow_code,
    )


def _check_own(cell: Cell, task: Task) -> None:
    """InputError where a folder has the cell of another, as after a copy."""
    if (cell.data, cell.method, cell.seed) != (task.source.name, task.method.label, task.seed):
        raise InputError(
            f"{task.folder / CELL}: the cell of {cell.data} {cell.method} seed {cell.seed}, where that of "
            f"{task} is expected. Move its folder elsewhere and type the sweep again."
        )


def _check_folders(tasks: Sequence[Task]) -> None:
    """InputError where names differ only in what no file system takes."""
    there: dict[Path, Task] = {}
    for task in tasks:
        other = there.setdefault(task.folder, task)
        if other is not task:
            raise InputError(f"{other} and {task} would share the folder {task.folder}. Rename one of them.")


def _sets(preset: str) -> dict[str, Any]:
    return load_preset(preset).values


def _check(method: Method, request: Request, asked: Asked) -> None:
    options = request.recipe.options
    if twice := next((name for name in method.asked if name in options), None):
        raise InputError(f"--grid and --{twice.replace('_', '-')} both say what it is. Type one of them.")
    if method.preset and asked.preset != DEFAULT:
        raise InputError("--grid and --preset both name presets. Type one of them.")
    if ".py:" in method.word and not asked.allow_code:
        raise InputError(
            f"--attention {method.word}: its code is kept in the run folders, and judging them runs it from "
            "there. Type --allow-code to allow that."
        )
    check_method(method, request.values(method))

"""The cells of a sweep, cheap ones first, and what each is estimated to cost.

A unit of cost is one timepoint of one case once through a transformer, forward and back. Estimates order the
cells and, held against what finished cells took, tell the time that is left; nothing else depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tsattn.config import Rules
from tsattn.sweeps.baselines import find_baseline
from tsattn.sweeps.cell import cell_folder
from tsattn.sweeps.methods import Method
from tsattn.sweeps.request import Request, Size, Source
from tsattn.training import rules

START = 50_000.0
"""Units that a process costs before it computes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A cell that is to be computed, known by itself alone.

    place: among all as asked for. cost: in units of this module.
    """

    source: Source
    method: Method
    seed: int
    folder: Path
    place: int
    cost: float

    def __str__(self) -> str:
        return f"{self.source.name} {self.method.label} seed {self.seed}"


def tasks(request: Request, methods: list[Method], folder: Path) -> list[Task]:
    """Every cell, cheap ones first; of equal cost a seed of every method before the next seed."""
    found: list[Task] = []
    folds = request.recipe.folds
    for source in request.sources:
        for place, seed in enumerate(request.seeds):
            for method in methods:
                if place and not folds and not _seeded(method):
                    continue  # every seed would give the same
                found.append(
                    Task(
                        source=source,
                        method=method,
                        seed=seed,
                        folder=cell_folder(folder, source.name, method.label, seed),
                        place=len(found),
                        cost=cost(method, source.size, request.values(method), folds),
                    )
                )
    return sorted(found, key=lambda task: task.cost)


def _seeded(method: Method) -> bool:
    return method.kind == "transformer" or find_baseline(method.word).seeded


def cost(method: Method, size: Size, said: Mapping[str, Any], folds: int = 0) -> float:
    """Units that a cell costs. said: values by field that are not left to the rules."""
    if folds:
        part = Size(train=size.train - size.train // folds, test=size.train // folds, length=size.length)
        return START + folds * (cost(method, part, said) - START)
    timepoints = (size.train + size.test) * size.length
    if method.kind == "baseline":
        baseline = find_baseline(method.word)
        pairs = size.train * size.test * size.length**2
        return START + baseline.cost * timepoints + baseline.pairs * pairs
    bounds = Rules(**{one.name: said[one.name] for one in fields(Rules) if one.name in said})
    batch = said.get("batch_size")
    if not isinstance(batch, int):
        batch = rules.batch_size(size.train).value
    stride = rules.stride(size.length, bounds).value
    epochs = said.get("epochs") or rules.epochs(size.train, size.length, stride, batch, bounds).value
    a_case = size.length * (1 / stride + rules.TIMEPOINT)
    return START + said.get("members", 1) * size.train * a_case * float(epochs) + timepoints

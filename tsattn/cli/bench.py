"""`tsattn bench`: data sets × attentions and baselines × seeds, each cell a run folder and a process."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tsattn.cli.bench_options import (
    Address,
    Archives,
    Attentions,
    Baselines,
    CellThreads,
    Collections,
    Data,
    Engine,
    GpuShare,
    Grid,
    Jobs,
    RetryFailed,
    SweepOut,
    SweepSeeds,
    TimeBudget,
)
from tsattn.cli.options import (
    AllowCode,
    AsJson,
    Device,
    GroupColumn,
    IdColumn,
    LabelColumn,
    Layout,
    Registry,
    TimeColumn,
)
from tsattn.cli.recipe_options import (
    Augment,
    Averaging,
    ClassWeight,
    Dropout,
    LabelSmoothing,
    Optimiser,
    Patience,
    ProtocolWord,
    Sampling,
    Schedule,
    StochasticDepth,
)
from tsattn.cli.train_options import (
    Epochs,
    HeadCount,
    Layers,
    LearningRate,
    Preset,
    Tokens,
    TrainingBatch,
    Validation,
    Width,
)
from tsattn.errors import InputError, Interrupted

if TYPE_CHECKING:
    from tsattn.sweeps.cell import Cell
    from tsattn.sweeps.job import Job
    from tsattn.sweeps.plan import Task
    from tsattn.sweeps.processes import Process
    from tsattn.sweeps.workflow import Sweep

ATTENTIONS = "softmax,linear,bn,sh,bn+sh"


def bench(
    out: SweepOut,
    data: Data = None,
    archive: Archives = None,
    collection: Collections = None,
    attention: Attentions = None,
    baseline: Baselines = None,
    grid: Grid = None,
    seeds: SweepSeeds = "3",
    jobs: Jobs = None,
    time_budget: TimeBudget = None,
    retry_failed: RetryFailed = False,
    tokens: Tokens = None,
    width: Width = None,
    heads: HeadCount = None,
    layers: Layers = None,
    preset: Preset = "base",
    epochs: Epochs = None,
    batch_size: TrainingBatch = None,
    learning_rate: LearningRate = None,
    optimiser: Optimiser = None,
    schedule: Schedule = None,
    dropout: Dropout = None,
    stochastic_depth: StochasticDepth = None,
    label_smoothing: LabelSmoothing = None,
    class_weight: ClassWeight = None,
    sampling: Sampling = None,
    augment: Augment = None,
    averaging: Averaging = None,
    patience: Patience = None,
    protocol: ProtocolWord = "auto",
    validation: Validation = None,
    device: Device = "auto",
    threads: CellThreads = None,
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    group_column: GroupColumn = None,
    registry: Registry = None,
    engine: Engine = "local",
    address: Address = None,
    gpu_share: GpuShare = 1.0,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Compare attentions and baselines on many data sets, in one folder that fills.

    Finished cells are never repeated: typing the same again goes on, with more seeds, attentions or data it
    adds to the folder. `tsattn compare DIR` makes tables and statistics of it.
    """
    from tsattn.cli import console
    from tsattn.sweeps.estimate import parse_duration

    console.hear_remarks()
    begun = time.monotonic()
    if address is not None and engine != "ray":
        raise InputError("--address is that of a Ray cluster: type --engine ray too.")
    budget = None if time_budget is None else parse_duration(time_budget)
    with console.working("loading"):
        from tsattn.sweeps.workflow import Asked, prepare
        from tsattn.training.plan import parse_batch_size
        from tsattn.training.several import parse_seeds

        asked = Asked(
            folder=out,
            data=data or (),
            archives=archive or (),
            collections=collection or (),
            attentions=attention or (ATTENTIONS,),
            baselines=baseline or (),
            grid=grid or (),
            seeds=tuple(parse_seeds(seeds)),
            preset=preset,
            protocol=protocol,
            device=device,
            threads=threads,
            registry=registry,
            allow_code=allow_code,
            jobs=jobs or 1,
            table={
                "layout": layout,
                "id": id_column,
                "time": time_column,
                "label": label_column,
                "group": group_column,
            },
            options={
                "tokens": tokens,
                "width": width,
                "heads": heads,
                "layers": layers,
                "epochs": epochs,
                "batch_size": None if batch_size is None else parse_batch_size(batch_size),
                "learning_rate": learning_rate,
                "optimiser": optimiser,
                "schedule": schedule,
                "dropout": dropout,
                "stochastic_depth": stochastic_depth,
                "label_smoothing": label_smoothing,
                "class_weight": class_weight,
                "sampling": sampling,
                "augment": augment,
                "averaging": averaging,
                "patience": patience,
                "validation": validation,
            },
        )
        sweep = prepare(asked)
    with _engine(engine, address, threads, gpu_share, device, jobs) as (begin, at_once):
        _go(replace(sweep, jobs=at_once), begin, begun, budget, retry_failed=retry_failed, as_json=as_json)


@contextmanager
def _engine(
    engine: str, address: str | None, threads: int | None, gpu_share: float, device: str, jobs: int | None
) -> Iterator[tuple[Callable[[Job], Process] | None, int]]:
    """What begins the process of a cell, None for one of this machine, and how many at once."""
    if engine == "local":
        yield None, jobs or 1
        return
    from tsattn.inference.ray_engine import Cluster
    from tsattn.sweeps.ray_engine import on_cluster

    with on_cluster(Cluster(address=address, threads=threads or 1, gpu_share=gpu_share), device) as found:
        begin, room = found
        yield begin, min(room, jobs or room)


def _go(
    sweep: Sweep,
    begin: Callable[[Job], Process] | None,
    begun: float,
    budget: float | None,
    *,
    retry_failed: bool,
    as_json: bool,
) -> None:
    from tsattn.cli.bench_view import watching
    from tsattn.cli.interrupts import asked_to_stop
    from tsattn.sweeps.running import held, run

    stopped = ""
    with held(sweep.folder), asked_to_stop() as interrupted:

        def stopping() -> bool:
            nonlocal stopped
            if interrupted():
                stopped = "interrupted"
            elif budget is not None and time.monotonic() - begun > budget:
                stopped = "time budget"
            return bool(stopped)

        sweep.note()
        finished = sweep.finished(but_failed=retry_failed)
        there = {task for task, _ in finished}
        with watching(sweep.tasks, finished, sweep.jobs) as view:
            left = run(
                [task for task in sweep.tasks if task not in there],
                sweep.job,
                jobs=sweep.jobs,
                watch=view,
                stopping=stopping,
                **({} if begin is None else {"begin": begin}),
            )
    if not left:
        stopped = ""
    if as_json:
        from tsattn.cli import console

        console.show_json(_document(sweep, view.done, left, stopped, time.monotonic() - begun))
    else:
        _show(sweep, view.done, left, stopped, view.progress())
    if stopped == "interrupted":
        raise Interrupted(f"Stopped with {len(left)} cells left; nothing is lost. Go on with `{_typed()}`.")


def _show(sweep: Sweep, done: dict[Task, Cell], left: list[Task], stopped: str, progress: str) -> None:
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.cli.bench_view import grid

    console.show(grid(sweep.tasks, done))
    if sweep.request.recipe.folds:
        console.show("Of cases of TRAIN that were held out in turn; TEST was not read.")
    failed = [cell for cell in done.values() if cell.status == "failed"]
    console.show(f"{escape(str(sweep.folder))}: {progress}" + (f", {len(failed)} failed" if failed else ""))
    for message in dict.fromkeys(cell.message for cell in failed):
        alike = [f"{cell.data} {cell.method} seed {cell.seed}" for cell in failed if cell.message == message]
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        console.show(escape(f"failed: {alike[0]}{more}: {message}"))
    if stopped == "time budget":
        console.remark(f"The time is up; {len(left)} cells are left. Go on with `{_typed()}`.")


def _document(
    sweep: Sweep, done: dict[Task, Cell], left: list[Task], stopped: str, seconds: float
) -> dict[str, Any]:
    ended = [done[task] for task in sweep.tasks if task in done]
    return {
        "sweep": str(sweep.folder),
        "protocol": sweep.request.recipe.protocol,
        "cells": len(sweep.tasks),
        "done": [
            {"data": cell.data, "method": cell.method, "seed": cell.seed, **cell.metrics}
            for cell in ended
            if cell.status == "done"
        ],
        "failed": [
            {"data": cell.data, "method": cell.method, "seed": cell.seed, "message": cell.message}
            for cell in ended
            if cell.status == "failed"
        ],
        "left": [{"data": task.source.name, "method": task.method.label, "seed": task.seed} for task in left],
        "stopped": stopped or None,
        "seconds": round(seconds, 3),
    }


def _typed() -> str:
    """The command as it was typed, to be typed again."""
    return shlex.join(["tsattn", *sys.argv[1:]])

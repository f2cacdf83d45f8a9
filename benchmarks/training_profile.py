"""Where the time of a step of tsattn's trainer goes, from torch's profiler: the --profile of training.py."""

from __future__ import annotations

import tsattn  # noqa: F401 - before torch, which reads once how OpenMP's threads wait

# isort: split
import time
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile
from training_loops import CPU, config_of, pair
from training_turns import first

from tsattn.config import ModelConfig
from tsattn.data.collection import Collection

TOP = 12
STEPS, LONG_STEPS, LONG = 60, 6, 10_000
"""How many steps; how many of more than LONG timepoints."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Shares of the time of a step. operations: (name, calls a step, share), the largest first.

    step: seconds, without the profiler. outside: the share in no operation, which is Python.
    """

    step: float
    operations: list[tuple[str, float, float]]
    outside: float


def profiled(collection: Collection, model: ModelConfig, batch: int, threads: int) -> Profile:
    """Some steps of `fit` on the cases under the profiler, after as many without it.

    The profiler itself costs some microseconds an operation, which are in all shares.
    """
    torch.set_num_threads(threads)
    steps = LONG_STEPS if batch * int(collection.lengths.max()) > LONG else STEPS
    trainer, _ = pair(first(collection, steps * batch), model, config_of(1, batch), CPU)
    step = trainer.turn(skip=1).step
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        begin = time.perf_counter()
        steps = trainer.turn(skip=0).steps
        seconds = time.perf_counter() - begin
    # The optimiser's own mark spans Python and operations; what is its own in it is Python.
    rows = [row for row in recorded.key_averages() if not row.key.startswith("Optimizer.")]
    rows.sort(key=lambda row: -row.self_cpu_time_total)
    operations = [
        (row.key, row.count / steps, row.self_cpu_time_total / 1e6 / seconds)
        for row in rows
        if row.self_cpu_time_total > 0
    ]
    return Profile(step=step, operations=operations, outside=1 - sum(share for *_, share in operations))


def show_profile(name: str, collection: Collection, model: ModelConfig, batch: int, threads: int) -> None:
    """Prints the table."""
    found = profiled(collection, model, batch, threads)
    print(f"\n{name}, batch {batch}, threads {threads}: {1e3 * found.step:.1f} ms a step\n")
    print("| operation | calls a step | share of the time |\n|---|---:|---:|")
    for operation, calls, share in found.operations[:TOP]:
        print(f"| `{operation.removeprefix('aten::')}` | {calls:.1f} | {100 * share:.1f} % |")
    rest = found.operations[TOP:]
    print(
        f"| {len(rest)} others | {sum(calls for _, calls, _ in rest):.0f} "
        f"| {100 * sum(share for *_, share in rest):.1f} % |"
    )
    print(f"| outside of operations (Python) | | {100 * found.outside:.1f} % |")

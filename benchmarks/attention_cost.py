"""Time, memory and operations of an attention at one N: the measuring half of attention.py."""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from tsattn.models.attention import Heads, Mechanism, build
from tsattn.models.memory import keep_freed_memory

HEADS = 8
SDPA = "torch SDPA"
MOST_TURNS, MOST_CALLS = 200, 20
TURN = 0.1
"""Seconds of a turn, in which a spec is called again and again as a model calls it: warm."""
FEW_FROM = 8192
"""From here a step of the slow specs takes seconds on a CPU: all get one turn, of TURN_OF_FEW seconds."""
TURN_OF_FEW = 2.0


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One spec at one N.

    forward, training: median seconds. megabytes: the peak that a training step adds. flops: of forward.
    """

    spec: str
    n: int
    forward: float
    training: float
    megabytes: float
    flops: int


class Bench:
    """Times specs on one device with tensors of one shape."""

    def __init__(self, device: torch.device, batch: int, dim: int) -> None:
        self.device, self.batch, self.dim = device, batch, dim
        keep_freed_memory()  # as training does
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32

    def measure(self, n: int, names: list[str], patience: float) -> list[Cell]:
        """All specs at one N, in turns for about `patience` seconds a spec, and at least three turns; from
        FEW_FROM on one.
        """
        torch.manual_seed(0)
        q, k, v = (self._tensor(n).requires_grad_() for _ in range(3))
        gradient = self._tensor(n)
        runs: dict[str, Callable[[], Tensor]] = {SDPA: lambda: F.scaled_dot_product_attention(q, k, v)}
        for name in names:
            mechanism = build(name, Heads(HEADS, self.dim)).to(self.device, self.dtype)
            runs[name] = _bound(mechanism, q, k, v)
        steps = {name: _training_step(run, gradient, (q, k, v)) for name, run in runs.items()}
        if n < FEW_FROM:
            for step in steps.values():  # warms up
                step()
        flops = {name: _flops(run) for name, run in runs.items()}
        forward: dict[str, list[float]] = {name: [] for name in runs}
        training: dict[str, list[float]] = {name: [] for name in runs}
        start, turns = time.perf_counter(), 0
        few = n >= FEW_FROM
        while turns < (1 if few else 3) or (
            not few and turns < MOST_TURNS and time.perf_counter() - start < patience * len(runs)
        ):
            turns += 1
            for name, run in runs.items():
                with torch.inference_mode():
                    forward[name] += self._turn(run, TURN_OF_FEW if few else TURN)
                training[name] += self._turn(steps[name], TURN_OF_FEW if few else TURN)
        memory = {name: self._megabytes(step) for name, step in steps.items()}
        return [
            Cell(
                spec=name,
                n=n,
                forward=statistics.median(forward[name]),
                training=statistics.median(training[name]),
                megabytes=memory[name],
                flops=flops[name],
            )
            for name in runs
        ]

    def ceilings(self) -> tuple[float, float]:
        """Operations and bytes a second of a large product and a large copy, medians of nine."""
        side = 8192 if self.device.type == "cuda" else 2048
        matrix = torch.randn(side, side, device=self.device).to(self.dtype)
        source = torch.empty(1 << 28, dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)
        runs: list[Callable[[], Tensor]] = [lambda: matrix @ matrix, lambda: target.copy_(source)]
        for run in runs:
            run()
        seconds = [statistics.median(self._seconds(run) for _ in range(9)) for run in runs]
        return 2 * float(side) ** 3 / seconds[0], 2 * source.numel() / seconds[1]

    def _tensor(self, n: int) -> Tensor:
        return torch.randn(self.batch, HEADS, n, self.dim, device=self.device).to(self.dtype)

    def _turn(self, run: Callable[[], object], seconds: float) -> list[float]:
        """Seconds of each of several calls, one after the other for about `seconds`."""
        times = [self._seconds(run)]
        while sum(times) < seconds and len(times) < MOST_CALLS:
            times.append(self._seconds(run))
        return times

    def _seconds(self, run: Callable[[], object]) -> float:
        self._wait()
        start = time.perf_counter()
        run()
        self._wait()
        return time.perf_counter() - start

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _megabytes(self, step: Callable[[], None]) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            step()
            return (torch.cuda.max_memory_allocated() - before) / 1e6
        if sys.platform != "linux":
            return float("nan")
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what earlier steps left would hide what this one takes
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident now
        resident = _status("VmRSS")
        step()
        return (_status("VmHWM") - resident) / 1e3


def _bound(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    return lambda: mechanism(q, k, v, None)


def _training_step(
    run: Callable[[], Tensor], gradient: Tensor, inputs: Iterable[Tensor]
) -> Callable[[], None]:
    def step() -> None:
        for tensor in inputs:
            tensor.grad = None
        run().backward(gradient)

    return step


def _flops(run: Callable[[], Tensor]) -> int:
    def fused(q: torch.Size, k: torch.Size, v: torch.Size, *_: object, **__: object) -> int:
        return int(sdpa_flop_count(q, k, v))

    # torch counts the fused kernels of CUDA, and not yet that of CPUs.
    counted = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: fused}
    counter = FlopCounterMode(display=False, custom_mapping=counted)
    with counter:
        run()
    return int(counter.get_total_flops())


def _status(key: str) -> float:
    """Kilobytes that Linux tells of this process."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return float(next(line for line in lines if line.startswith(key)).split()[1])

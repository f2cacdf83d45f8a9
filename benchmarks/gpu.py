"""What only a GPU can show, in one call and under five minutes, as one Markdown table.

    python benchmarks/gpu.py

- training: a step of `fit` beside a bare loop of the same model and batches (training_loops.py), in bf16,
  and the memory it takes at its peak;
- attention: forward and training of single mechanisms (attention_cost.py) to 65,536 timepoints, beside
  torch's SDPA; before them what the device does at best;
- export: how long it takes, how large the file is, how far from torch;
- predict: onnxruntime's CUDA provider beside its CPU provider, the same file and cases.

The cases are random numbers in the shapes of the archive's sets: no data and no aeon are needed. Figures are
medians, ratios are of speed: 2 is twice as fast as what stands beside it. On a machine without CUDA nothing
is measured.
"""

from __future__ import annotations

import tsattn  # before torch, which reads once how OpenMP's threads wait

# isort: split
import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from attention_cost import SDPA, Bench
from gpu_plan import FULL, QUICK, Plan
from numpy.typing import NDArray
from training_loops import config_of, new_model, pair
from training_turns import first

from tsattn.card import ModelCard
from tsattn.config import ModelConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.errors import CheckFailed
from tsattn.export.onnx import write_onnx
from tsattn.inference.session import OnnxPredictor, open_model
from tsattn.models.classifier import Probabilities, TransformerClassifier
from tsattn.models.memory import keep_freed_memory

SPECS = ("softmax", "bn", "sh", "bn+sh", "linear", "local")
ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table. ratio: of speed; peak: bytes; NaN where there is none."""

    what: str
    ours: str
    beside: str
    ratio: float = math.nan
    peak: float = math.nan


def training(plan: Plan, device: torch.device) -> Iterator[Row]:
    """The trainer beside the bare loop."""
    for shape in plan.shapes:
        whole = shape.collection()
        for batch in plan.batches:
            cases = first(whole, plan.steps * batch)
            epochs = max(1, plan.steps // -(-len(cases) // batch))
            what = f"training step, {shape.name}, batch {batch}"
            yield stepping(what, cases, plan.model(whole), config_of(epochs, batch), device)


def stepping(
    what: str, cases: Collection, model: ModelConfig, config: TrainingConfig, device: torch.device
) -> Row:
    """Both in turns; then the trainer's memory, without the other one and the kept batches."""
    trainer, bare = pair(cases, model, config, device)
    trainer.turn(skip=1, keep=True)
    bare.turn(trainer.batches, skip=1)
    turns = [(trainer.turn(skip=1), bare.turn(trainer.batches, skip=1)) for _ in range(ROUNDS)]
    ours, limit = (statistics.median(turn.step for turn in own) for own in zip(*turns, strict=True))
    trainer.batches.clear()
    del bare
    return Row(
        what=what,
        ours=f"{1e3 * ours:.2f} ms",
        beside=f"bare loop {1e3 * limit:.2f} ms",
        ratio=statistics.median(one.rate / other.rate for one, other in turns),
        peak=peak_memory(device, lambda: trainer.turn(skip=1)),
    )


def attention(plan: Plan, device: torch.device) -> Iterator[Row]:
    """Single mechanisms beside torch's SDPA."""
    bench = Bench(device, 4, 16)
    arithmetic, memory = bench.ceilings()
    yield Row(
        what="the device at its best",
        ours=f"{arithmetic / 1e12:.3g} Tflop/s",
        beside=f"{memory / 1e9:.3g} GB/s",
    )
    for n in plan.lengths:
        cells = bench.measure(n, list(SPECS), 0.2)
        sdpa = next(cell for cell in cells if cell.spec == SDPA)
        for cell in cells:
            if cell is not sdpa:
                yield Row(
                    what=f"attention {cell.spec}, N = {n:,}, forward / training",
                    ours=f"{1e3 * cell.forward:.3g} / {1e3 * cell.training:.3g} ms",
                    beside=f"{SDPA} {1e3 * sdpa.forward:.3g} / {1e3 * sdpa.training:.3g} ms",
                    ratio=sdpa.training / cell.training,
                    peak=1e6 * cell.megabytes,
                )


def export_and_predict(plan: Plan, device: torch.device) -> Iterator[Row]:
    """The way of a model to another machine: written, then run by onnxruntime on the GPU and on the CPU."""
    for shape in plan.shapes[-2:]:  # an export takes its time
        whole = shape.collection()
        config = plan.model(whole)
        model = new_model(whole, config, torch.device("cpu")).eval()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            begin = time.perf_counter()
            write_onnx(model, card_of(whole, config), path)
            seconds = time.perf_counter() - begin
            on_cpu = open_model(path, "cpu")
            cases = first(whole, max(plan.batches)).values
            difference = apart(on_cpu.probabilities(cases), by_torch(model, cases))
            yield Row(
                what=f"export, {shape.name}",
                ours=f"{seconds:.1f} s, {path.stat().st_size / 1e6:.2f} MB",
                beside=f"torch differs by {difference:.1e}",
            )
            try:
                on_device = open_model(path, device.type)
            except CheckFailed as error:
                yield Row(what=f"predict, {shape.name}", ours=f"not measured: {error}", beside="")
                continue
            for batch in plan.batches:
                yield predicting(
                    f"predict, {shape.name}, batch {batch}", on_device, on_cpu, cases[:batch], plan.calls
                )


def predicting(
    what: str, ours: OnnxPredictor, beside: OnnxPredictor, cases: NDArray[np.float32], calls: int
) -> Row:
    """One provider beside the other, in turns."""
    difference = apart(ours.probabilities(cases), beside.probabilities(cases))
    times = [(seconds_of(ours, cases), seconds_of(beside, cases)) for _ in range(calls)]
    rates = [len(cases) / statistics.median(own) for own in zip(*times, strict=True)]
    return Row(
        what=what,
        ours=f"{name_of(ours)} {rates[0]:,.0f} cases/s",
        beside=f"{name_of(beside)} {rates[1]:,.0f} cases/s, differs by {difference:.1e}",
        ratio=rates[0] / rates[1],
    )


def card_of(collection: Collection, config: ModelConfig) -> ModelCard:
    """As much of a card as a model file needs."""
    lengths = collection.lengths
    return ModelCard(
        classes=collection.classes,
        channels=collection.channels,
        attention=config.attention,
        tokens=config.tokens,
        preset="",
        lengths=(int(lengths.min()), int(np.median(lengths)), int(lengths.max())),
        mean=(0.0,) * config.channels,
        std=(1.0,) * config.channels,
        source="random numbers",
        protocol="not trained",
        fingerprint="",
        versions={"tsattn": tsattn.__version__},
    )


def by_torch(model: TransformerClassifier, cases: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities (cases, classes) on the CPU."""
    with torch.inference_mode():
        return np.asarray(Probabilities(model)(torch.from_numpy(cases)))


def apart(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The largest difference."""
    return float(np.abs(one - other).max())


def seconds_of(predictor: OnnxPredictor, cases: NDArray[np.float32]) -> float:
    """Of one call; it ends when the probabilities are back on the host."""
    begin = time.perf_counter()
    predictor.probabilities(cases)
    return time.perf_counter() - begin


def name_of(predictor: OnnxPredictor) -> str:
    """The provider that is really used, in short."""
    return predictor.provider.removesuffix("ExecutionProvider")


def peak_memory(device: torch.device, run: Callable[[], object]) -> float:
    """Bytes that torch's allocator gave out at most while it ran; NaN on a CPU."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    run()
    return float(torch.cuda.max_memory_allocated()) if device.type == "cuda" else math.nan


def show(rows: Iterable[Row]) -> None:
    """The table; each row as soon as it is measured."""
    print("| | tsattn | beside it | ratio | peak MB |\n|---|---:|---:|---:|---:|")
    for row in rows:
        figures = " | ".join(
            "" if math.isnan(number) else f"{number:.{digits}f}"
            for number, digits in ((row.ratio, 2), (row.peak / 1e6, 0))
        )
        print(f"| {row.what} | {row.ours} | {row.beside} | {figures} |", flush=True)


def main() -> None:
    """Measures and prints, or says that there is nothing to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # Both only so that tests can walk through all of this file.
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing was measured")
        return
    device, plan = torch.device(options.device), QUICK if options.quick else FULL
    keep_freed_memory()
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, CUDA {torch.version.cuda}\n")
    begin = time.perf_counter()
    show(row for part in (training, attention, export_and_predict) for row in part(plan, device))
    print(f"\nmeasured in {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()

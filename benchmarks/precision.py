"""What fp16 and int8 give on a CPU: size, speed beside fp32 and accuracy, of trained runs.

    python benchmarks/precision.py RUN... [--lengths 29,128] [--batches 1,64] [--opset N] [--seconds S]

For each run, type, length and batch: cases a second as a ratio to fp32 in the same round, the median of
rounds in which all types take turns, inference alone, one thread. Series are those of TEST, gone through
again from the start to reach a length. Accuracy is that on TEST itself, in percentage points beside fp32.
int8 static takes its ranges from TRAIN. Prints Markdown.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.export.cases import measuring_cases, proving_cases
from tsattn.export.half import in_half
from tsattn.export.onnx import save, to_proto
from tsattn.export.quantise import quantised
from tsattn.inference.cases import batches, predict_all
from tsattn.inference.session import OnnxPredictor, open_model
from tsattn.runs import Run, read_run

ROUNDS = 5


def files(run: Run, opset: int, folder: Path) -> dict[str, Path]:
    """A model file of each type."""
    plain = to_proto(run.model, run.card, opset)
    ranges = [values for _, values in batches(proving_cases(run, None), 16)]
    protos = {
        "fp32": plain,
        "fp16": to_proto(in_half(run.model, wide_attention=True), run.card, opset),
        "int8 dynamic": quantised(plain),
        "int8 static": quantised(plain, ranges),
    }
    paths = {}
    for dtype, proto in protos.items():
        paths[dtype] = folder / f"{dtype}.onnx"
        save(proto, run.card, paths[dtype])
    return paths


def stretched(cases: Collection, length: int, count: int) -> NDArray[np.float32]:
    """(count, channels, length) of real values."""
    rows = np.arange(count) % len(cases)
    values = np.nan_to_num(cases.values[rows])
    repeats = -(-length // values.shape[2])
    return np.ascontiguousarray(np.tile(values, (1, 1, repeats))[:, :, :length])


def ratios(
    predictors: dict[str, OnnxPredictor], values: NDArray[np.float32], seconds: float
) -> dict[str, float]:
    """Speed of each type beside fp32, the median over rounds."""
    rounds = [
        {dtype: _speed(one, values, seconds) for dtype, one in predictors.items()} for _ in range(ROUNDS)
    ]
    return {dtype: median(one[dtype] / one["fp32"] for one in rounds) for dtype in predictors}


def _speed(predictor: OnnxPredictor, values: NDArray[np.float32], seconds: float) -> float:
    predictor.probabilities(values)
    calls, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds / ROUNDS:
        predictor.probabilities(values)
        calls += 1
    return calls / spent


def accuracy(predictor: OnnxPredictor, cases: Collection) -> float:
    """Percent of right answers."""
    best = predict_all(predictor, cases).argmax(1)
    said = [predictor.card.classes[place] for place in best]
    return 100 * sum(a == b for a, b in zip(said, cases.labels or (), strict=True)) / len(cases)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--lengths", default="29,128,512")
    parser.add_argument("--batches", default="1,16,64")
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.4)
    asked = parser.parse_args()
    print("| model | type | size | accuracy | length | batch | speed beside fp32 |\n" + "|---" * 7 + "|")
    for path in asked.runs:
        run = read_run(path)
        shape = run.config.model
        name = f"{shape.attention}, width {shape.width}, {shape.layers} layers"
        cases = measuring_cases(run, None).cases
        with tempfile.TemporaryDirectory() as folder:
            paths = files(run, asked.opset, Path(folder))
            sizes = {dtype: file.stat().st_size for dtype, file in paths.items()}
            predictors = {dtype: open_model(file, "cpu", 1) for dtype, file in paths.items()}
        right = {dtype: accuracy(one, cases) for dtype, one in predictors.items()}
        for length in map(int, asked.lengths.split(",")):
            for batch in map(int, asked.batches.split(",")):
                found = ratios(predictors, stretched(cases, length, batch), asked.seconds)
                for dtype, ratio in found.items():
                    if dtype != "fp32":
                        print(
                            f"| {name} | {dtype} | {sizes[dtype] / sizes['fp32']:.2f} | "
                            f"{right[dtype] - right['fp32']:+.2f} | {length} | {batch} | {ratio:.2f} |",
                            flush=True,
                        )


if __name__ == "__main__":
    main()

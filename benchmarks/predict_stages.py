"""What benchmarks/predict.py measures, each in a process of its own: one word says what, JSON comes out.

    python benchmarks/predict_stages.py parse|infer|write|script MODEL FILE [CASES]

parse, infer and write are the stages of `tsattn predict` alone, on all cores; script is what people write
today: pandas.read_csv, torch in batches of 64, to_csv. Seconds do not count imports and loading the model.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tsattn.data.caseblocks import CaseBlock, RowFacts
from tsattn.data.columns import TableOptions
from tsattn.inference.batching import FASTEST, Answers
from tsattn.inference.concurrency import in_order
from tsattn.inference.inputs import Reading, Workers, blocks_of
from tsattn.inference.rowformats import row_format
from tsattn.inference.session import open_model

BATCH = 64
TABLE = TableOptions(id="case")


def parse(model: Path, file: Path, _: int) -> tuple[int, float]:
    """From bytes to blocks of cases."""
    card = open_model(model, "cpu").card
    cores = os.cpu_count() or 1
    start, cases = time.perf_counter(), 0
    with ThreadPoolExecutor(cores) as pool:
        workers = Workers(pool=pool, depth=cores + 1)
        for block in blocks_of(file, Reading(options=TABLE), card, workers):
            cases += len(block)
    return cases, time.perf_counter() - start


def infer(model: Path, file: Path, cases: int) -> tuple[int, float]:
    """Ready batches, one of the file over and over and as large as predict makes them, to answers."""
    predictor = open_model(model, "cpu", parallel_calls=True)
    size = FASTEST[predictor.provider]
    with ThreadPoolExecutor(1) as pool:
        blocks = blocks_of(file, Reading(options=TABLE), predictor.card, Workers(pool=pool, depth=2))
        block = [next(blocks) for _ in range(4)][-1]
        ready = np.ascontiguousarray(_array(block)[: size.cuts(block.lengths)[1]])
        blocks.close()
    batches = [ready] * (-(-cases // len(ready)))
    start = time.perf_counter()
    with ThreadPoolExecutor(predictor.callers) as pool:
        for _ in in_order(predictor.probabilities, batches, 2 * predictor.callers, pool):
            pass
    return len(batches) * len(ready), time.perf_counter() - start


def write(model: Path, _: Path, cases: int) -> tuple[int, float]:
    """Answers to bytes of CSV."""
    card = open_model(model, "cpu").card
    form = row_format("csv", card, proba=False, keep=(), marked=False)
    shares = np.random.default_rng(0).dirichlet(np.ones(len(card.classes)), BATCH).astype(np.float32)
    sink = io.BytesIO()
    start = time.perf_counter()
    for first in range(0, cases, BATCH):
        rows = RowFacts(ids=[str(first + at) for at in range(BATCH)], count=BATCH)
        sink.write(form.encode(Answers(rows, shares)))
    return cases, time.perf_counter() - start


def script(model: Path, file: Path, _: int) -> tuple[int, float]:
    """As people write it."""
    import pandas
    import torch
    from safetensors.torch import load_file

    from tsattn.config import ModelConfig
    from tsattn.models.classifier import Probabilities, TransformerClassifier

    classifier = TransformerClassifier(
        ModelConfig(**json.loads(model.with_suffix(".json").read_text("utf-8")))
    )
    classifier.load_state_dict(load_file(model.with_suffix(".safetensors")))
    net = Probabilities(classifier).eval()
    channels = classifier.standardise.mean.numel()
    start = time.perf_counter()
    frame = pandas.read_csv(file)
    if "time" in frame:
        names, cases = [], []
        for name, rows in frame.groupby("case", sort=False):
            names.append(name)
            cases.append(rows.drop(columns=["case", "time"]).to_numpy(np.float32).T)
        longest = max(case.shape[1] for case in cases)
        values = np.full((len(cases), channels, longest), np.nan, np.float32)
        for row, case in zip(values, cases, strict=True):
            row[:, : case.shape[1]] = case
    else:
        names = frame["case"].tolist()
        values = frame.drop(columns=["case"]).to_numpy(np.float32).reshape(len(frame), channels, -1)
    with torch.inference_mode():
        batches = (torch.from_numpy(values[at : at + BATCH]) for at in range(0, len(values), BATCH))
        answers = [net(batch).numpy() for batch in batches]
    shares = np.concatenate(answers)
    table = {"id": names, "label": shares.argmax(axis=1) + 1, "confidence": shares.max(axis=1)}
    pandas.DataFrame(table).to_csv(file.with_suffix(".script.csv"), index=False)
    return len(values), time.perf_counter() - start


def _array(block: CaseBlock) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    places = block.good()
    out = np.empty((len(places), block.channels, int(block.lengths.max())), np.float32)
    block.fill(out, places)
    return out


STAGES: dict[str, Callable[[Path, Path, int], tuple[int, float]]] = {
    "parse": parse,
    "infer": infer,
    "write": write,
    "script": script,
}

if __name__ == "__main__":
    done, seconds = STAGES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    print(json.dumps({"cases": done, "seconds": seconds}))

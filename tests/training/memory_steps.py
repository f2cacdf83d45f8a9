"""Run as a process of its own: takes training steps, within limits of the address space; JSON comes out.

measure: peaks of steps beside their estimates. limited FOLDER: trainings with too little memory.
"""

from __future__ import annotations

import ctypes
import json
import logging
import resource
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from tsattn.config import ModelConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.write_npz import write_npz
from tsattn.errors import InputError
from tsattn.models.classifier import TransformerClassifier
from tsattn.models.memory import keep_freed_memory, kept_bytes
from tsattn.training import fitting, preparing, workflow
from tsattn.training.memory_need import bytes_of_a_step
from tsattn.training.resident import ResidentCases
from tsattn.training.stepping import Training

SPECS = ("softmax", "linear", "local:32", "bn+sh")
SHAPES = ((6, 300, False), (3, 1000, True))
"""Cases, timepoints, and whether they have no gap."""
CPU = torch.device("cpu")


def status(key: str) -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(f"{key}:")).split()[1])


def made(cases: int, timepoints: int, complete: bool) -> Collection:
    values = np.random.default_rng(0).normal(size=(cases, 2, timepoints)).astype(np.float32)
    labels = tuple("ab"[case % 2] for case in range(cases))
    values[labels.index("a") :: 2, 0] += 1
    if not complete:
        values[::2, :, timepoints // 2] = np.nan
    ids = tuple(map(str, range(cases)))
    return Collection(values=values, ids=ids, channels=("x", "y"), labels=labels, classes=("a", "b"))


def step_on(spec: str, cases: int, timepoints: int, complete: bool) -> dict[str, Any]:
    """The peak of two steps, from before there is a model."""
    resident = ResidentCases(made(cases, timepoints, complete), ("a", "b"), CPU)
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    model = TransformerClassifier(ModelConfig(channels=2, classes=2, attention=spec))
    training = Training(model, resident, TrainingConfig(epochs=2, batch_size=cases))
    for _ in range(2):
        training.progress.batch = 0
        for batch in training.batches():
            training.step(batch)
    peak = status("VmHWM") - before
    estimate = bytes_of_a_step(model, cases, 2, timepoints, complete)
    return {"spec": spec, "timepoints": timepoints, "peak": peak, "estimate": estimate}


def measure() -> list[dict[str, Any]]:
    keep_freed_memory()  # as training does
    for spec in SPECS:
        step_on(spec, 2, 40, False)  # what is only loaded once is no step's
    return [step_on(spec, *shape) for spec in SPECS for shape in SHAPES]


class Limit:
    """No more than so much is free, what the heap keeps unused included."""

    def __init__(self, free: int) -> None:
        self.free = free

    def __enter__(self) -> None:
        resource.setrlimit(
            resource.RLIMIT_AS, (status("VmSize") + self.free - kept_bytes(), resource.RLIM_INFINITY)
        )

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def train(source: Path, out: Path, most: int | None = None, **asked: Any) -> dict[str, torch.Tensor]:
    """The weights that come of it. most: cases beyond which the model asks torch for more than there is."""
    prepared = preparing.prepare(
        str(source),
        asked={"epochs": 1, "dropout": 0.0, "convolutions": 0, "normalise": "set", **asked},
        preset="base",
        device="cpu",
        threads=1,
        out=out,
        table=TableOptions(),
    )
    if most is not None:
        prepared.model.register_forward_pre_hook(
            lambda _, given: torch.empty(1 << 60) and None if len(given[0]) > most else None
        )
    workflow.train(prepared, lambda epoch: None)
    return prepared.model.state_dict()


def limited(folder: Path) -> dict[str, Any]:
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("tsattn").addHandler(handler)
    train(write(folder, "tiny", 4, 40), folder / "first")  # what is only loaded once
    found: dict[str, Any] = {}

    many = write(folder, "many", 16, 600)
    heard.clear()
    with mock.patch.object(fitting, "free_bytes", return_value=None):
        ran_out = train(many, folder / "ran_out", most=5, epochs=2, tokens="linear")
    found["ran_out"] = heard.copy()

    heard.clear()
    with Limit(100_000_000):
        fewer = train(many, folder / "fewer", epochs=2, tokens="linear")
    found["fewer"] = heard.copy()

    worms = write(folder, "worms", 4, 17_984)
    with Limit(300_000_000):
        try:
            train(worms, folder / "refused", attention="softmax", tokens="multiscale:1")
        except InputError as error:
            found["refusal"] = str(error)
        found["began"] = (folder / "refused").exists()

    heard.clear()
    free = train(many, folder / "free", epochs=2, tokens="linear")
    found["free"] = heard.copy()
    with mock.patch.object(fitting, "free_bytes", return_value=None):  # what is beside sees all cases, too
        train(many, folder / "beside", most=5, tokens="linear", convolutions=1000)
    found["differences"] = [
        max(float((free[name] - weights[name]).abs().max()) for name in free) for weights in (fewer, ran_out)
    ]
    return found


def write(folder: Path, name: str, cases: int, timepoints: int) -> Path:
    path = folder / f"{name}.npz"
    write_npz(made(cases, timepoints, True), path)
    return path


if __name__ == "__main__":
    result = measure() if sys.argv[1] == "measure" else limited(Path(sys.argv[2]))
    sys.stdout.write(json.dumps(result))

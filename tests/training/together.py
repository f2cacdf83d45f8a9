"""What test_parallel.py starts with torchrun, once for all that is to be seen, because a start takes seconds.

Every process trains several times and writes down what it saw; the first also trains alone. At last they go
on with a run folder as `tsattn train --resume` does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tsattn.cli import app
from tsattn.config import ModelConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.errors import InputError, Interrupted
from tsattn.models.classifier import TransformerClassifier
from tsattn.training import parallel
from tsattn.training.loop import fit, never
from tsattn.training.parallel import Alone, Company, Together, find_company
from tsattn.training.resident import Batch, ResidentCases
from tsattn.training.state import BorrowedStateFile, StateFile

CPU, CLASSES = torch.device("cpu"), ("quick", "slow")
PLAIN = TrainingConfig(epochs=4, batch_size=8, learning_rate=3e-3, patience=99)  # 33 cases: 5 steps an epoch
# The last batch is one case, so that a process has none.
FEW = replace(PLAIN, batch_size=32, epochs=2, augment="jitter:0.1+crop:0.9+mixup:0.3")
LIVELY = replace(PLAIN, augment="jitter:0.1", averaging=0.9)


def waves(count: int, seed: int) -> Collection:
    generator = np.random.default_rng(seed)
    values = generator.normal(0, 0.3, (count, 1, 20)).astype(np.float32)
    values += np.sin(np.arange(20) * (0.3 + 0.4 * (np.arange(count) % 2))[:, None, None])
    for case in range(count):
        values[case, :, 12 + case % 9 :] = np.nan
    return Collection(
        values=values,
        ids=tuple(map(str, range(count))),
        channels=("x",),
        labels=tuple(CLASSES[case % 2] for case in range(count)),
        classes=CLASSES,
    )


class Noting(ResidentCases):
    """Notes which cases it was asked for."""

    def __init__(self) -> None:
        super().__init__(waves(33, 0), CLASSES, CPU)
        self.seen: list[list[int]] = []

    def batch(self, chosen: NDArray[np.int64]) -> Batch:
        self.seen.append(chosen.tolist())
        return super().batch(chosen)


def train(
    config: TrainingConfig,
    company: Company,
    *,
    dropout: float = 0.0,
    place: Path | None = None,
    asked_to_stop: Callable[[], bool] = never,
) -> dict[str, Any]:
    torch.manual_seed(config.seed)
    shape = ModelConfig(channels=1, classes=2, width=16, heads=2, layers=1, dropout=dropout)
    model, cases, held_out = TransformerClassifier(shape), Noting(), ResidentCases(waves(70, 1), CLASSES, CPU)
    kind = StateFile if company.leads else BorrowedStateFile
    state = None if place is None else kind(place)
    result = fit(
        model,
        cases,
        held_out,
        config,
        lambda epoch: None,
        state=state,
        asked_to_stop=asked_to_stop,
        company=company,
    )
    return {
        "history": [{**asdict(epoch), "seconds": 0} for epoch in result.history],
        "weights": {name: value.tolist() for name, value in model.state_dict().items()},
        "seen": cases.seen,
        "random": torch.get_rng_state().tolist(),
    }


def stop_and_go_on(company: Company, place: Path) -> dict[str, Any]:
    """Stopped by what only the second process hears."""
    if company.leads:
        place.mkdir()
    company.any(False)  # the others wait for the folder
    found: dict[str, Any] = {}
    steps = iter(range(1, 100))
    try:
        train(
            LIVELY,
            company,
            dropout=0.2,
            place=place,
            asked_to_stop=lambda: not company.leads and next(steps) >= 12,
        )
    except Interrupted as stop:
        found["stopped"] = str(stop)
    try:
        train(LIVELY, Alone(), dropout=0.2, place=place)
    except InputError as error:
        found["refused"] = str(error)
    company.any(False)  # nobody writes before all have read
    return {**found, "resumed": train(LIVELY, company, dropout=0.2, place=place)}


def fail_in_one(company: Company) -> str:
    try:
        with company.alike():
            if not company.leads:
                raise InputError("no such file here: ß")
    except InputError as error:
        return str(error)
    return ""


def main(out: Path, run: str) -> None:
    torch.set_num_threads(1)
    company = find_company()
    assert isinstance(company, Together)

    def met(environment: Mapping[str, str] = os.environ) -> Company:  # nobody can meet the others twice
        return company

    found = {
        "together": train(PLAIN, company),
        "alone": train(PLAIN, Alone()) if company.leads else None,
        "few": train(FEW, company),
        "whole": train(LIVELY, company, dropout=0.2),
        **stop_and_go_on(company, out / "state"),
        "failed": fail_in_one(company),
    }
    (out / f"{company.rank}.json").write_text(json.dumps(found), "utf-8")
    parallel.find_company = met
    sys.argv = ["tsattn", "train", "--resume", run, "--json"]
    app.main()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

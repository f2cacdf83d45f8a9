"""Real figures, of docs/results.md: five data sets, six attentions, three seeds; as cells and as a sweep."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tsattn.sweeps.cell import METRICS, Cell, cell_folder, write_cell

FILE = Path(__file__).with_name("figures.csv")
CURVE = "epoch,train_loss,train_accuracy,validation_loss,validation_accuracy\n"


def rows() -> list[dict[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cells() -> list[Cell]:
    return [
        cell(
            data=row["data"],
            method=row["method"],
            seed=int(row["seed"]),
            metrics={name: float(row[name]) for name in METRICS if name in row},
            train_seconds=float(row["train_seconds"]),
            **{name: int(row[name]) for name in ("length", "train_cases", "test_cases", "parameters")},
        )
        for row in rows()
    ]


def cell(data: str, method: str, seed: int = 0, **others: Any) -> Cell:
    """A finished cell; `accuracy` is short for metrics that have no other figure."""
    accuracy = others.pop("accuracy", 0.5)
    metrics = {**dict.fromkeys(METRICS, accuracy), "log_loss": None, "calibration_error": None}
    known: dict[str, Any] = {
        "kind": "transformer",
        "status": "done",
        "finished": "2026-11-30T12:00:00+00:00",
        "protocol": "last: all cases of TRAIN",
        "metrics": metrics,
        **others,
    }
    return Cell(data=data, method=method, seed=seed, **known)


def failed(data: str, method: str, message: str) -> Cell:
    return cell(data, method, status="failed", message=message, metrics={})


def write_sweep(folder: Path, some: list[Cell]) -> Path:
    """A sweep of these cells, each with a short history.csv beside it."""
    for one in some:
        place = cell_folder(folder, one.data, one.method, one.seed)
        place.mkdir(parents=True)
        (place / "history.csv").write_text(CURVE + "1,2.5,0.3,,\n2,1.25,0.6,,\n", "utf-8")
        write_cell(place, one)
    (folder / "sweep.yaml").write_text("format: 1\n", "utf-8")
    return folder

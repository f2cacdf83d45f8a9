"""Whether a training that was repeated came to the same."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file

from tsattn.runs.files import ENVIRONMENT, HISTORY, WEIGHTS

NOT_COMPARED = "seconds"


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Two runs of one configuration, side by side.

    weights: whether all weights are the same, byte for byte. differs_from: the first epoch whose figures are
    not the same, None if there is none. first, second: figures of the last epoch that both have, as
    history.csv has them. surroundings: what was different around them, in words.
    """

    weights: bool
    differs_from: int | None
    first: dict[str, str]
    second: dict[str, str]
    surroundings: list[str]

    @property
    def same(self) -> bool:
        """Weights and figures of all epochs."""
        return self.weights and self.differs_from is None


def compare(first: Path, second: Path) -> Reproduction:
    """Compares two finished run folders."""
    one, other = _history(first), _history(second)
    pairs = list(zip(one, other, strict=False))
    differing = [int(a["epoch"]) for a, b in pairs if a != b]
    if not differing and len(one) != len(other):
        differing = [len(pairs) + 1]
    return Reproduction(
        weights=_weights(first) == _weights(second),
        differs_from=differing[0] if differing else None,
        first=pairs[-1][0],
        second=pairs[-1][1],
        surroundings=_surroundings(first, second),
    )


def _history(run: Path) -> list[dict[str, str]]:
    with (run / HISTORY).open(newline="", encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != NOT_COMPARED} for row in csv.DictReader(file)]


def _weights(run: Path) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(run / WEIGHTS).items()}


def _surroundings(first: Path, second: Path) -> list[str]:
    one, other = (json.loads((run / ENVIRONMENT).read_text("utf-8")) for run in (first, second))
    found = [
        f"{name} {one.get(name)} → {other.get(name)}"
        for name in ("python", "platform", "device_name", "threads", "processes")
        if one.get(name) != other.get(name)
    ]
    versions, others = one.get("versions", {}), other.get("versions", {})
    return found + [
        f"{name} {versions.get(name)} → {others.get(name)}"
        for name in sorted({*versions, *others})
        if versions.get(name) != others.get(name)
    ]

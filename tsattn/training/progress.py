"""How far a training is: its epochs, and where in the one under way it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """What one epoch came to.

    Losses are means over cases, accuracies in [0, 1], gradient_norm the mean over steps before clipping,
    learning_rate that of the first step, seconds since the start without those between stop and resumption.
    """

    epoch: int
    train_loss: float
    train_accuracy: float
    validation_loss: float | None
    validation_accuracy: float | None
    learning_rate: float
    gradient_norm: float
    seconds: float

    @property
    def rank(self) -> tuple[float, float]:
        """Greater is better: validation accuracy, then the lower loss."""
        assert self.validation_accuracy is not None
        assert self.validation_loss is not None
        return self.validation_accuracy, -self.validation_loss


@dataclass(kw_only=True)
class Progress:
    """Where a training stands.

    epoch: the one under way, from 1. batch: steps done in it; steps: in all. order: the state of the
    generator that drew the order of this epoch's cases, before it did. micro_batch: cases that go through the
    model at once. seconds: spent so far. history: the epochs that ended.
    """

    micro_batch: int
    order: Mapping[str, Any]
    epoch: int = 1
    batch: int = 0
    steps: int = 0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Progress:
        """Reads `to_json`'s values. ValueError or TypeError for others."""
        read = cls(**{**values, "history": [Epoch(**epoch) for epoch in values["history"]]})
        if not (min(read.epoch, read.micro_batch) >= 1 and min(read.batch, read.steps, read.seconds) >= 0):
            raise ValueError(f"epoch {read.epoch}, batch {read.batch}, step {read.steps}")
        return read

    @property
    def best(self) -> Epoch:
        """Of the epochs that ended, the first of the highest rank."""
        return max(self.history, key=lambda epoch: epoch.rank)

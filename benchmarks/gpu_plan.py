"""What gpu.py measures: shapes of real sets filled with random numbers, and how much of each part."""

from __future__ import annotations

import tsattn  # noqa: F401 - before torch, which reads once how OpenMP's threads wait

# isort: split
from dataclasses import dataclass, replace

import numpy as np
from training_loops import LAYERS, model_config

from tsattn.config import ModelConfig
from tsattn.data.collection import Collection


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Training cases of a set of the archive: how many and how long, in timepoints."""

    name: str
    cases: int
    channels: int
    classes: int
    shortest: int
    longest: int

    def collection(self) -> Collection:
        """Random cases of this shape; lengths are spread evenly."""
        generator = np.random.default_rng(0)
        values = generator.standard_normal((self.cases, self.channels, self.longest), np.float32)
        lengths = generator.integers(self.shortest, self.longest + 1, self.cases)
        values[np.broadcast_to(np.arange(self.longest) >= lengths[:, None, None], values.shape)] = np.nan
        classes = tuple(f"class{place}" for place in range(self.classes))
        return Collection(
            values=values,
            ids=tuple(map(str, range(self.cases))),
            channels=tuple(f"channel{place}" for place in range(self.channels)),
            labels=tuple(classes[place % self.classes] for place in range(self.cases)),
            classes=classes,
        )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is measured. steps: of a turn of training; calls: of a predictor.

    attention, tokens, layers: of the models.
    """

    shapes: tuple[Shape, ...]
    batches: tuple[int, ...]
    steps: int
    lengths: tuple[int, ...]
    calls: int
    attention: str
    tokens: str
    layers: int

    def model(self, collection: Collection) -> ModelConfig:
        """For these cases."""
        return replace(model_config(collection, self.attention, self.tokens), layers=self.layers)


OWN = ModelConfig(channels=1, classes=2)
FULL = Plan(
    shapes=(
        Shape(name="JapaneseVowels", cases=270, channels=12, classes=9, shortest=7, longest=26),
        Shape(name="SelfRegulationSCP1", cases=268, channels=6, classes=2, shortest=896, longest=896),
        Shape(name="SpokenArabicDigits", cases=6599, channels=13, classes=10, shortest=4, longest=93),
    ),
    batches=(16, 64),
    steps=100,
    lengths=(4096, 16384, 65536),
    calls=10,
    attention=OWN.attention,
    tokens=OWN.tokens,
    layers=LAYERS,
)
QUICK = Plan(
    shapes=(Shape(name="tiny", cases=12, channels=3, classes=2, shortest=5, longest=20),),
    batches=(4,),
    steps=3,
    lengths=(64,),
    calls=2,
    attention="softmax",
    tokens="linear",
    layers=1,
)

"""Predictor: what evaluation and prediction need of a model, whichever engine runs it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard


class Predictor(Protocol):
    """A loaded model.

    card: what the model says of itself. provider: the engine and device really in use.
    An implementation may also have `callers: int`, the number of threads that may usefully call
    `probabilities` at once; without it one does.
    """

    @property
    def card(self) -> ModelCard:
        """Classes, channels and what else the model says of itself."""
        ...

    @property
    def provider(self) -> str:
        """The engine and device really in use, in the engine's own word."""
        ...

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """(cases, channels, timepoints) with NaN where not observed → (cases, classes)."""
        ...

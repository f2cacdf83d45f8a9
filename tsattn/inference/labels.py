"""The labels that a predictor's probabilities stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard

UNKNOWN = "unknown"


def labels_of(probabilities: NDArray[np.floating[Any]], card: ModelCard) -> list[str]:
    """One label a case from probabilities (cases, classes): the most probable class.

    UNKNOWN where that is less probable than the card's `unknown_below`, or no number.
    """
    best = probabilities.argmax(axis=1)
    if not card.unknown_below:
        return [card.classes[place] for place in best]
    # Not `<`: NaN is never sure enough.
    sure = np.take_along_axis(probabilities, best[:, None], axis=1)[:, 0] >= card.unknown_below
    return [card.classes[place] if known else UNKNOWN for place, known in zip(best, sure, strict=True)]

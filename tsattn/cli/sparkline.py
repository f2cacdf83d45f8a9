"""A series as one line of block characters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(series: NDArray[np.float32], width: int) -> str:
    """At most `width` characters for (timepoints,), each the mean of the timepoints it stands for.

    Lowest to highest block span the line's own range; a blank where nothing was observed, the lowest
    block throughout where all values are the same.
    """
    pieces = np.array_split(series.astype(np.float64), min(width, len(series)))
    means = np.array([_mean(piece) for piece in pieces])
    seen = means[np.isfinite(means)]
    if not seen.size:
        return " " * len(means)
    low, span = seen.min(), np.ptp(seen)
    steps = (means - low) / (span or 1.0) * (len(_BLOCKS) - 1)
    return "".join(_BLOCKS[round(step)] if np.isfinite(step) else " " for step in steps)


def _mean(piece: NDArray[np.float64]) -> float:
    seen = piece[np.isfinite(piece)]
    return float(seen.mean()) if seen.size else np.nan

"""Whether probabilities mean what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15


def expected_calibration_error(probabilities: NDArray[Any], truth: NDArray[np.int64]) -> float:
    """How far confidence and the share of right answers are apart, in [0, 1]; a mean over cases.

    Within each of BINS equal intervals of confidence (Guo et al., "On Calibration of Modern Neural Networks",
    2017). probabilities (cases, classes), of which NaN is no confidence; truth (cases,): places of classes.
    """
    confidence = np.nan_to_num(probabilities.max(1).astype(np.float64))
    right = probabilities.argmax(1) == truth
    places = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    apart = np.bincount(places, confidence - right, minlength=BINS)
    return float(np.abs(apart).sum() / len(truth))

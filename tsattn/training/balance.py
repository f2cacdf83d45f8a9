"""What rare classes count for: in the loss, or in how often their cases are drawn."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsattn.training.resident import ResidentCases


def class_weights(cases: ResidentCases, choice: str) -> Tensor | None:
    """(classes,) weights of the loss; None for 'none'.

    balanced: inverse to the number of cases of a class, with a mean of one over the cases, so that every
    class counts the same in all. A class without a case gets 1.
    """
    if choice == "none":
        return None
    counts = cases.class_counts
    present = (counts > 0).sum()
    weights = np.divide(counts.sum() / present, counts, where=counts > 0, out=np.ones(len(counts)))
    return torch.from_numpy(weights.astype(np.float32)).to(cases.device)


def case_weights(cases: ResidentCases, choice: str) -> NDArray[np.float64] | None:
    """(cases,) chances to be drawn, with a sum of one; None for 'none', every case once an epoch.

    balanced: an epoch draws as many cases as there are, with replacement, each class as likely as any other.
    """
    if choice == "none":
        return None
    chances = 1.0 / cases.class_counts[cases.classes_of_cases]
    return chances / chances.sum()

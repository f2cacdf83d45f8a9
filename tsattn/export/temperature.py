"""One number that makes probabilities mean what they say, fitted on held-out cases (Guo et al. 2017)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.inference.calibration import expected_calibration_error
from tsattn.inference.cases import batches
from tsattn.runs import Run

COLDEST, HOTTEST = 0.1, 10.0
"""Where every held-out case is right, no temperature is cold enough; this one is."""
HALVINGS = 60


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A temperature and what it does to the cases that it was fitted on.

    error_before, error_after: expected calibration error, loss_before, loss_after: negative log likelihood.
    """

    temperature: float
    origin: str
    cases: int
    error_before: float
    error_after: float
    loss_before: float
    loss_after: float

    def to_dict(self) -> dict[str, Any]:
        """For the model card and --json."""
        return asdict(self)


def calibrate(run: Run, cases: Collection, origin: str) -> Calibration:
    """The temperature of the least negative log likelihood of labelled `cases`."""
    truth = places_of(cases, run.card.classes, origin)
    logits = _logits(run, cases)
    temperature = fit(logits, truth)
    before, after = _softmax(logits), _softmax(logits / temperature)
    return Calibration(
        temperature=temperature,
        origin=origin,
        cases=len(truth),
        error_before=expected_calibration_error(before, truth),
        error_after=expected_calibration_error(after, truth),
        loss_before=_loss(before, truth),
        loss_after=_loss(after, truth),
    )


def fit(logits: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """The temperature, between COLDEST and HOTTEST, at which logits (cases, classes) have least loss.

    The loss is convex in 1/temperature, so its slope has one zero, which is bracketed ever closer.
    """
    right = logits[np.arange(len(truth)), truth]
    low, high = 1 / HOTTEST, 1 / COLDEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slope = ((_softmax(logits * middle) * logits).sum(1) - right).mean()
        low, high = (low, middle) if slope > 0 else (middle, high)
    return float(np.clip(2 / (low + high), COLDEST, HOTTEST))


def places_of(cases: Collection, classes: tuple[str, ...], origin: str) -> NDArray[np.int64]:
    """(cases,) the place of each label among `classes`. InputError without labels and for unknown ones."""
    if cases.labels is None or not len(cases):
        raise InputError(f"{origin}: no labelled case. Name a source whose cases have labels.")
    known = {name: place for place, name in enumerate(classes)}
    if strange := sorted(set(cases.labels) - set(known)):
        raise InputError(f"{origin}: class {strange[0]!r} is not among the model's: {', '.join(classes)}.")
    return np.array([known[label] for label in cases.labels], np.int64)


def _logits(run: Run, cases: Collection) -> NDArray[np.float64]:
    result = np.empty((len(cases), len(run.card.classes)))
    with torch.inference_mode():
        for places, values in batches(cases, 64):
            result[places] = run.model(torch.from_numpy(values)).double().numpy()
    return result


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _loss(probabilities: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    given = probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.clip(given, 1e-12, 1)).mean())

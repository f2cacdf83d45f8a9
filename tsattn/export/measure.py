"""What becomes of a model on real cases: accuracy, changed classes, cases a second, before and after."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsattn.export.cases import RealCases
from tsattn.export.temperature import places_of
from tsattn.inference.calibration import expected_calibration_error
from tsattn.inference.cases import batches, predict_all
from tsattn.inference.predictor import Predictor

BATCH = 64
TIMED_CASES, TIMED_SECONDS, MOST_ROUNDS = 1024, 2.0, 20


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One form of a model. size: bytes of its file, None for a run.

    accuracy, calibration_error: in [0, 1], None where the cases have no labels.
    """

    what: str
    size: int | None
    accuracy: float | None
    calibration_error: float | None
    cases_per_second: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Forms of one model on the same cases, the one that is kept last and what it was made from before it.

    difference: the largest between two probabilities of these two; changed: cases of another class.
    trained_on: there were no other cases than those that the weights were fitted to.
    """

    origin: str
    cases: int
    trained_on: bool
    forms: tuple[Figures, ...]
    difference: float
    changed: int

    @property
    def drop(self) -> float:
        """Percentage points of accuracy lost; without labels every changed class counts as lost."""
        before, after = self.forms[-2].accuracy, self.forms[-1].accuracy
        lost = self.changed / self.cases if before is None or after is None else before - after
        return 100 * lost

    def to_dict(self) -> dict[str, Any]:
        """For the model card and --json; a difference that is no number is None."""
        difference = self.difference if np.isfinite(self.difference) else None
        return {**asdict(self), "forms": [asdict(form) for form in self.forms], "difference": difference}


def measure(predictors: Mapping[str, tuple[Predictor, int | None]], real: RealCases) -> Measured:
    """Puts `real` through each form of a model. predictors: by name, with the size of its file."""
    labelled = real.cases.labels is not None
    classes = next(iter(predictors.values()))[0].card.classes
    truth = places_of(real.cases, classes, real.origin) if labelled else None
    answers = {what: predict_all(one, real.cases, BATCH) for what, (one, _) in predictors.items()}
    speeds = _speeds([one for one, _ in predictors.values()], real)
    before, after = list(answers.values())[-2:]
    return Measured(
        origin=real.origin,
        cases=len(real.cases),
        trained_on=real.trained_on,
        forms=tuple(
            Figures(
                what=what,
                size=size,
                accuracy=None if truth is None else _accuracy(answers[what], truth),
                calibration_error=None if truth is None else expected_calibration_error(answers[what], truth),
                cases_per_second=speed,
            )
            for (what, (_, size)), speed in zip(predictors.items(), speeds, strict=True)
        ),
        difference=float(np.abs(before - after).max()),
        changed=int((before.argmax(1) != np.where(np.isfinite(after).all(1), after.argmax(1), -1)).sum()),
    )


def _accuracy(probabilities: NDArray[np.float32], truth: NDArray[np.int64]) -> float:
    right = (probabilities.argmax(1) == truth) & np.isfinite(probabilities).all(1)
    return float(right.mean())


def _speeds(predictors: Sequence[Predictor], real: RealCases) -> list[float]:
    """Cases a second of each, the best of rounds in which they take turns."""
    some = real.cases.take(np.arange(min(len(real.cases), TIMED_CASES)))
    ready = [values for _, values in batches(some, BATCH)]
    best = [np.inf] * len(predictors)
    began = time.perf_counter()
    for _ in range(MOST_ROUNDS):
        for place, predictor in enumerate(predictors):
            start = time.perf_counter()
            for values in ready:
                predictor.probabilities(values)
            best[place] = min(best[place], time.perf_counter() - start)
        if time.perf_counter() - began > TIMED_SECONDS:
            break
    return [len(some) / max(seconds, 1e-9) for seconds in best]

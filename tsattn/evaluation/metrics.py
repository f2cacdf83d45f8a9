"""The figures by which a classifier is judged, and nothing about where its probabilities come from.

K is the number of the model's classes. A figure that has no value (the recall of a class of which
the data hold no case, the precision of one that was never predicted) is None, and no mean counts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsattn.errors import CheckFailed, InputError
from tsattn.inference.calibration import expected_calibration_error

# Smallest probability that log loss believes: float32 rounds an honest 1e-8 to an exact 0 or 1.
PROBABILITY_FLOOR = 1e-7


@dataclass(frozen=True)
class ClassScore:
    """One class: precision, recall and F1 in [0, 1] or None, support in cases."""

    label: str
    precision: float | None
    recall: float | None
    f1: float | None
    support: int


@dataclass(frozen=True)
class Report:
    """How well probabilities agree with labels; all figures in [0, 1] but log loss, which is in nats.

    balanced_accuracy: mean recall over the classes that occur in the data.
    calibration_error: how far confidence and the share of right answers are apart on average.
    macro_f1: mean F1 over the classes that occur in the data or among the predictions.
    majority_class, majority_accuracy: the answer that is always the same, and how often it is right.
    classes: one entry a class of the model, in the model's order.
    confusion: K rows (true class) of K counts (predicted class).
    """

    cases: int
    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    log_loss: float
    calibration_error: float
    majority_class: str
    majority_accuracy: float
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Ready for json.dumps(allow_nan=False); keys are the field names."""
        return {
            **asdict(self),
            "classes": [asdict(score) for score in self.classes],
            "confusion": [list(row) for row in self.confusion],
        }

    def figures(self) -> dict[str, float | int]:
        """The figures of the whole alone, as run folders and model cards carry them."""
        names = ("cases", "accuracy", "balanced_accuracy", "macro_f1", "log_loss", "calibration_error")
        return {name: getattr(self, name) for name in names}

    def confusions(self) -> list[tuple[str, str, int]]:
        """(true, predicted, cases) of every pair that was mixed up, most frequent first."""
        names = [score.label for score in self.classes]
        pairs = [
            (names[true], names[predicted], count)
            for true, row in enumerate(self.confusion)
            for predicted, count in enumerate(row)
            if count and true != predicted
        ]
        return sorted(pairs, key=lambda pair: -pair[2])


def report(
    probabilities: NDArray[np.floating[Any]],
    labels: Sequence[str],
    classes: Sequence[str],
    majority: str | None = None,
) -> Report:
    """Judges `probabilities` (cases, K), whose columns are `classes`, against `labels` (cases,).

    majority: the most frequent class of the training cases, where known; else that of `labels`.
    InputError if there is no case or a label is none of `classes`; CheckFailed if a probability is
    not finite.
    """
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    truth = _indices(labels, classes)
    assert probabilities.shape == (len(labels), len(classes)), probabilities.shape
    _check_finite(probabilities)
    guess = probabilities.argmax(axis=1)
    every = np.arange(len(classes))
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, guess, labels=every, average=None, zero_division=np.nan
    )
    always = majority if majority is not None else Counter(labels).most_common(1)[0][0]
    return Report(
        cases=len(labels),
        accuracy=float(np.mean(truth == guess)),
        balanced_accuracy=float(np.nanmean(recall)),
        macro_f1=float(np.nanmean(f1)),
        log_loss=_log_loss(probabilities, truth),
        calibration_error=expected_calibration_error(probabilities, truth),
        majority_class=always,
        majority_accuracy=sum(label == always for label in labels) / len(labels),
        classes=tuple(
            ClassScore(name, _or_none(p), _or_none(r), _or_none(f), int(n))
            for name, p, r, f, n in zip(classes, precision, recall, f1, support, strict=True)
        ),
        confusion=tuple(tuple(row) for row in confusion_matrix(truth, guess, labels=every).tolist()),
    )


def _indices(labels: Sequence[str], classes: Sequence[str]) -> NDArray[np.int64]:
    """(cases,) the place of each label among `classes`."""
    if not labels:
        raise InputError("There is no case to judge: the data are empty.")
    places = {name: place for place, name in enumerate(classes)}
    unknown = list(dict.fromkeys(label for label in labels if label not in places))
    if unknown:
        named = ", ".join(repr(label) for label in unknown[:5]) + (", …" if len(unknown) > 5 else "")
        first = labels.index(unknown[0]) + 1
        raise InputError(
            f"The data have labels that the model does not know: {named} (first in case {first}). "
            f"The model's classes are {', '.join(map(repr, classes))}. "
            "Leave these cases out, or name the column with the right labels with --label."
        )
    return np.array([places[label] for label in labels], dtype=np.int64)


def _check_finite(probabilities: NDArray[np.floating[Any]]) -> None:
    bad = np.flatnonzero(~np.isfinite(probabilities).all(axis=1))
    if bad.size:
        raise CheckFailed(
            f"The model gives no finite probabilities for {bad.size} of {len(probabilities)} cases "
            f"(first: case {bad[0] + 1}). Its training diverged; train again with a smaller --lr."
        )


def _log_loss(probabilities: NDArray[np.floating[Any]], truth: NDArray[np.int64]) -> float:
    given = probabilities[np.arange(len(truth)), truth].astype(np.float64)
    return float(-np.log(np.clip(given, PROBABILITY_FLOOR, 1.0)).mean())


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)

"""A comparison for programs: CSV with a row a data set and method, JSON with all of it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from typing import Any

from tsattn.sweeps.comparison import Comparison

COLUMNS = (
    "data",
    "method",
    "kind",
    "standing",
    "metric",
    "runs",
    "mean",
    "std",
    "standard_error",
    "best_or_tied",
    "length",
    "train_cases",
    "test_cases",
)


def csv_text(one: Comparison) -> str:
    """A row for every score there is; figures in full, shares in [0, 1], nothing where there is none."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for data in one.data:
        for method in one.methods:
            score = one.scores.get((data.name, method.label))
            if score is not None:
                best = method.label in one.best[data.name]
                rows.writerow(
                    [
                        *(data.name, method.label, method.kind, method.standing, one.metric),
                        *(len(score.values), score.mean, score.deviation, score.error, str(best).lower()),
                        *(data.length, data.train_cases, data.test_cases),
                    ]
                )
    return text.getvalue()


def json_text(one: Comparison) -> str:
    """The object of `document`."""
    return json.dumps(document(one), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(one: Comparison) -> dict[str, Any]:
    """Keys are the fields of a Comparison; scores, means, ranks and `against` are by name."""
    scores: dict[str, dict[str, Any]] = {data.name: {} for data in one.data}
    for (data_name, label), score in one.scores.items():
        scores[data_name][label] = {
            "values": list(score.values),
            "mean": score.mean,
            "std": score.deviation,
            "standard_error": score.error,
        }
    return {
        "metric": one.metric,
        "folds": one.folds,
        "reference": one.reference,
        "data": [dataclasses.asdict(data) for data in one.data],
        "methods": [dataclasses.asdict(method) for method in one.methods],
        "scores": scores,
        "best": {name: sorted(labels) for name, labels in one.best.items()},
        "common": list(one.common),
        "means": dict(one.means),
        "ranks": dict(one.ranks),
        "against": {label: dataclasses.asdict(of) for label, of in one.against.items()},
        "friedman": one.friedman,
        "says": list(one.says),
        "notes": list(one.notes),
        "failures": [dataclasses.asdict(of) for of in one.failures],
    }

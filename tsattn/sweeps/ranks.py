"""Statistics over data sets, and what they allow to say.

Runs are averaged first: a data set counts once, however many seeds were run on it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tsattn.sweeps.comparison import Against, Score, apart

LEVEL = 0.05
DIGITS = 12
"""Differences beyond these are rounding."""


def mean_ranks(values: NDArray[np.float64], lower_is_better: bool) -> NDArray[np.float64]:
    """(data sets, methods) → (methods,): 1 is best; equal values share their ranks' mean."""
    from scipy.stats import rankdata

    signed = values if lower_is_better else -values
    ranks: NDArray[np.float64] = rankdata(signed.round(DIGITS), axis=1).mean(axis=0)
    return ranks


def friedman(values: NDArray[np.float64]) -> float | None:
    """The p of (data sets, methods) that methods do not differ; None for fewer than 3 methods or 2 sets."""
    from scipy.stats import friedmanchisquare

    sets, methods = values.shape
    if methods < 3 or sets < 2:
        return None
    if not np.ptp(values.round(DIGITS), axis=1).any():
        return 1.0
    return float(friedmanchisquare(*values.round(DIGITS).T).pvalue)


def wilcoxon(differences: NDArray[np.float64]) -> float:
    """P of the two-sided signed-rank test; exact up to 50 data sets without ties. 1 where all are equal."""
    from scipy.stats import wilcoxon as signed_rank

    told = differences.round(DIGITS)
    if not told.any():
        return 1.0
    with warnings.catch_warnings():  # of small samples with ties; the sentences speak of small samples
        warnings.simplefilter("ignore", UserWarning)
        return float(signed_rank(told[told != 0]).pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """p-values corrected for being many, in the same order: Holm's step-down procedure."""
    corrected = [0.0] * len(p)
    highest = 0.0
    for done, place in enumerate(np.argsort(p, kind="stable").tolist()):
        highest = max(highest, min(1.0, (len(p) - done) * p[place]))
        corrected[place] = highest
    return corrected


def against(
    reference: Sequence[Score], others: Mapping[str, Sequence[Score]], lower_is_better: bool
) -> dict[str, Against]:
    """Each of `others` against the reference; scores are of the same data sets in the same order."""
    sign = -1.0 if lower_is_better else 1.0
    found = {}
    for label, scores in others.items():
        pairs = list(zip(scores, reference, strict=True))
        differences = np.array([sign * (mine.mean - its.mean) for mine, its in pairs])
        told = np.array([apart(mine, its) for mine, its in pairs])
        found[label] = (differences, told, wilcoxon(differences))
    corrected = holm([p for _, _, p in found.values()])
    return {
        label: Against(
            wins=int((told & (differences > 0)).sum()),
            ties=int((~told).sum()),
            losses=int((told & (differences < 0)).sum()),
            difference=float(differences.mean()),
            p=p,
            p_holm=p_holm,
        )
        for (label, (differences, told, p)), p_holm in zip(found.items(), corrected, strict=True)
    }


def sentences(sets: int, reference: str, compared: Mapping[str, Against]) -> list[str]:
    """What Wilcoxon's test with Holm's correction allows to say, in words."""
    if sets == 0:
        return ["There is no data set on which every ranked method has a score: nothing can be ranked."]
    least = min(1.0, 2.0 ** (1 - sets))
    after = min(1.0, len(compared) * least)
    many = f"{len(compared)} methods are compared" if len(compared) > 1 else "one method is compared"
    if after > LEVEL:
        needed = math.ceil(1 + math.log2(len(compared) / LEVEL))
        said = (
            f"{_counted(sets)}, and {many} with {reference}: the least p that the two-sided Wilcoxon test "
            f"can give is {least:.4g}, after Holm's correction {after:.4g}. Whatever the figures are, no "
            f"difference is told from chance at the level {LEVEL}; that takes {needed} data sets or more. "
            "The table says how the methods did on these sets, not which would be better on others."
        )
        return [said]
    found = [
        f"{label} differs from {reference} (p = {one.p_holm:.2g} after Holm's correction): it wins on "
        f"{one.wins} of {sets} data sets and loses on {one.losses}."
        for label, one in compared.items()
        if one.p_holm <= LEVEL
    ]
    silent = [label for label, one in compared.items() if one.p_holm > LEVEL]
    if silent:
        found.append(
            f"Not told apart from {reference} at the level {LEVEL} over {sets} data sets: "
            f"{', '.join(silent)}. That is not evidence that they are equal."
        )
    return found


def friedman_sentence(p: float | None, sets: int, methods: int) -> list[str]:
    """What the Friedman test says of all methods together, no sentence where there is no p."""
    if p is None:
        return []
    verdict = (
        "the methods differ somewhere"
        if p <= LEVEL
        else "no difference among the methods is told from chance"
    )
    small = " Its p is an approximation that is rough for so few data sets." if sets < 10 else ""
    return [f"Friedman's test over {methods} methods and {_counted(sets)}: p = {p:.3g}, {verdict}.{small}"]


def _counted(sets: int) -> str:
    return "1 data set" if sets == 1 else f"{sets} data sets"

"""Ranks and pairs, drawn by aeon: the critical-difference diagram and the multi-comparison matrix."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from tsattn.sweeps.comparison import Comparison
from tsattn.sweeps.plots import axis_title, scale
from tsattn.sweeps.ranks import DIGITS, LEVEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tsattn.sweeps.gather import Placed

DIFFERENCE = (
    "Mean ranks, the best to the right. Methods that a bar joins are not told apart: by Friedman's test, or "
    "else by pairs of one-sided Wilcoxon tests with Holm's correction, at the level "
    f"{LEVEL} (aeon's procedure)."
)
MATRIX = (
    "Below a method its mean. Row against column: mean difference, which colours the field, then wins, ties "
    f"and losses by mean alone, then p of the two-sided Wilcoxon test. Bold: below {LEVEL} after Holm's "
    "correction over all pairs (aeon's procedure)."
)
PALE, ENDS = "tsattn-pale", ("#F0A860", "#FFFFFF", "#8FB4E3")
"""Of the matrix: black words can be read on any of it, and it is told apart in colour blindness."""
LETTER = 0.135
"""Inches of a letter of a label in aeon's diagram, whose size is fixed."""


def critical_difference(comparison: Comparison, placed: Sequence[Placed]) -> Figure | str:
    """Of the ranked methods over the common data sets."""
    labels, values = _table(comparison)
    if len(labels) < 3 or len(values) < 2:
        return "it takes three methods and two data sets that are common to all"
    from aeon.visualisation import plot_critical_difference

    space = 0.5 + LETTER * max(map(len, labels))
    with _without_words_on_ties():
        figure, _ = plot_critical_difference(
            values,
            labels,
            lower_better=comparison.lower_is_better,
            alpha=LEVEL,
            width=2 * space + 4,
            textspace=space,
        )
    return figure


def matrix(comparison: Comparison, placed: Sequence[Placed]) -> Figure | str:
    """Of the ranked methods over the common data sets."""
    labels, values = _table(comparison)
    if len(values) < 2:
        return "it takes two data sets that are common to all methods"
    import matplotlib as mpl
    import pandas as pd
    from aeon.visualisation import create_multi_comparison_matrix
    from matplotlib.colors import LinearSegmentedColormap

    if PALE not in mpl.colormaps:
        mpl.colormaps.register(LinearSegmentedColormap.from_list(PALE, ENDS))
    field = max(1.6, 0.085 * max(map(len, labels)))
    with _without_words_on_ties():
        figure: Figure = create_multi_comparison_matrix(
            pd.DataFrame(values * scale(comparison), columns=labels),
            statistic_name=axis_title(comparison),
            higher_stat_better=not comparison.lower_is_better,
            pvalue_test_params={"zero_method": "wilcox", "alternative": "two-sided"},
            pvalue_threshold=LEVEL,
            precision=3,
            colormap=PALE,
            fig_size=(field * (len(labels) + 1.6), 0.62 * len(labels) + 1.2),
        )
    for words in figure.axes[0].texts:  # a name for the means, which would lie over the first of them
        words.set_visible(not words.get_text().startswith(f"Mean-{axis_title(comparison)}"))
    return figure


@contextmanager
def _without_words_on_ties() -> Iterator[None]:
    """Aeon and scipy divide by the spread of ranks, which ties make 0; a p of 1 comes of it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimators .* have the same performance", UserWarning)
        warnings.filterwarnings("ignore", "invalid value encountered", RuntimeWarning)
        warnings.filterwarnings("ignore", "(Exact p-value|Sample size)", UserWarning)
        yield


def _table(comparison: Comparison) -> tuple[list[str], NDArray[np.float64]]:
    """Labels of the ranked methods, and (common data sets, methods): their means, as the table ranks them."""
    labels = [method.label for method in comparison.ranked]
    values = [[comparison.scores[name, label].mean for label in labels] for name in comparison.common]
    return labels, np.array(values).reshape(-1, len(labels)).round(DIGITS)

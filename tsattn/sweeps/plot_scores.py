"""Scores as points: against the reference by data set, against training time, against length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tsattn.sweeps.comparison import TITLES, Comparison
from tsattn.sweeps.plots import Look, axis_title, looks, scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tsattn.sweeps.gather import Placed

DIFFERENCES = (
    "Each method minus the reference, by data set; to the right of the line the method is better. Bars: the "
    "standard error of the difference over runs."
)
TIME = "Means over the data sets on which every ranked method has a score, against the median training time."
LENGTH = (
    "A point a method and data set, placed at the data set's length; methods of one data set stand a little "
    "beside each other so that all can be seen. Bars: standard error over runs."
)
ROW = 0.34
"""Inches of a data set, more where there are many methods."""
WIDEST = 0.16
"""Powers of ten over which the marks of a data set are spread beside its length."""


def differences(comparison: Comparison, placed: Sequence[Placed]) -> Figure | str:
    """A row a data set, a mark a method."""
    from matplotlib.figure import Figure

    style = looks(comparison)
    others = [label for label in style if label != comparison.reference]
    names = [one.name for one in comparison.data if (one.name, comparison.reference) in comparison.scores]
    if not names:
        return f"{comparison.reference} has no score"
    row = max(ROW, 0.085 * len(others))
    figure = Figure(figsize=(7.5, 1.2 + row * len(names)))
    axes = figure.add_subplot()
    axes.axvline(0, color="#000000", linewidth=1)
    sign = -1.0 if comparison.lower_is_better else 1.0
    for place, label in enumerate(others):
        at, to, error = [], [], []
        for line, name in enumerate(names):
            mine, its = comparison.scores.get((name, label)), comparison.scores[name, comparison.reference]
            if mine is not None:
                at.append(line + _beside(place, len(others), 0.7))
                to.append(sign * (mine.mean - its.mean) * scale(comparison))
                error.append(math.hypot(mine.error, its.error) * scale(comparison))
        _points(axes, to, at, style[label], label, xerr=error)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_axisbelow(True)
    for line in range(0, len(names), 2):
        axes.axhspan(line - 0.5, line + 0.5, color="#F5F6F8", zorder=0)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    unit = "nats, right is better" if comparison.lower_is_better else "points"
    metric = TITLES[comparison.metric].lower()
    axes.set_xlabel(f"difference of {metric} to {comparison.reference}, {unit}")
    _legend(axes)
    return figure


def time(comparison: Comparison, placed: Sequence[Placed]) -> Figure | str:
    """A point a method."""
    from matplotlib.figure import Figure

    style = looks(comparison)
    there = [
        (method.label, method.costs.train_seconds, comparison.means[method.label])
        for method in comparison.methods
        if method.costs.train_seconds and method.label in comparison.means
    ]
    if not there:
        return "no data set is common to all methods, or no training time is known"
    figure = Figure(figsize=(7.5, 4.2))
    axes = figure.add_subplot()
    for label, seconds, mean in there:
        _points(axes, [seconds], [mean * scale(comparison)], style[label], label, size=9)
    _logarithmic(axes, [seconds for _, seconds, _ in there])
    axes.set_xlabel("median training time, s")
    axes.set_ylabel(f"mean {axis_title(comparison)}")
    axes.margins(y=0.15)
    _legend(axes)
    return figure


def length(comparison: Comparison, placed: Sequence[Placed]) -> Figure | str:
    """A point a method and data set."""
    from matplotlib.figure import Figure

    style = looks(comparison)
    lengths = {one.name: one.length for one in comparison.data if one.length}
    if len(set(lengths.values())) < 2:
        return "there are no data sets of different length"
    figure = Figure(figsize=(7.5, 4.8))
    axes = figure.add_subplot()
    spread = min(0.02 * len(style), WIDEST)
    for place, label in enumerate(style):
        names = [name for name in lengths if (name, label) in comparison.scores]
        scores = [comparison.scores[name, label] for name in names]
        _points(
            axes,
            [lengths[name] * 10 ** _beside(place, len(style), spread) for name in names],
            [score.mean * scale(comparison) for score in scores],
            style[label],
            label,
            yerr=[score.error * scale(comparison) for score in scores],
        )
    _logarithmic(axes, list(lengths.values()))
    axes.set_xlabel("length of the longest training case, timepoints")
    axes.set_ylabel(axis_title(comparison))
    _legend(axes)
    return figure


def _beside(place: int, count: int, width: float) -> float:
    """Offsets of `count` marks spread over `width` around 0."""
    return width * ((place + 0.5) / count - 0.5)


def _points(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    look: Look,
    label: str,
    *,
    size: float = 6,
    **errors: Any,
) -> None:
    axes.errorbar(
        x,
        y,
        fmt=look.marker,
        color=look.colour,
        markerfacecolor=look.face,
        markersize=size,
        elinewidth=1,
        label=label,
        **errors,
    )


def _logarithmic(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic x axis whose ticks are plain numbers: as many as there is room for."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min(values) / 1.25, max(values) * 1.25
    steps = (1, 1.5, 2, 3, 4, 5, 7) if high / low < 15 else (1, 2, 5) if high / low < 300 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _legend(axes: Axes) -> None:
    """Beside the axes, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)

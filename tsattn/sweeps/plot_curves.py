"""Learning curves of all runs of a data set over each other."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from tsattn.sweeps.comparison import Comparison
from tsattn.sweeps.plots import Look, looks
from tsattn.sweeps.table import label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tsattn.sweeps.gather import Placed

CURVES = (
    "Thin: a run. Thick: the mean of a method's runs, as long as all of them go on. The loss is that on the "
    "cases held out to choose the epoch; where none were, that on the training cases."
)
HISTORY = "history.csv"
PANELS = 3
"""In a row."""


@dataclass(frozen=True)
class Curve:
    """Losses by epoch, from the first on. of: 'validation' or 'training'."""

    of: str
    losses: tuple[float, ...]


def curves(comparison: Comparison, placed: Sequence[Placed]) -> Figure | str:
    """A panel a data set."""
    from matplotlib.figure import Figure

    found: dict[str, list[tuple[str, Curve]]] = defaultdict(list)
    for one in placed:
        if one.cell.status == "done":
            label = label_of(one.cell, comparison.folds)
            found[one.cell.data] += [(label, curve) for curve in _of(one)]
    if not found:
        return "no run has a history.csv"
    style = looks(comparison)
    columns = min(PANELS, len(found))
    rows = math.ceil(len(found) / columns)
    figure = Figure(figsize=(1.2 + 3.1 * columns, 0.7 + 2.4 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, name in zip(panels, sorted(found, key=str.lower), strict=False):
        for label, look in style.items():
            _draw(axes, [curve.losses for method, curve in found[name] if method == label], look)
        _frame(axes, name, [curve for _, curve in found[name]])
    for axes in panels[len(found) :]:
        axes.set_visible(False)
    _legend(figure, style, {label for some in found.values() for label, _ in some})
    return figure


def _of(one: Placed) -> Iterator[Curve]:
    """The curve of a cell's run, or of each of its parts."""
    inside = [f"fold{fold}" for fold in range(one.cell.folds)] or ["."]
    for name in inside:
        if (curve := read_curve(one.folder / name / HISTORY)) is not None:
            yield curve


def read_curve(place: Path) -> Curve | None:
    """The losses of a run, None where there is no such file or it has none."""
    try:
        with place.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for of, name in (("validation", "validation_loss"), ("training", "train_loss")):
            if rows and all(row[name] for row in rows):
                return Curve(of, tuple(float(row[name]) for row in rows))
    except (OSError, ValueError, KeyError):
        return None
    return None


def _draw(axes: Axes, runs: Sequence[Sequence[float]], look: Look) -> None:
    for losses in runs:
        axes.plot(range(1, len(losses) + 1), losses, color=look.colour, linewidth=0.6, alpha=0.3)
    means = [fmean(at) for at in zip(*runs, strict=False)]
    axes.plot(range(1, len(means) + 1), means, color=look.colour, linestyle=look.line, linewidth=1.6)


def _frame(axes: Axes, name: str, curves_there: Sequence[Curve]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(name, fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.set_xlabel("epoch", fontsize=9)
    axes.set_ylabel(f"{' / '.join(sorted({curve.of for curve in curves_there}))} loss", fontsize=9)
    axes.tick_params(labelsize=8)


def _legend(figure: Figure, style: Mapping[str, Look], there: set[str]) -> None:
    from matplotlib.lines import Line2D

    lines = [
        Line2D([], [], color=look.colour, linestyle=look.line, label=label)
        for label, look in style.items()
        if label in there
    ]
    figure.legend(handles=lines, loc="outside upper center", ncols=min(len(lines), 4), handlelength=3)

"""Pictures of a comparison: which there are, their look, and how they become files.

A method has one colour, marker and line in every picture; colours are those of Okabe and Ito, which people
who confuse colours can tell apart, and no two methods differ by colour alone. The reference is black. Hollow
marks are of methods that are not ranked.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from tsattn.errors import InputError
from tsattn.sweeps.comparison import TITLES, Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tsattn.sweeps.gather import Placed

_log = logging.getLogger(__name__)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5A3C")
MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
LINES = ("--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
OTHER_SCRIPTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans CJK KR",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "IPAGothic",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
)
LOOK: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "savefig.facecolor": "white",
}
Draw = Callable[[Comparison, "Sequence[Placed]"], "Figure | str"]
"""Gives a picture, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture as files. missing: why there is none, else ''."""

    name: str
    title: str
    caption: str
    png: bytes = b""
    svg: bytes = b""
    missing: str = ""


@dataclass(frozen=True)
class Look:
    """Of a method in every picture."""

    colour: str
    marker: str
    line: Any
    ranked: bool

    @property
    def face(self) -> str:
        """What a mark is filled with."""
        return self.colour if self.ranked else "white"


def check_library() -> None:
    """InputError where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("Plots need matplotlib, which is not installed: pip install 'tsattn[plots]'.")


def draw(comparison: Comparison, placed: Sequence[Placed]) -> Iterator[Picture]:
    """Every picture, one after another, each drawn when it is asked for."""
    import matplotlib as mpl

    from tsattn.sweeps import plot_curves, plot_ranks, plot_scores

    if letters := _unknown_letters(comparison):
        _log.warning(
            "Plots show boxes for %s, which no installed font has; Noto Sans CJK, for example, does.", letters
        )
    metric = TITLES[comparison.metric].lower()
    pictures: tuple[tuple[str, str, str, Draw], ...] = (
        ("critical-difference", "Mean ranks", plot_ranks.DIFFERENCE, plot_ranks.critical_difference),
        ("comparison-matrix", "Every method against every other", plot_ranks.MATRIX, plot_ranks.matrix),
        (
            "differences",
            f"{metric} against {comparison.reference}",
            plot_scores.DIFFERENCES,
            plot_scores.differences,
        ),
        ("training-time", f"{metric} against training time", plot_scores.TIME, plot_scores.time),
        ("length", f"{metric} against length", plot_scores.LENGTH, plot_scores.length),
        ("learning-curves", "Learning curves", plot_curves.CURVES, plot_curves.curves),
    )
    for name, title, caption, picture in pictures:
        with mpl.rc_context({**LOOK, "font.family": fonts(), "svg.hashsalt": name}):
            mpl.use("agg")  # pyplot, which aeon draws with, would look for a screen
            drawn = picture(comparison, placed)
            heading = title[0].upper() + title[1:]
            if isinstance(drawn, str):
                yield Picture(name=name, title=heading, caption=caption, missing=drawn)
            else:
                yield Picture(
                    name=name,
                    title=heading,
                    caption=caption,
                    png=_file(drawn, "png"),
                    svg=_file(drawn, "svg"),
                )


def looks(comparison: Comparison) -> dict[str, Look]:
    """By label of the method, in their order; what was published takes what colours are left."""
    colours, markers, lines = cycle(COLOURS), cycle(MARKERS), cycle(LINES)
    found = {comparison.reference: Look("#000000", "o", "-", True)}
    for method in sorted(comparison.methods, key=lambda method: method.kind == "published"):
        if method.label != comparison.reference:
            found[method.label] = Look(next(colours), next(markers), next(lines), method.ranked)
    return {method.label: found[method.label] for method in comparison.methods}


def fonts() -> list[str]:
    """Matplotlib's own font, then those installed that have the letters of other scripts."""
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in OTHER_SCRIPTS if name in there)]


def _unknown_letters(comparison: Comparison) -> str:
    """Of the names in a comparison, those that none of `fonts` has."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    names = [*(one.name for one in comparison.data), *(one.label for one in comparison.methods)]
    known = [get_font(findfont(FontProperties(family=name))).get_charmap() for name in fonts()]
    letters = dict.fromkeys("".join(names))
    return "".join(letter for letter in letters if not any(ord(letter) in of for of in known))


def scale(comparison: Comparison) -> float:
    """What a figure of the metric is multiplied by to be drawn: shares as %."""
    return 1.0 if comparison.lower_is_better else 100.0


def axis_title(comparison: Comparison) -> str:
    """Of the metric."""
    unit = "nats, less is better" if comparison.lower_is_better else "%"
    return f"{TITLES[comparison.metric].lower()} {comparison.judged}, {unit}"


def _file(figure: Figure, form: str) -> bytes:
    import matplotlib.pyplot as plt

    place = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # said once, by `draw`
        warnings.filterwarnings("ignore", "This figure includes Axes", UserWarning)  # aeon's, which fits
        figure.savefig(place, format=form, dpi=150, bbox_inches="tight", pad_inches=0.15, metadata=metadata)
    if form == "svg":
        plt.close(figure)
    return place.getvalue()

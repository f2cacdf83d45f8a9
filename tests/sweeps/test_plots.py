"""Pictures as they are laid out: words lie on the picture and on no other words, at 3 and at 30 data sets."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from sweep_figures import cells

from tsattn.sweeps import plot_curves, plot_ranks, plot_scores
from tsattn.sweeps.cell import Cell
from tsattn.sweeps.comparison import Comparison
from tsattn.sweeps.gather import Placed
from tsattn.sweeps.plots import LOOK, draw, looks
from tsattn.sweeps.published import published
from tsattn.sweeps.table import compare

CURVE = "epoch,train_loss,validation_loss\n1,2.5,\n2,1.5,\n"
DRAWN = {
    "critical_difference": plot_ranks.critical_difference,
    "matrix": plot_ranks.matrix,
    "differences": plot_scores.differences,
    "time": plot_scores.time,
    "length": plot_scores.length,
    "curves": plot_curves.curves,
}


def many(count: int) -> list[Cell]:
    """The real figures under `count` names as long as the archive's, with lengths from 8 to 18,000."""
    by_set = [list(some) for _, some in itertools.groupby(cells(), key=lambda one: one.data)]
    return [
        replace(
            one,
            data=f"SelfRegulationDirection{place:02d}" if place >= len(by_set) else one.data,
            length=round(8 * 2250 ** (place / max(1, count - 1))),
        )
        for place in range(count)
        for one in by_set[place % len(by_set)]
    ]


def words(figure: Any) -> Iterator[Text]:
    """Every text of a figure that is drawn; a tick beyond its axis is not."""
    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            beyond |= {label for place, label in ticks if not (axes.axison and low <= place <= high)}
    for text in figure.findobj(Text):
        shown = text.get_visible() and text.get_text().strip() and text not in beyond
        if shown and (text.axes is None or text.axes.get_visible()):
            yield text


def drawn(name: str, comparison: Comparison, folder: Path) -> Any:
    (folder / "history.csv").write_text(CURVE, "utf-8")
    placed = [
        Placed(cell=cell, folder=folder)
        for data in comparison.data
        for cell in [replace(cells()[0], data=data.name, method="softmax")]
    ]
    mpl.use("agg")
    figure = DRAWN[name](comparison, placed)
    assert not isinstance(figure, str), figure
    return figure


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *(("critical_difference", 3), ("matrix", 30), ("curves", 3)),
        *(("differences", 3), ("differences", 30), ("time", 3), ("length", 3), ("length", 30)),
    ],
)
def test_no_words_lie_on_others(name: str, count: int, tmp_path: Path) -> None:
    columns = published() if count == 3 else ()
    with mpl.rc_context(LOOK):
        figure = drawn(name, compare(many(count), published=columns), tmp_path)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        boxes = [(text, text.get_window_extent(renderer)) for text in words(figure)]
        whole = figure.get_tightbbox(renderer).padded(0.15)  # what is saved, in inches
        saved = whole.transformed(figure.dpi_scale_trans)
    assert len(boxes) > 4
    for text, box in boxes:
        assert saved.contains(*box.min), text
        assert saved.contains(*box.max), text
    for (one, its), (other, others) in itertools.combinations(boxes, 2):
        overlap = its.intersection(its, others)
        if overlap is not None:
            assert min(overlap.width, overlap.height) < 2, (one, other)


def test_ranks_of_the_picture_are_those_of_the_table(tmp_path: Path) -> None:
    """Means that differ by rounding alone share their ranks in both."""
    some = many(6)
    methods = sorted({one.method for one in some})
    tied = {methods[0]: 0.1 + 0.2, methods[1]: 0.3}
    some = [
        replace(one, metrics={**one.metrics, "accuracy": tied.get(one.method, one.metrics["accuracy"])})
        for one in some
    ]
    comparison = compare(some)
    figure = drawn("critical_difference", comparison, tmp_path)
    shown = sorted(
        float(text.get_text()) for text in words(figure) if re.fullmatch(r"\d\.\d{4}", text.get_text())
    )
    assert shown == sorted(round(rank, 4) for rank in comparison.ranks.values())


def test_pictures_of_nothing_but_ties_come_without_warnings(tmp_path: Path) -> None:
    same = [replace(one, metrics={**one.metrics, "accuracy": 0.5}) for one in many(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("critical_difference", "matrix"):
            drawn(name, compare(same), tmp_path)


def test_epochs_are_whole_numbers(tmp_path: Path) -> None:
    axes = drawn("curves", compare(many(3)), tmp_path).axes[0]
    assert {place for place in axes.get_xticks() if 1 <= place <= 2} == {1, 2}


def test_letters_that_no_font_has_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    private = chr(0xF8FE)
    comparison = compare([replace(one, data=f"{one.data}{private}") for one in many(3)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (first, *_) = draw(comparison, ())
    assert [record.getMessage() for record in caplog.records if private in record.getMessage()] == [
        f"Plots show boxes for {private}, which no installed font has; Noto Sans CJK, for example, does."
    ]
    assert first.png


def test_no_two_methods_look_alike_and_the_reference_is_black() -> None:
    comparison = compare(cells(), published=published())
    of = looks(comparison)
    assert of["softmax"].colour == "#000000"
    assert len({(look.colour, look.marker) for look in of.values()}) == len(of) == 17
    own = [of[method.label] for method in comparison.methods if method.kind == "transformer"]
    assert len({look.colour for look in own}) == len(own)
    assert len({look.marker for look in own}) == len(own)
    assert {look.face for label, look in of.items() if "†" in label} == {"white"}

"""A Report as tables for a person: figures, classes, and what was taken for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from tsattn.cli import console

if TYPE_CHECKING:
    from tsattn.evaluation.metrics import Report
    from tsattn.evaluation.redundancy import LayerRedundancy

# A matrix of counts with more columns than this no longer fits a screen.
MATRIX_CLASSES = 12
PAIRS = 10


def show_report(report: Report, title: str, provider: str) -> None:
    """Three tables on stdout; with many classes the most frequent confusions stand for the matrix."""
    console.show(_summary(report, title, provider))
    console.show(_classes(report))
    console.show(_matrix(report) if len(report.classes) <= MATRIX_CLASSES else _pairs(report))


def show_heads(layers: Sequence[LayerRedundancy]) -> None:
    """How alike the heads of each layer are, as a table on stdout."""
    table = Table(
        title="Heads",
        title_justify="left",
        caption=f"means over pairs of heads and {layers[0].tokens:,} observed tokens; "
        "1 in CKA: the same up to rotation and scale",
        caption_justify="left",
    )
    for name in ("layer", "mean distance", "relative distance", "CKA"):
        table.add_column(name, justify="right")
    for one in layers:
        cka = "–" if one.cka is None else f"{one.cka:.3f}"
        table.add_row(str(one.layer), f"{one.distance:.4g}", f"{one.relative_distance:.3f}", cka)
    console.show(table)


def _summary(report: Report, title: str, provider: str) -> Table:
    table = Table(title=escape(title), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", overflow="fold")
    table.add_row("accuracy", _percent(report.accuracy))
    table.add_row("balanced accuracy", _percent(report.balanced_accuracy))
    table.add_row("macro F1", _percent(report.macro_f1))
    table.add_row("log loss", f"{report.log_loss:.4f}")
    table.add_row("calibration error", _percent(report.calibration_error))
    table.add_row(f"always {escape(repr(report.majority_class))}", _percent(report.majority_accuracy))
    table.add_row("cases", f"{report.cases:,}")
    table.add_row("provider", escape(provider))
    return table


def _classes(report: Report) -> Table:
    table = Table(title="Classes", title_justify="left")
    table.add_column("class", overflow="fold")
    for name in ("precision", "recall", "F1", "cases"):
        table.add_column(name, justify="right")
    for score in report.classes:
        figures = (_percent(value) for value in (score.precision, score.recall, score.f1))
        table.add_row(escape(score.label), *figures, f"{score.support:,}")
    return table


def _matrix(report: Report) -> Table:
    table = Table(title="Confusion (row: true, column: predicted)", title_justify="left")
    table.add_column("")
    for score in report.classes:
        table.add_column(escape(score.label), justify="right", overflow="fold")
    for at, (score, row) in enumerate(zip(report.classes, report.confusion, strict=True)):
        cells = [
            f"[bold]{count}[/]" if count and column == at else str(count) if count else "[dim]·[/]"
            for column, count in enumerate(row)
        ]
        table.add_row(f"[bold]{escape(score.label)}[/]", *cells)
    return table


def _pairs(report: Report) -> Table:
    pairs = report.confusions()
    supports = {score.label: score.support for score in report.classes}
    table = Table(
        title="Most frequent confusions",
        title_justify="left",
        caption=f"{min(PAIRS, len(pairs))} of {len(pairs)} pairs; --json has the whole matrix",
        caption_justify="left",
    )
    table.add_column("true class", overflow="fold")
    table.add_column("predicted", overflow="fold")
    table.add_column("cases", justify="right")
    table.add_column("of its class", justify="right")
    for true, predicted, count in pairs[:PAIRS]:
        table.add_row(escape(true), escape(predicted), f"{count:,}", _percent(count / supports[true]))
    return table


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"

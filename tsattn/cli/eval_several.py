"""`tsattn eval` of a folder of several runs: a row a run, mean and deviation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsattn.evaluation.metrics import Report
    from tsattn.runs.members import Members

FIGURES = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "calibration_error")


def judge_members(folder: Path, members: Members, judge: Callable[[str], Report]) -> dict[str, Any]:
    """Figures of every member on the same cases, and mean and deviation of each.

    judge: judges a run by its path, and notes what it came to.
    """
    from tsattn.training.several import mean_and_deviation

    reports = {name: judge(str(folder / name)) for name in members.names}
    rows = [{"name": name, **report.figures()} for name, report in reports.items()]
    return {
        "members": rows,
        "over_members": {
            figure: mean_and_deviation([getattr(report, figure) for report in reports.values()])
            for figure in FIGURES
        },
    }


def draw_members(found: dict[str, Any], title: str) -> None:
    """The rows, then mean and standard deviation."""
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    table = Table(title=escape(title), title_justify="left")
    table.add_column("run")
    for figure in FIGURES:
        table.add_column(figure.replace("_", " ").replace("f1", "F1"), justify="right")
    for row in found["members"]:
        table.add_row(row["name"], *(_shown(figure, row[figure]) for figure in FIGURES))
    table.add_section()
    for word in ("mean", "std"):
        if all(found["over_members"][figure][word] is not None for figure in FIGURES):
            table.add_row(word, *(_shown(figure, found["over_members"][figure][word]) for figure in FIGURES))
    console.show(table)


def _shown(figure: str, value: float) -> str:
    return f"{value:.4f}" if figure == "log_loss" else f"{100 * value:.2f} %"

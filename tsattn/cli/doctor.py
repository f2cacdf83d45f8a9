"""`tsattn doctor`: what this machine can do, tried and not guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tsattn.cli.options import AsJson
from tsattn.errors import CheckFailed

if TYPE_CHECKING:
    from tsattn.doctor.findings import Report

_MARKS = {"good": "[green]✓[/]", "absent": "[dim]–[/]", "note": "[yellow]![/]", "broken": "[bold red]✗[/]"}


def doctor(
    job: Annotated[
        Literal["all", "train", "export", "predict"],
        typer.Option("--for", help="What is to be done here; a container may only predict."),
    ] = "all",
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option("--device", help="cuda: a GPU that cannot be used counts as broken."),
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Say what this machine can do: packages, engines, memory, disk, cache.

    torch and every provider of onnxruntime compute something in a process of their own, which takes some
    seconds. Leaves with 3 where something keeps a main job from being done.
    """
    from tsattn.cli import console
    from tsattn.doctor.examination import examine
    from tsattn.doctor.findings import JOBS

    console.hear_remarks()
    with console.working("trying torch and onnxruntime, some seconds"):
        report = examine(JOBS if job == "all" else (job,), device)
    if as_json:
        console.show_json(_document(report))
    else:
        _draw(report)
    if report.broken:
        names = dict.fromkeys(one.name for one in report.broken)
        raise CheckFailed(f"Broken here: {', '.join(names)}. What to do stands with each above.")


def _document(report: Report) -> dict[str, object]:
    return {
        "jobs": {job: not report.obstacles(job) for job in report.asked},
        "findings": [vars(one) for one in report.findings],
    }


def _draw(report: Report) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    for area in dict.fromkeys(one.area for one in report.findings):
        table = Table(title=area, title_justify="left", title_style="bold", show_header=False, box=None)
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for one in report.findings:
            if one.area == area:
                state = one.state if one.state != "broken" or one in report.broken else "note"
                advice = f"\n{one.advice}" if one.advice and state in ("note", "broken") else ""
                table.add_row(_MARKS[state], escape(one.name), escape(one.value + advice))
        console.show(table)
    words = [
        f"{job}: {'no, because of ' + ', '.join(escape(one.name) for one in found) if found else 'yes'}"
        for job in report.asked
        for found in [report.obstacles(job)]
    ]
    console.show("\n".join(["", *words]))

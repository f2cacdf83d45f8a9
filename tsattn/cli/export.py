"""`tsattn export`: turn a run into a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsattn.cli.options import AllowCode, AsJson

if TYPE_CHECKING:
    from tsattn.export.workflow import Exported

app = typer.Typer(no_args_is_help=True)


@app.callback()
def export() -> None:
    """Turn a run into one self-contained model file, and prove it."""


@app.command("onnx")
def export_to_onnx(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Default: model.onnx in the run folder.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="SOURCE",
            help="Series to compare on, where the run's own training data are no longer there.",
            show_default=False,
        ),
    ] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Write a run as one ONNX file and compare it with the run on real series.

    The file takes raw values and holds standardisation, the rule for missing values, and the model
    card. Where torch and ONNX Runtime disagree no file is left and the exit code is 3.
    """
    from tsattn.cli import console
    from tsattn.export.workflow import export_onnx

    console.hear_remarks()
    with console.working("exporting and comparing"):
        exported = export_onnx(run, output, data, allow_code=allow_code)
    if as_json:
        console.show_json(_document(exported))
    else:
        draw_export(exported)


def draw_export(exported: Exported) -> None:
    """Parity by length as a table, then where the file is."""
    from rich.table import Table

    from tsattn.cli import console

    table = Table(title="torch against ONNX Runtime")
    for heading in ("series", "length", "batches", "largest difference", "changed classes"):
        table.add_column(heading, justify="left" if heading in ("series", "batches") else "right")
    for what in dict.fromkeys(one.what for one in exported.parity.comparisons):
        same = [one for one in exported.parity.comparisons if one.what == what]
        table.add_row(
            what,
            str(same[0].length),
            ", ".join(str(one.cases) for one in same),
            f"{max(one.difference for one in same):.1e}",
            f"{sum(one.changed for one in same)} of {sum(one.cases for one in same)}",
        )
    console.show(table)
    console.show(f"{exported.path}  {exported.size / 1e6:.2f} MB")


def _document(exported: Exported) -> dict[str, object]:
    parity = exported.parity
    return {
        "file": str(exported.path),
        "bytes": exported.size,
        "largest_difference": parity.difference,
        "cases": parity.cases,
        "changed_classes": parity.changed,
        "comparisons": [vars(one) for one in parity.comparisons],
    }

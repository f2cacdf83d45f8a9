"""`tsattn predict`: classify files with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsattn.cli import interrupts
from tsattn.cli.options import (
    AllowCode,
    AsJson,
    BatchSize,
    Device,
    IdColumn,
    LabelColumn,
    Layout,
    PerWhat,
    TimeColumn,
)

if TYPE_CHECKING:
    from tsattn.inference.pipeline import PredictSummary


def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model file (.onnx) or run folder.", show_default=False)
    ],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="CSV files, long or wide, or .ts files.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT.csv", help="CSV to write.", show_default=False),
    ],
    proba: Annotated[bool, typer.Option("--proba", help="Also write one column a class.")] = False,
    per: PerWhat = "recording",
    batch_size: BatchSize = 64,
    device: Device = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", min=1, metavar="N", help="CPU threads; all cores if not given.", show_default=False
        ),
    ] = None,
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Classify files and write id, label and confidence of every case to a CSV.

    Order and ids of the input are kept. Columns named in training are found again;
    a label column is ignored. Files are read as a stream, so their size does not matter.
    """
    from tsattn.cli import console
    from tsattn.cli.open_model import open_predictor

    with interrupts.held():
        from tsattn.data.columns import TableOptions
        from tsattn.inference.output import refuse_model
        from tsattn.inference.pipeline import predict_files

    console.hear_remarks()
    refuse_model(output, Path(model), but=(".csv", ".txt", ".tsv"))
    predictor = open_predictor(model, device, threads, parallel_calls=True, allow_code=allow_code)
    console.remark(
        f"{model}: {predictor.card.attention}, {len(predictor.card.classes)} classes, {predictor.provider}"
    )
    options = TableOptions(layout=layout, id=id_column, time=time_column, label=label_column)
    with _counting() as progress:
        summary = predict_files(
            predictor, files, output, options, batch_size=batch_size, proba=proba, per=per, progress=progress
        )
    if as_json:
        console.show_json(_document(summary, model, files))
    else:
        _draw(summary)


@contextmanager
def _counting() -> Iterator[Callable[[int], None] | None]:
    """Shows the cases done so far on stderr where it is a terminal."""
    import time

    from tsattn.cli import console

    if not console.err.is_terminal:
        yield None
        return
    began = time.perf_counter()
    with console.err.status("reading") as status:
        yield lambda done: status.update(
            f"{done:,} cases, {done / (time.perf_counter() - began):,.0f} cases/s"
        )


def _document(summary: PredictSummary, model: str, files: list[Path]) -> dict[str, object]:
    return {
        "model": model,
        "files": [str(path) for path in files],
        "output": str(summary.output),
        "cases": summary.cases,
        "seconds": round(summary.seconds, 3),
        "cases_per_second": round(summary.cases_per_second, 1),
        "provider": summary.provider,
    }


def _draw(summary: PredictSummary) -> None:
    from rich.table import Table

    from tsattn.cli import console

    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("cases", f"{summary.cases:,}")
    table.add_row("seconds", f"{summary.seconds:.2f}")
    table.add_row("cases/s", f"{summary.cases_per_second:,.0f}")
    table.add_row("provider", summary.provider)
    table.add_row("output", str(summary.output))
    console.show(table)

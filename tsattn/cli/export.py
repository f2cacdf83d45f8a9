"""`tsattn export`: turn a run into a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    dtype: Annotated[
        Literal["fp32", "fp16", "int8"],
        typer.Option("--dtype", help="What it computes in; input and output are float32 in any case."),
    ] = "fp32",
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            metavar="SOURCE",
            help="int8: cases that tell the ranges of values once for all (static quantisation).",
            show_default=False,
        ),
    ] = None,
    max_drop: Annotated[
        float,
        typer.Option(
            "--max-drop",
            min=0,
            metavar="POINTS",
            help="Points of accuracy (%) that fp16 and int8 may cost.",
        ),
    ] = 0.5,
    opset: Annotated[
        int,
        typer.Option("--opset", metavar="N", help="ONNX opset, 18 to 23; a lower one runs in older engines."),
    ] = 20,
    temperature: Annotated[
        bool,
        typer.Option("--temperature", help="Fit how sure the model may be of itself, on held-out cases."),
    ] = False,
    unknown_below: Annotated[
        float,
        typer.Option(
            "--unknown-below", min=0, max=1, metavar="P", help="`unknown` is the label of less sure answers."
        ),
    ] = 0.0,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="SOURCE",
            help="Series to compare and measure on; of the run's own data TRAIN and TEST if not given.",
            show_default=False,
        ),
    ] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Write a run as one ONNX file, compare it with the run and measure it on real series.

    The file takes raw values and holds standardisation, the rule for missing values, and the model
    card. Where torch and ONNX Runtime disagree, or a smaller type costs more accuracy than allowed,
    no file is left and the exit code is 3.
    """
    from tsattn.cli import console
    from tsattn.cli.export_view import draw_export, export_document
    from tsattn.export.asked import Asked
    from tsattn.export.workflow import export_onnx

    console.hear_remarks()
    asked = Asked(
        dtype=dtype,
        opset=opset,
        data=data,
        calibrate=calibrate,
        max_drop=max_drop,
        temperature=temperature,
        unknown_below=unknown_below,
    )
    with console.working("exporting, comparing and measuring"):
        exported = export_onnx(run, output, asked, allow_code=allow_code)
    _say_what_was_seen(exported)
    if as_json:
        console.show_json(export_document(exported))
    else:
        draw_export(exported)


def _say_what_was_seen(exported: Exported) -> None:
    from tsattn.cli import console

    measured = exported.measured
    if measured.trained_on:
        console.remark(
            f"{measured.origin}: the model was trained on these cases, and there are no others to measure "
            "on; name some with --data SOURCE."
        )

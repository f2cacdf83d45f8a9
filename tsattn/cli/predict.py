"""`tsattn predict`: classify files with a trained model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tsattn.cli import interrupts
from tsattn.cli.options import (
    AllowCode,
    AsJson,
    IdColumn,
    LabelColumn,
    Layout,
    PerWhat,
    TimeColumn,
)
from tsattn.cli.prediction_view import counting, report, saying_what_is_kept
from tsattn.errors import InputError

_INPUT, _OUTPUT, _COMPUTING, _CLUSTER = "Input", "Output", "Computing", "Cluster"


def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model file (.onnx) or run folder.", show_default=False)
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Tables (CSV, also .gz and .zst, or Parquet), .ts or .npz files, patterns, folders; - for a "
            "CSV on stdin.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write: .csv, .jsonl or .parquet; - for stdout.",
            show_default=False,
        ),
    ],
    form: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        typer.Option(
            "--format",
            help="Form of the output, where its ending does not say it.",
            rich_help_panel=_OUTPUT,
            show_default=False,
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also write one column a class.", rich_help_panel=_OUTPUT)
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="Carry a column of the input through; may be typed again.",
            rich_help_panel=_OUTPUT,
            show_default=False,
        ),
    ] = None,
    per: PerWhat = "recording",
    on_error: Annotated[
        Literal["fail", "skip", "mark"],
        typer.Option(
            "--on-error",
            help="A row that cannot be read: end with nothing written, leave its case out, or write it with "
            "the reason in a column error.",
            rich_help_panel=_INPUT,
        ),
    ] = "fail",
    sort: Annotated[
        bool,
        typer.Option(
            "--sort",
            help="Rows of one case may stand anywhere in a long table; they are put together on disk first.",
            rich_help_panel=_INPUT,
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Keep what is written when stopped or killed, and go on with it.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size",
            min=1,
            metavar="N",
            help="Cases at a time, at most; as is fastest if not given.",
            show_default=False,
            rich_help_panel=_COMPUTING,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="auto|cpu|cuda[:N]|mps",
            help="Where to compute; auto takes the fastest that is really there.",
            rich_help_panel=_COMPUTING,
        ),
    ] = "auto",
    providers: Annotated[
        str | None,
        typer.Option(
            "--providers",
            metavar="WORD,…",
            help="onnxruntime's, the best first: tensorrt, cuda, cpu. Each has to be had.",
            rich_help_panel=_COMPUTING,
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            min=1,
            metavar="N",
            help="CPU threads to read and compute with; all cores if not given.",
            rich_help_panel=_COMPUTING,
            show_default=False,
        ),
    ] = None,
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(
            "--engine",
            help="ray: the actors of a Ray cluster, or of this machine, predict a file each; -o is a folder.",
            rich_help_panel=_CLUSTER,
        ),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT|auto",
            help="Ray cluster. Default: RAY_ADDRESS, else one is begun on this machine.",
            rich_help_panel=_CLUSTER,
            show_default=False,
        ),
    ] = None,
    gpu_share: Annotated[
        float,
        typer.Option(
            "--gpu-share",
            min=0.01,
            max=1.0,
            metavar="SHARE",
            help="Of a GPU that an actor takes.",
            rich_help_panel=_CLUSTER,
        ),
    ] = 1.0,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Classify files and write id, label and confidence of every case.

    Order and ids of the input are kept. Columns named in training are found again;
    a label column is ignored. Tables are read as a stream, so their size does not matter.
    """
    from tsattn.cli import console
    from tsattn.cli.open_model import open_predictor

    with interrupts.held():
        from tsattn.data.columns import TableOptions
        from tsattn.inference.inputs import files_of
        from tsattn.inference.output import refuse_model
        from tsattn.inference.pipeline import Wanted, predict_files

    console.hear_remarks()
    wanted = Wanted(
        proba=proba,
        per=per,
        keep=tuple(keep or ()),
        on_error=on_error,
        format=form,
        sort=sort,
        resume=resume,
    )
    table = TableOptions(layout=layout, id=id_column, time=time_column, label=label_column)
    if engine == "ray":
        from tsattn.inference.ray_engine import Cluster, predict_with_ray

        if providers is not None:
            raise InputError("--engine ray chooses by --device: leave --providers away.")
        cluster = Cluster(address=address, threads=threads or 1, gpu_share=gpu_share)
        with counting() as progress:
            summary = predict_with_ray(
                Path(model),
                files,
                output,
                table,
                batch_size=batch_size,
                wanted=wanted,
                device=device,
                cluster=cluster,
                progress=progress,
            )
        report(summary, model, files, output, as_json)
        return
    if address is not None:
        raise InputError("--address is that of a Ray cluster: type --engine ray too.")
    place = None if output == "-" else Path(output)
    if place is None and as_json:
        raise InputError("-o - and --json both write to stdout. Type -o FILE, or leave out --json.")
    if place is None and sys.stdout is None:
        raise InputError("stdout is closed. Type -o FILE.")
    if place is not None:
        refuse_model(place, Path(model), but=(".csv", ".txt", ".tsv", ".jsonl", ".parquet"))
    paths = files_of(files, place)
    predictor = open_predictor(
        model, device, threads, parallel_calls=True, allow_code=allow_code, providers=providers
    )
    console.remark(
        f"{model}: {predictor.card.attention}, {len(predictor.card.classes)} classes, {predictor.provider}"
    )
    with saying_what_is_kept(place, resume), counting() as progress:
        summary = predict_files(
            predictor,
            paths,
            sys.stdout.buffer if place is None else place,
            table,
            batch_size=batch_size,
            wanted=wanted,
            threads=threads,
            stdin=None if sys.stdin is None else sys.stdin.buffer,
            model=_told_apart(Path(model)),
            progress=progress,
        )
    report(summary, model, paths, output, as_json)


def _told_apart(model: Path) -> str:
    """Size and time of the model file, or of the weights of a run."""
    weights = model / "model.safetensors" if model.is_dir() else model
    status = weights.stat() if weights.exists() else None
    return f"{model.resolve()} {status and (status.st_size, status.st_mtime_ns)}"

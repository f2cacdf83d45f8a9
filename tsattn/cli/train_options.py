"""The options of `tsattn train` alone; absent (None) where the preset, the rules or the data decide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsattn.config import MOST_THREADS

_MODEL, _TRAINING, _CUTTING = "Model", "Training", "Recordings"

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE",
        help="Data set; file (.ts, .csv, .parquet, .npz, …); folder or zip; or pattern 'FOLDER/*.csv'.",
        show_default=False,
    ),
]
Attention = Annotated[
    str | None,
    typer.Option(
        "--attention",
        metavar="SPEC",
        help="E.g. softmax, linear, bn, sh, bn+sh; `tsattn attention list` shows all. Default: bn+sh.",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="WORD",
        help="linear, patch:P[,stride], conv, multiscale[:S], hydra[:S], or several joined by +. Default: "
        "the preset's.",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
Width = Annotated[
    int | None,
    typer.Option(
        "--width",
        min=1,
        max=1 << 16,
        metavar="D",
        help="Of a token.",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
HeadCount = Annotated[
    int | None,
    typer.Option(
        "--heads",
        min=1,
        metavar="H",
        help="Heads of each attention.",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
Layers = Annotated[
    int | None,
    typer.Option(
        "--layers",
        min=1,
        metavar="N",
        help="Blocks of the stack.",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        metavar="NAME|FILE",
        help="Recipe: a name that `tsattn preset list` shows, or a YAML file of your own.",
        rich_help_panel=_TRAINING,
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        min=1,
        metavar="N",
        help="Default: 60, more for small sets and fewer for large ones.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
TrainingBatch = Annotated[
    str | None,
    typer.Option(
        "--batch-size",
        metavar="N|auto",
        help="Default: 16, 32 from 1,000 cases on, 64 from 4,000. auto: what half of the free memory holds.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        "--lr",
        min=0.0,
        metavar="X",
        help="Highest learning rate. Default: the preset's.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
Validation = Annotated[
    float | None,
    typer.Option(
        "--val-fraction",
        min=0.0,
        max=0.9,
        metavar="SHARE",
        help="Share of TRAIN held out to choose the epoch. Default: 0.2 where TRAIN can spare it.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
TimeOrdered = Annotated[
    bool,
    typer.Option(
        "--time-ordered",
        help="Hold out the last of TRAIN instead of a stratified part.",
        rich_help_panel=_TRAINING,
    ),
]
ValidationFile = Annotated[
    Path | None,
    typer.Option(
        "--val-file",
        metavar="FILE",
        help="Hold out the cases of this file or folder and train on all of SOURCE.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
Resample = Annotated[
    str | None,
    typer.Option(
        "--resample",
        metavar="N|mean-length",
        help="Bring every recording to one length.",
        rich_help_panel=_CUTTING,
        show_default=False,
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        "--window",
        min=1,
        metavar="LENGTH",
        help="Cut recordings into windows of that many timepoints.",
        rich_help_panel=_CUTTING,
        show_default=False,
    ),
]
Stride = Annotated[
    int | None,
    typer.Option(
        "--stride",
        min=1,
        metavar="S",
        help="Timepoints between the starts of two windows. Default: half a window.",
        rich_help_panel=_CUTTING,
        show_default=False,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        max=2**32 - 1,
        metavar="N",
        help="Of weights, order and held-out cases.",
        rich_help_panel=_TRAINING,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        max=MOST_THREADS,
        metavar="N",
        help="CPU threads. Default: as many as pay for the size of a step.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Run folder. Default: runs/NAME-SPEC-seedN.", show_default=False
    ),
]

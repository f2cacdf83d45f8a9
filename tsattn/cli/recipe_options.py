"""The options of `tsattn train` that say how it learns; absent (None) where preset or default decide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsattn.config import MOST_CONVOLUTIONS

_RECIPE = "Recipe"

Optimiser = Annotated[
    str | None,
    typer.Option(
        "--optimiser",
        metavar="WORD",
        help="adamw or radam. Default: adamw.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Schedule = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="WORD",
        help="Of the learning rate: cosine, one-cycle or constant. Default: cosine.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Normalise = Annotated[
    str | None,
    typer.Option(
        "--normalise",
        metavar="WORD",
        help="Channels by the training set, each case by itself, or both side by side: set, case or both.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Convolutions = Annotated[
    int | None,
    typer.Option(
        "--convolutions",
        min=0,
        max=MOST_CONVOLUTIONS,
        metavar="N",
        help="About how many shares of fixed convolutions are weighed beside the transformer, 0 for none.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Dropout = Annotated[
    float | None,
    typer.Option(
        "--dropout",
        min=0.0,
        max=0.95,
        metavar="SHARE",
        help="Dropped from tokens, residuals and feed-forward.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
StochasticDepth = Annotated[
    float | None,
    typer.Option(
        "--stochastic-depth",
        min=0.0,
        max=0.95,
        metavar="SHARE",
        help="Of cases for which the last block is left out. Default: 0.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
LabelSmoothing = Annotated[
    float | None,
    typer.Option(
        "--label-smoothing",
        min=0.0,
        max=0.99,
        metavar="SHARE",
        help="Of a target, spread over all classes.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        "--class-weight",
        metavar="WORD",
        help="none, or balanced: rare classes count more in the loss.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Sampling = Annotated[
    str | None,
    typer.Option(
        "--sampling",
        metavar="WORD",
        help="none, or balanced: rare classes are drawn more often.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Augment = Annotated[
    str | None,
    typer.Option(
        "--augment",
        metavar="WORDS",
        help="E.g. jitter:0.03+scale:0.1+crop:0.9+mask:0.1+mixup:0.2; none for nothing.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Averaging = Annotated[
    float | None,
    typer.Option(
        "--averaging",
        min=0.0,
        max=0.9999,
        metavar="SHARE",
        help="Judge and keep a running average of the weights that retains SHARE a step, e.g. 0.99.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Patience = Annotated[
    int | None,
    typer.Option(
        "--patience",
        min=1,
        metavar="N",
        help="Epochs without a better one on held-out cases after which to stop.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Compile = Annotated[
    bool | None,
    typer.Option(
        "--compile/--no-compile",
        help="Let torch compile the step: a minute or two that pay on a GPU, and not on a CPU.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
Pretrained = Annotated[
    Path | None,
    typer.Option(
        "--pretrained",
        metavar="RUN",
        help="Begin with the weights of another run where they fit.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
ProtocolWord = Annotated[
    str,
    typer.Option(
        "--protocol",
        metavar="WORD",
        help="auto, holdout, last, refit, kfold:K, or best-on-test (to compare with published tables only).",
        rich_help_panel=_RECIPE,
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N|A,B,…",
        help="A run for each of N seeds, or of these; typing it again goes on where it was stopped.",
        rich_help_panel=_RECIPE,
        show_default=False,
    ),
]
EnsembleFlag = Annotated[
    bool,
    typer.Option(
        "--ensemble", help="Keep the runs of --seeds as one model, their mean.", rich_help_panel=_RECIPE
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="RUN",
        help="Go on with a training that was stopped; all else is taken from its folder.",
        show_default=False,
    ),
]
Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        metavar="WORD",
        help="Also report to tensorboard, mlflow or wandb; may be given several times. none for nothing.",
        show_default=False,
    ),
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print what would be trained, as YAML, and leave.")
]

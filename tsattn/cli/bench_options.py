"""The options of `tsattn bench` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_CLUSTER = "Cluster"

Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA…",
        help="Data sets by name, folder, zip or file; TEST is read once a cell, after training.",
        show_default=False,
    ),
]
Archives = Annotated[
    list[str] | None,
    typer.Option("--archive", metavar="NAME", help="All sets of an archive, e.g. uea.", show_default=False),
]
Collections = Annotated[
    list[str] | None,
    typer.Option(
        "--collection",
        metavar="NAME",
        help="uea10: the ten sets of the UEA archive that most papers report.",
        show_default=False,
    ),
]
Attentions = Annotated[
    list[str] | None,
    typer.Option(
        "--attention",
        metavar="SPEC,…",
        help="Specs to compare. Default: softmax,linear,bn,sh,bn+sh. none: baselines alone.",
        show_default=False,
    ),
]
Baselines = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        metavar="WORD,…",
        help="Of aeon: rocket, minirocket, multirocket-hydra, hydra, quant, 1nn-dtw.",
        show_default=False,
    ),
]
Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        metavar="OPTION=A,B",
        help="Every attention at each of these values, e.g. width=64,128; several are every combination.",
        show_default=False,
    ),
]
SweepSeeds = Annotated[
    str, typer.Option("--seeds", metavar="N|A,B,…", help="So many seeds, or these, of every cell.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Cells at a time; the cores are divided among them. Default: 1; of Ray as many as have room.",
        show_default=False,
    ),
]
TimeBudget = Annotated[
    str | None,
    typer.Option(
        "--time-budget",
        metavar="TIME",
        help="Stop after so long, e.g. 2h or 1h30m; the same command goes on.",
        show_default=False,
    ),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Try cells again that failed in an earlier sweep of DIR.")
]
SweepOut = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the sweep.", show_default=False)
]
CellThreads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help="CPU threads of a cell. Default: as many as pay, of the cores of its job.",
        show_default=False,
    ),
]
Engine = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--engine",
        help="ray: cells are tasks of a Ray cluster, whose nodes see DIR and the data.",
        rich_help_panel=_CLUSTER,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT|auto",
        help="Ray cluster. Default: RAY_ADDRESS, else one is begun on this machine.",
        rich_help_panel=_CLUSTER,
        show_default=False,
    ),
]
GpuShare = Annotated[
    float,
    typer.Option(
        "--gpu-share",
        min=0.01,
        max=1.0,
        metavar="SHARE",
        help="Of a GPU that a cell takes, where the Ray cluster has some.",
        rich_help_panel=_CLUSTER,
    ),
]

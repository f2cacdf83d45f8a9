"""Options that several commands share, spelled and explained once.

A command writes `batch_size: BatchSize = 64`. The table options are absent (None) unless typed:
then the model card's column roles or the file's header decide.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
LayoutName = Literal["long", "wide", "file"]

_TABLE = "Tables"

IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column that names the case a row belongs to.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="Column to order the rows of a case by (long layout).",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Column that holds the class.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Column that says what may not be torn apart: a subject, a machine.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="TABLE",
        help="Labels of a folder of files: a table with columns file and label.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
LabelPattern = Annotated[
    str | None,
    typer.Option(
        "--label-pattern",
        metavar="REGEX",
        help="Its one group is the label in a file's name.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
Layout = Annotated[
    LayoutName | None,
    typer.Option(
        "--layout",
        help="long: a row a timepoint. wide: a row a case. file: a file a case, a row a timepoint. "
        "Told from the header if not given.",
        rich_help_panel=_TABLE,
        show_default=False,
    ),
]
Registry = Annotated[
    Path | None,
    typer.Option(
        "--registry",
        metavar="FILE",
        help="Your own registry of data sets; datasets.yaml in the working folder if not given.",
        show_default=False,
    ),
]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, metavar="N", help="Cases at a time.")]
Device = Annotated[
    DeviceName,
    typer.Option("--device", help="Where to compute; auto takes the fastest that is really there."),
]
PerWhat = Annotated[
    Literal["recording", "window"],
    typer.Option("--per", help="Of a model trained on windows: answer a recording or each window."),
]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Run the attention code that a run folder holds; read it first."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")
]

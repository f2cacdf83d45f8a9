"""`tsattn reproduce`: repeat a run from its folder and say whether it comes to the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsattn.cli.options import AllowCode, AsJson
from tsattn.errors import CheckFailed

if TYPE_CHECKING:
    from tsattn.training.reproduction import Reproduction


def reproduce(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Finished run folder.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Keep the repetition as a run folder of its own.",
            show_default=False,
        ),
    ] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Train again as a run folder says and compare weights and figures.

    On the same machine with the same packages and threads both are the same to the byte. Leaves with 3
    where they are not.
    """
    from tsattn.cli import console
    from tsattn.cli.training_view import prepared_again, run_visibly
    from tsattn.runs import read_run
    from tsattn.training.reproduction import compare

    console.hear_remarks()
    read_run(run, allow_code=allow_code)
    with tempfile.TemporaryDirectory() as scratch:
        prepared = prepared_again(run, out or Path(scratch) / "run", allow_code).untracked()
        found = compare(run, run_visibly(prepared).out)
    if as_json:
        console.show_json({"same": found.same, **vars(found)})
    else:
        _draw(found)
    if not found.same:
        raise CheckFailed(
            f"{run}: its repetition is not the same"
            + (f"; other than then are: {', '.join(found.surroundings)}." if found.surroundings else ".")
        )


def _draw(found: Reproduction) -> None:
    from rich.table import Table

    from tsattn.cli import console

    table = Table()
    for heading in ("", "run", "repetition"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, value in found.first.items():
        table.add_row(name.replace("_", " "), value, found.second[name])
    console.show(table)
    weights = "the same to the byte" if found.weights else "not the same"
    figures = "the same" if found.differs_from is None else f"other from epoch {found.differs_from} on"
    console.show(f"Weights: {weights}. Figures of the epochs: {figures}.")

"""`tsattn compare`: what was tried, beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tsattn.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tsattn.sweeps.comparison import Comparison
    from tsattn.sweeps.gather import Placed
    from tsattn.sweeps.plots import Picture

Format = Literal["markdown", "csv", "latex", "json", "html"]
ENDINGS: dict[str, Format] = {
    ".md": "markdown",
    ".csv": "csv",
    ".tex": "latex",
    ".json": "json",
    ".html": "html",
}


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR", help="Sweeps of `tsattn bench`, folders of judged runs.", show_default=False
        ),
    ],
    metric: Annotated[
        str,
        typer.Option(
            "--metric", help="accuracy, balanced_accuracy, macro_f1, log_loss or calibration_error."
        ),
    ] = "accuracy",
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="METHOD",
            help="What the others are held against; softmax if it is there.",
            show_default=False,
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Also published accuracies, with protocol and source.")
    ] = False,
    best_on_test: Annotated[
        bool,
        typer.Option("--best-on-test", help="Rank also figures whose epoch TEST has chosen; they flatter."),
    ] = False,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Told from the ending of -o; tables for the terminal if neither is given."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="FILE.md, .csv, .tex, .json or .html.", show_default=False
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            "--plots", metavar="DIR", help="Also draw plots into DIR, as PNG and SVG.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods over data sets: accuracy, ranks, costs, and what statistics allow to say.

    Every run counts that has test figures: cells of a sweep, and run folders that `tsattn eval` has judged.
    """
    from tsattn.cli import console

    console.hear_remarks()
    wanted = _format(form, output, as_json)
    _check_plots(plots)

    from tsattn.sweeps.gather import gather
    from tsattn.sweeps.published import published as published_columns
    from tsattn.sweeps.table import compare as figures_of

    with console.working("reading"):
        placed = gather(folders)
        comparison = figures_of(
            [one.cell for one in placed],
            metric=metric,
            reference=reference,
            published=published_columns(metric) if published else (),
            rank_all=best_on_test,
        )
    pictures = _pictures(comparison, placed) if plots is not None or wanted == "html" else ()
    if wanted is None:
        from tsattn.cli.compare_tables import show_comparison

        show_comparison(comparison)
    else:
        _deliver(_rendered(wanted, comparison, pictures), output)
    if plots is not None:
        _keep(pictures, plots)


def _format(form: Format | None, output: Path | None, as_json: bool) -> Format | None:
    from tsattn.errors import InputError

    if as_json and (form not in (None, "json") or output is not None):
        other = f"--format {form}" if output is None else f"-o {output}"
        raise InputError(f"--json and {other} ask for two things: --json is for stdout. Type one of them.")
    if as_json:
        return "json"
    if form is not None or output is None:
        return form
    if output.suffix.lower() not in ENDINGS:
        raise InputError(
            f"-o {output}: its ending says no format. Write one of {', '.join(ENDINGS)}, or type --format."
        )
    return ENDINGS[output.suffix.lower()]


def _check_plots(folder: Path | None) -> None:
    """Before anything is read: can there be plots, and can they be written?"""
    if folder is None:
        return
    from tsattn.errors import InputError
    from tsattn.sweeps.plots import check_library

    check_library()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--plots {folder}: no folder can be made there ({error.strerror or error}). Name another."
        ) from None


def _pictures(comparison: Comparison, placed: Sequence[Placed]) -> Sequence[Picture]:
    """All that can be drawn, none where matplotlib is not there; what cannot be drawn is said."""
    from tsattn.cli import console
    from tsattn.errors import InputError
    from tsattn.sweeps.plots import check_library, draw

    try:
        check_library()
    except InputError as error:
        console.remark(f"The page is without plots. {error}")
        return ()
    with console.working("drawing"):
        pictures = list(draw(comparison, placed))
    for one in pictures:
        if one.missing:
            console.remark(f"{one.name} is not drawn: {one.missing}.")
    return [one for one in pictures if not one.missing]


def _rendered(form: Format, comparison: Comparison, pictures: Sequence[Picture]) -> str:
    match form:
        case "markdown":
            from tsattn.sweeps.render_markdown import markdown

            return markdown(comparison)
        case "latex":
            from tsattn.sweeps.render_latex import latex

            return latex(comparison)
        case "csv":
            from tsattn.sweeps.render_data import csv_text

            return csv_text(comparison)
        case "json":
            from tsattn.sweeps.render_data import json_text

            return json_text(comparison)
        case "html":
            from tsattn.sweeps.render_html import html

            return html(comparison, pictures)


def _deliver(text: str, output: Path | None) -> None:
    from tsattn.cli import console
    from tsattn.data.atomic import whole_file

    if output is None:
        console.show_text(text.rstrip("\n"))
        return
    with whole_file(output) as draft:
        draft.write_text(text, "utf-8")
    console.remark(f"{output} is written.")


def _keep(pictures: Sequence[Picture], folder: Path) -> None:
    from tsattn.cli import console
    from tsattn.data.atomic import whole_file

    for picture in pictures:
        for ending, content in (("png", picture.png), ("svg", picture.svg)):
            with whole_file(folder / f"{picture.name}.{ending}") as draft:
                draft.write_bytes(content)
    console.remark(f"{folder}: {', '.join(one.name for one in pictures) or 'nothing'}, as PNG and SVG.")

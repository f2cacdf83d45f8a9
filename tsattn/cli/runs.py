"""`tsattn runs`: what was run, with what, how good it is, and what differs between two."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsattn.cli.options import AsJson
from tsattn.errors import InputError

if TYPE_CHECKING:
    from tsattn.sweeps.survey import Surveyed

app = typer.Typer(help="What was run, with what, and how good it is.", no_args_is_help=True)

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.", show_default=False)]
_FIGURES = 4
"""Digits of a number in a table."""


@app.command("list")
def list_runs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder below which runs are.")] = Path(
        "runs"
    ),
    as_json: AsJson = False,
) -> None:
    """List the run folders at or below DIR with what they are and what they came to."""
    from tsattn.cli import console

    with console.working("looking for runs"):
        from tsattn.sweeps.survey import find_runs, survey

        found, spoilt = [], []
        for path in find_runs(folder):
            try:
                found.append(survey(path))
            except InputError as error:
                spoilt.append(str(error))
    for complaint in spoilt:
        console.remark(complaint)
    if as_json:
        console.show_json([run.summary() for run in found])
    else:
        _draw(found, folder)


@app.command()
def show(run: Run, as_json: AsJson = False) -> None:
    """Show all that a run folder says of itself."""
    from tsattn.cli import console
    from tsattn.sweeps.survey import flat, survey

    document = survey(run).document()
    if as_json:
        console.show_json(document)
    else:
        _pairs(["", str(run)], [(name, (value,)) for name, value in flat(document).items()])


@app.command()
def diff(
    first: Run,
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show what differs between two runs: configuration, versions and machine, figures."""
    from tsattn.cli import console
    from tsattn.sweeps.survey import differences, survey

    found = differences(survey(first), survey(second))
    if as_json:
        console.show_json({"runs": [str(first), str(second)], **found})
        return
    rows = [(f"{part}.{name}", values) for part, of in found.items() for name, values in of.items()]
    if rows:
        _pairs(["", str(first), str(second)], rows)
    else:
        console.show("Nothing differs.")


@app.command("rm")
def remove_runs(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN…", help="Run folders to delete.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete run folders and nothing else; it asks first."""
    from tsattn.cli import console
    from tsattn.sweeps.survey import check_removable, remove, survey

    runs = list({run.absolute().resolve() if not run.is_symlink() else run: run for run in runs}.values())
    for run in runs:
        check_removable(run)
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("Nobody can be asked here, and nothing was deleted. Type --yes to delete.")
        for run in runs:
            console.remark(_line(survey(run)))
        if not typer.confirm(f"Delete {'this run' if len(runs) == 1 else f'these {len(runs)} runs'}?"):
            console.remark("Nothing was deleted.")
            return
    for run in runs:
        remove(run)
        console.remark(f"{run}: deleted")


def _line(run: Surveyed) -> str:
    row = run.summary()
    test = "" if row["test"] is None else f", {100 * row['test']:.2f} % on test"
    return f"{row['run']}: {row['attention']} on {row['data']}, seed {row['seed']}{test}"


def _draw(runs: list[Surveyed], folder: Path) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    columns = ("run", "data", "attention", "tokens", "preset", "seed", "valid", "test", "epochs", "s", "when")
    rows = [dict(zip(columns, _row(run, folder), strict=True)) for run in runs]
    alike = {name for name in columns[1:6] if len(rows) > 1 and len({row[name] for row in rows}) == 1}
    alike |= {name for name in columns[6:8] if not any(row[name] for row in rows)}
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for name in columns:
        if name not in alike:
            right = name in ("seed", "valid", "test", "epochs", "s")
            table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(text) for name, text in row.items() if name not in alike))
    console.show(table)
    same = ", ".join(f"{name} {rows[0][name]}" for name in columns[:6] if name in alike)
    console.show(escape(f"{len(runs)} runs below {folder}" + (f"; of all: {same}" if same else "")))


def _row(run: Surveyed, folder: Path) -> tuple[str, ...]:
    row = run.summary()
    inside = run.path.relative_to(folder) if run.path != folder else run.path
    return (
        str(inside),
        Path(row["data"]).name,
        row["attention"],
        row["tokens"],
        row["preset"],
        str(row["seed"]),
        _percent(row["validation"]),
        _percent(row["test"]),
        f"{row['epoch'] or '–'}/{row['epochs']}" if run.finished else "unfinished",
        "" if row["seconds"] is None else f"{row['seconds']:.0f}",
        f"{run.when:%Y-%m-%d %H:%M}",
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _pairs(headings: list[str], rows: list[tuple[str, tuple[Any, ...]]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(escape(heading), overflow="fold", no_wrap=place == 0)
    for name, values in rows:
        table.add_row(name, *(escape(_shown(value)) for value in values))
    console.show(table)


def _shown(value: Any) -> str:
    if value is None or value in ("", [], {}, ()):
        return "–"
    return f"{value:.{_FIGURES}g}" if isinstance(value, float) else str(value)

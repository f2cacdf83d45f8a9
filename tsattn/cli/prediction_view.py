"""A prediction as it is seen: how far it is, what came of it, what of it is odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tsattn.errors import CheckFailed

if TYPE_CHECKING:
    from tsattn.inference.pipeline import PredictSummary


def report(summary: PredictSummary, model: str, files: Sequence[object], output: str, as_json: bool) -> None:
    """What came of it, for a person or a program; leaves with 3 where cases could not be read."""
    from tsattn.cli import console

    _say_what_is_odd(summary)
    if as_json:
        console.show_json(_document(summary, model, files) | {"output": output})
    elif output != "-":
        _draw(summary, output)
    if summary.skipped or summary.marked:
        raise typer.Exit(CheckFailed.exit_code)


def _say_what_is_odd(summary: PredictSummary) -> None:
    """Faulty cases, and those unlike the ones of training, counted, on stderr."""
    from tsattn.cli import console

    if summary.resumed:
        console.remark(f"{summary.resumed:,} of {summary.cases:,} cases were there already.")
    for count, what in (
        (summary.skipped, "left out"),
        (summary.marked, "written with an error and no label"),
    ):
        if count:
            console.remark(
                f"{count:,} of {summary.cases + summary.skipped:,} cases cannot be read and are {what}."
            )
    said = {
        "length": "shorter or longer than any in training",
        "range": "with a value outside of its channel's range in training",
        "missing": "with more missing than any in training",
    }
    counts = [f"{count:,} {said[name]}" for name, count in summary.outside.as_dict().items() if count]
    if counts:
        console.remark(f"Of {summary.cases:,} cases, unlike those of training: {'; '.join(counts)}.")


@contextmanager
def saying_what_is_kept(place: Path | None, resume: bool) -> Iterator[None]:
    """Around a prediction that can be gone on with."""
    from tsattn.cli import console

    try:
        yield
    except KeyboardInterrupt:
        if resume:
            console.remark(f"{place}: what is written is kept. The same command goes on with it.")
        raise


@contextmanager
def counting() -> Iterator[Callable[[int], None] | None]:
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


def _document(summary: PredictSummary, model: str, files: Sequence[object]) -> dict[str, object]:
    return {
        "model": model,
        "files": [str(path) for path in files],
        "cases": summary.cases,
        "skipped": summary.skipped,
        "marked": summary.marked,
        "resumed": summary.resumed,
        "outside": summary.outside.as_dict(),
        "seconds": round(summary.seconds, 3),
        "cases_per_second": round(summary.cases_per_second, 1),
        "provider": summary.provider,
    }


def _draw(summary: PredictSummary, output: str) -> None:
    from rich.table import Table

    from tsattn.cli import console

    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("cases", f"{summary.cases:,}")
    table.add_row("seconds", f"{summary.seconds:.2f}")
    table.add_row("cases/s", f"{summary.cases_per_second:,.0f}")
    table.add_row("provider", summary.provider)
    table.add_row("output", output)
    console.show(table)

"""`tsattn data list`: the named data sets, and which of them are on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsattn.cli.options import AsJson, Registry

if TYPE_CHECKING:
    from tsattn.data.registry import DatasetEntry

_FACTS = ("train", "test", "channels", "length", "classes")
_HERE = {"embedded": "aeon", "cached": "cache"}


def list_sets(
    archive: Annotated[
        str | None,
        typer.Option(
            "--archive",
            metavar="NAME",
            help="Only those of uea, ucr, redux, eeg, rehabpile, monster, multiverse, or own.",
            show_default=False,
        ),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Only those on this machine: embedded, cached, or your own.")
    ] = False,
    registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """List the named data sets with what is known of them and where they are."""
    from tsattn.cli import console
    from tsattn.data.registry import load_registry
    from tsattn.data.selection import of_archive

    console.hear_remarks()
    entries = load_registry(registry)
    chosen = list(entries.values()) if archive is None else of_archive(archive, entries)
    rows = [row for row in map(_row, chosen) if row["here"] or not local]
    if as_json:
        console.show_json(rows)
    else:
        _draw(rows)


def _row(entry: DatasetEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "archive": entry.archive or "own",
        "also": list(entry.also),
        **{fact: getattr(entry, fact) for fact in _FACTS},
        "unequal": entry.unequal,
        "missing": entry.missing,
        "kind": entry.kind,
        "zenodo": entry.zenodo,
        "here": _where(entry),
        "registry": entry.where,
    }


def _where(entry: DatasetEntry) -> str | None:
    """Where the set is on this machine: "embedded", "cached", or the user's file; None if it is not."""
    from tsattn.data.download.store import cached
    from tsattn.data.named import embedded_folder

    if entry.files is not None:
        return str(entry.files.train.path) if entry.files.train.path.exists() else None
    if entry.embedded and embedded_folder(entry.name) is not None:
        return "embedded"
    return "cached" if cached(entry.name) is not None else None


def _draw(rows: list[dict[str, Any]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    # Fits into 80 columns with the longest of the names.
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("name", "archive", "train/test", "series", "classes", "here"):
        right = heading in ("train/test", "series", "classes")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        cases = "/".join(_number(row[split]) for split in ("train", "test")).strip("/")
        series = " × ".join(_number(row[fact], "?") for fact in ("channels", "length"))
        here = "" if row["here"] is None else _HERE.get(row["here"], "own")
        table.add_row(
            escape(row["name"]),
            row["archive"],
            cases,
            series.replace("? × ?", ""),
            _number(row["classes"]),
            here,
        )
    console.show(table)
    local = sum(row["here"] is not None for row in rows)
    console.show(
        f"{len(rows)} data sets, {local} of them on this machine. tsattn data download NAME fetches one."
    )


def _number(fact: int | None, unknown: str = "") -> str:
    return unknown if fact is None else str(fact)

"""`tsattn data download`: named data sets into the cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsattn.cli.options import Registry

if TYPE_CHECKING:
    from tsattn.data.download.fetch import Outcome
    from tsattn.data.registry import DatasetEntry


def download(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names of data sets.", show_default=False),
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option(
            "--archive", metavar="NAME", help="All of uea, ucr or another archive.", show_default=False
        ),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--mirror",
            metavar="URL",
            help="Folder of NAME.zip that is asked first; TSATTN_MIRROR if not given.",
            show_default=False,
        ),
    ] = None,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Open no connection; TSATTN_OFFLINE=1 says it for every command."),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=16, metavar="N", help="Sets at a time.")] = 4,
    registry: Registry = None,
) -> None:
    """Fetch named data sets into the cache, resumed and checked.

    Asked in this order: the mirror, the Zenodo record, the archive's own zip. What is there already is
    checked byte for byte and fetched again only if it was changed.
    """
    from tsattn.cli import console
    from tsattn.cli.fetching import bars
    from tsattn.data.download.fetch import chosen_way, fetch_many
    from tsattn.errors import InputError

    console.hear_remarks()
    way = chosen_way(mirror, offline)
    entries = _chosen(names or [], archive, registry)
    with bars() as watch:
        outcomes = fetch_many(entries, way, jobs, watch, _tell)
    faults = [str(outcome.fault) for outcome in outcomes if outcome.fault is not None]
    if len(faults) == len(outcomes) == 1:
        raise InputError(faults[0])
    if faults:
        raise InputError("\n".join([f"{len(faults)} of {len(outcomes)} data sets are not there:", *faults]))


def _chosen(names: list[str], archive: str | None, registry: Path | None) -> list[DatasetEntry]:
    """The sets to fetch, each once; those that need no fetching are named and left out."""
    from tsattn.cli import console
    from tsattn.data.named import embedded_folder
    from tsattn.data.registry import find_entry, load_registry
    from tsattn.data.selection import of_archive
    from tsattn.errors import InputError

    if bool(names) == (archive is not None):
        raise InputError(
            "Type the names of data sets, or --archive uea or another; not both and not neither."
        )
    found = [find_entry(name, registry) for name in names]
    if archive is not None:
        found = of_archive(archive, load_registry(registry))
    entries = []
    for entry in dict.fromkeys(found):
        if entry.files is not None:
            console.remark(f"{entry.name}: your own files, nothing to fetch ({entry.where}).")
        elif embedded_folder(entry.name) is not None:
            console.remark(f"{entry.name}: embedded in aeon, nothing to fetch.")
        else:
            entries.append(entry)
    return entries


def _tell(outcome: Outcome) -> None:
    from rich.markup import escape

    from tsattn.cli import console

    if outcome.cached is None:
        return
    found = outcome.cached
    how = f"fetched from {found.origin}" if outcome.fresh else "there already, whole"
    console.show(escape(f"{found.name}: {found.size / 1e6:.1f} MB in {found.folder}, {how}"))

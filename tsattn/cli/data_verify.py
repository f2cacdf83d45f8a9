"""`tsattn data verify`: what the cache holds against what was fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsattn.cli.options import Registry


def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Names of data sets; all that are cached if none.", show_default=False
        ),
    ] = None,
    registry: Registry = None,
) -> None:
    """Check cached data sets: sizes, checksums, and what the registry knows of them.

    Leaves with 3 if one is not as it was fetched, and says how to mend it. Opens no connection.
    """
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.data.download.check import check_cached
    from tsattn.data.download.store import cached_names
    from tsattn.data.home import home
    from tsattn.errors import CheckFailed

    console.hear_remarks()
    wanted = _wanted(names, registry) if names else cached_names()
    if not wanted:
        console.show(escape(f"Nothing is cached in {home()}."))
    faults = []
    for name in wanted:
        with console.working(f"checking {name}"):
            fault = check_cached(name, registry)
        if fault is None:
            console.show(escape(f"{name}: whole"))
        else:
            faults.append(fault)
    if faults:
        raise CheckFailed("\n".join(faults))


def _wanted(names: list[str], registry: Path | None) -> list[str]:
    """The names as the registry spells them; a cached folder need not be in the registry."""
    from tsattn.data.download.store import cached_names
    from tsattn.data.registry import find_entry

    here = cached_names()
    return [name if name in here else find_entry(name, registry).name for name in names]

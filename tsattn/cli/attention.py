"""`tsattn attention`: what a spec can be made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tsattn.cli.options import AsJson

if TYPE_CHECKING:
    from tsattn.models.attention.registry import Part

app = typer.Typer(no_args_is_help=True)


@app.callback()
def attention() -> None:
    """What an attention spec can be made of."""


@app.command("list")
def list_parts(as_json: AsJson = False) -> None:
    """List cores and wrappers. A spec joins them with '+', innermost first: bn+sh, linear+bn."""
    from tsattn.cli import console
    from tsattn.models.attention import parts

    if as_json:
        console.show_json([_row(part) for part in parts()])
        return

    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for heading in ("spec", "kind", "what it does", "cost in N", "source"):
        table.add_column(heading, no_wrap=heading in ("spec", "kind"))
    for part in parts():
        row = _row(part)
        table.add_row(*(escape(row[key]) for key in ("spec", "kind", "summary", "cost", "source")))
    console.show(table)
    console.show("Join one core and any wrappers with '+', innermost first; without a core it is softmax.")
    console.show("Examples: softmax  linear+bn  bn+sh  local:32+bn+sh:1,1,2,4")


def _row(part: Part) -> dict[str, str]:
    spec = part.name + (f"[:{part.option}]" if part.option else "")
    return {
        "spec": spec,
        "kind": part.kind,
        "summary": part.summary,
        "cost": part.cost,
        "source": part.source,
    }

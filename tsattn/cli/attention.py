"""`tsattn attention`: what a spec can be made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsattn.cli.attention_check import check
from tsattn.cli.attention_weights import weights
from tsattn.cli.options import AsJson

if TYPE_CHECKING:
    from tsattn.models.attention.registry import Part

app = typer.Typer(no_args_is_help=True)
app.command("check")(check)
app.command("weights")(weights)


@app.callback()
def attention() -> None:
    """What an attention spec can be made of."""


@app.command("list")
def list_parts(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE.py]...", help="List what these files register too.", show_default=False
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    as_json: AsJson = False,
) -> None:
    """List cores and wrappers. A spec joins them with '+', innermost first: bn+sh, linear+bn."""
    from tsattn.cli import console
    from tsattn.models.attention import parts
    from tsattn.models.attention.foreign import load_file
    from tsattn.models.attention.installed import load_installed

    console.hear_remarks()
    load_installed()
    for file in files or ():
        load_file(file)
    if as_json:
        console.show_json([_row(part) for part in (*parts("core"), *parts("wrapper"))])
        return
    if markdown:
        console.show_text(markdown_table())
        return

    from rich.markup import escape
    from rich.table import Table

    headings = {
        "spec": "spec",
        "kind": "kind",
        "summary": "what it does",
        "cost": "cost in N",
        "source": "source",
    }
    if any(part.origin for part in parts()):
        headings["origin"] = "from"
    table = Table()
    for key, heading in headings.items():
        table.add_column(heading, no_wrap=key in ("spec", "kind"))
    for part in (*parts("core"), *parts("wrapper")):
        row = _row(part)
        table.add_row(*(escape(row[key]) for key in headings))
    console.show(table)
    console.show("Join one core and any wrappers with '+', innermost first; without a core it is softmax.")
    console.show("Examples: softmax  linear+bn  bn+sh  local:32+bn+sh:1,1,2,4")


@app.command("show")
def show_spec(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="E.g. bn+sh.", show_default=False)],
    width: Annotated[int, typer.Option("--width", min=1, help="Of a token, for the parameters.")] = 96,
    heads: Annotated[int, typer.Option("--heads", min=1, help="Of the attention.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Show what a spec is the dual of, what it costs, and where it comes from."""
    from tsattn.cli import console
    from tsattn.errors import InputError
    from tsattn.models.attention.foreign import resolve

    console.hear_remarks()
    if width % heads:
        raise InputError(f"width {width} cannot be divided among {heads} heads.")
    document = _stated(resolve(spec), width, heads)
    if as_json:
        console.show_json(document)
        return

    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in document.items():
        table.add_row(name, escape(words))
    console.show(table)


def _stated(spec: str, width: int, heads: int) -> dict[str, str]:
    from tsattn.errors import InputError
    from tsattn.models.attention import Heads, build, parse
    from tsattn.models.attention.theory import regression

    parsed = parse(spec)
    mechanism = build(spec, Heads(heads, width // heads))
    try:
        stated = regression(parsed).statement
        primal = {
            "primal": "f(x) = W Φ(x) / h(x) + b, fitted by support vector regression",
            "features": stated.product,
            "normaliser": stated.normaliser,
            "fitted on": stated.points,
            "a point first": "; then ".join(stated.first) or "as it is",
            "dual": stated.dual,
        }
    except InputError as error:
        primal = {"primal": str(error)}
    return {
        "spec": str(parsed),
        **primal,
        "cost in N": "; ".join(f"{part.name}: {part.cost}" for part, _ in parsed.parts),
        "parameters": f"{sum(p.numel() for p in mechanism.parameters()):,} beside the projections",
        "source": "; ".join(dict.fromkeys(part.source for part, _ in parsed.parts)),
    }


def markdown_table() -> str:
    """The registry as the documents show it: what tsattn brings."""
    from tsattn.models.attention import parts

    lines = ["| spec | kind | what it does | cost in N | source |", "|---|---|---|---|---|"]
    for part in (*parts("core"), *parts("wrapper")):
        if part.origin is not None:
            continue
        row = _row(part)
        spec = row["spec"].replace("|", "\\|")
        lines.append(f"| `{spec}` | {row['kind']} | {row['summary']} | {row['cost']} | {row['source']} |")
    return "\n".join(lines)


def _row(part: Part) -> dict[str, str]:
    spec = part.name + (f"[:{part.option}]" if part.option else "")
    return {
        "spec": spec,
        "kind": part.kind,
        "summary": part.summary,
        "cost": part.cost,
        "source": part.source,
        "origin": "" if part.origin is None else str(part.origin),
    }

"""`tsattn preset`: named recipes, and what is in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsattn.cli.options import AsJson

if TYPE_CHECKING:
    from tsattn.presets.reading import Preset

app = typer.Typer(no_args_is_help=True)


@app.callback()
def preset() -> None:
    """Named recipes, and what is in one."""


@app.command("list")
def list_presets(as_json: AsJson = False) -> None:
    """List the recipes that `tsattn train --preset` knows by name."""
    from tsattn.cli import console
    from tsattn.presets.reading import load_preset, preset_names

    presets = [load_preset(name) for name in preset_names()]
    if as_json:
        console.show_json([_document(preset) for preset in presets])
        return

    from rich.markup import escape
    from rich.table import Table

    table = Table()
    table.add_column("preset", no_wrap=True)
    table.add_column("what it is")
    table.add_column("what it sets")
    for one in presets:
        settings = ", ".join(f"{key} {value}" for key, value in one.values.items())
        table.add_row(escape(one.name), escape(one.summary), escape(settings))
    console.show(table)
    console.show("`tsattn preset show base > my.yaml` begins one of your own, for --preset my.yaml.")


@app.command("show")
def show_preset(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A preset, or a YAML file.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Show the YAML of a recipe, checked as `tsattn train` would; --json also has what it begins with."""
    from tsattn.cli import console
    from tsattn.presets.reading import parse_preset, preset_text

    text = preset_text(name)
    checked = parse_preset(name, text)
    if as_json:
        console.show_json(_document(checked))
    else:
        console.show_text(text.rstrip("\n"))


def _document(preset: Preset) -> dict[str, Any]:
    return {
        "name": preset.name,
        "summary": preset.summary,
        "model": preset.model,
        "training": preset.training,
        "rules": preset.rules,
        "ensemble": preset.ensemble,
    }

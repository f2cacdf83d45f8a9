"""The help of a group, drawn in the manner of typer's own and in a third of its time.

typer draws help with modules that also import a Markdown parser and a syntax highlighter. A command's
help can bear that; the overview is what a user types first, and it has a limit (benchmarks/start.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table

from tsattn.cli import console

Rows = Iterable[tuple[str, str]]


def show_overview(usage: str, text: str, options: Rows, commands: Rows) -> None:
    """Usage, one sentence, and a panel of options and one of commands, as (spelling, explanation)."""
    console.show(Padding(f"[bold yellow]Usage:[/] [bold]{escape(usage)}[/]", 1))
    console.show(Padding(escape(text), (0, 1, 1, 1)))
    console.show(_panel("Options", options))
    console.show(_panel("Commands", commands))


def _panel(title: str, rows: Rows) -> Panel:
    table = Table(show_header=False, box=None, expand=True, padding=(0, 2, 0, 0))
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(ratio=1)
    for spelling, explanation in rows:
        table.add_row(escape(spelling), escape(explanation))
    return Panel(table, title=title, title_align="left", border_style="dim")

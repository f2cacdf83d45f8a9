"""A comparison in the terminal; a table that is too wide goes on below itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tsattn.cli import console

if TYPE_CHECKING:
    from tsattn.sweeps.comparison import Comparison
    from tsattn.sweeps.sheets import Item, Sheet

FRAME = 3
"""What rich puts around a column: its padding and a line."""
BLANK = "\N{NO-BREAK SPACE}"
HEADING = 14
"""Cells to which a heading of several words may fold."""


def show_comparison(comparison: Comparison) -> None:
    """Tables to stdout, then what the statistics allow to say, then notes."""
    from tsattn.sweeps.sheets import sheets

    first, *others = sheets(comparison)
    for table in _tables(first, console.out.width):
        console.show(table)
    for sentence in (*comparison.says, *comparison.notes):
        console.show(Text(sentence + "\n"))
    for sheet in others:
        for table in _tables(sheet, console.out.width):
            console.show(table)


def _tables(sheet: Sheet, width: int) -> Iterator[Table]:
    if not console.out.is_terminal and any(item.bold for row in sheet.rows for item in row):
        sheet = _starred(sheet)
    blocks = [list(range(sheet.words, len(sheet.header)))] if sheet.words > 1 else _blocks(sheet, width)
    for number, places in enumerate(blocks):
        more = f" ({number + 1} of {len(blocks)})" if len(blocks) > 1 else ""
        yield _table(sheet, [*range(sheet.words), *places], sheet.title + more)


def _starred(sheet: Sheet) -> Sheet:
    """With stars for what is bold, where nothing can be bold."""
    rows = [
        (*row[: sheet.words], *(replace(one, text=one.text + ("*" if one.bold else BLANK)) for one in rest))
        for row in sheet.rows
        for rest in [row[sheet.words :]]
    ]
    return replace(sheet, rows=tuple(rows))


def _blocks(sheet: Sheet, width: int) -> list[list[int]]:
    """Columns of numbers in groups that fit the width beside the first column: few, and alike in size."""
    widths = [_width(sheet, place) for place in range(len(sheet.header))]
    places = range(1, len(widths))
    for size in range(len(places), 1, -1):
        count = math.ceil(len(places) / size)
        even = math.ceil(len(places) / count)
        blocks = [list(places[start : start + even]) for start in range(0, len(places), even)]
        if all(widths[0] + 1 + sum(widths[one] for one in block) <= width for block in blocks):
            return blocks
    return [[place] for place in places]


def _width(sheet: Sheet, place: int) -> int:
    words = max(sheet.header[place].split(), key=cell_len)
    heading = max(cell_len(words), min(cell_len(sheet.header[place]), HEADING))
    return max(heading, *(cell_len(row[place].text) for row in sheet.rows)) + FRAME


def _table(sheet: Sheet, places: list[int], title: str) -> Table:
    table = Table(title=escape(title), title_justify="left")
    for place in places:
        right = place >= sheet.words
        table.add_column(
            escape(sheet.header[place]),
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=sheet.words == 1 and place == 0,
            min_width=_width(sheet, place) - FRAME if right else None,
        )
    for number, row in enumerate(sheet.rows):
        if sheet.footed and number == len(sheet.rows) - sheet.footed:
            table.add_section()
        table.add_row(*(_item(row[place]) for place in places))
    return table


def _item(item: Item) -> str:
    return f"[bold]{escape(item.text)}[/]" if item.bold else escape(item.text)

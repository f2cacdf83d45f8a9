"""A comparison as GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tsattn.sweeps.comparison import Comparison
from tsattn.sweeps.sheets import Item, Sheet, sheets

SPECIAL = re.compile(r"([\\`*_|<\[\]])")


def markdown(one: Comparison) -> str:
    """Tables, then what the statistics allow to say, then notes."""
    first, *others = ["\n".join(_table(sheet)) for sheet in sheets(one)]
    parts = [first, *map(_escaped, (*one.says, *one.notes)), *others]
    return "\n\n".join(parts) + "\n"


def _table(sheet: Sheet) -> Iterator[str]:
    yield f"**{_escaped(sheet.title)}**"
    yield ""
    yield _row([_escaped(name) for name in sheet.header])
    yield "|" + "---|" * sheet.words + "---:|" * (len(sheet.header) - sheet.words)
    for row in sheet.rows:
        yield _row([_item(item) for item in row])


def _row(fields: list[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _item(item: Item) -> str:
    return f"**{_escaped(item.text)}**" if item.bold else _escaped(item.text)


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)

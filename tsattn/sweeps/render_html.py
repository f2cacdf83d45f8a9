"""A comparison as one HTML file that needs nothing else: tables, sentences, and plots as pictures inside."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from html import escape

from tsattn.sweeps.comparison import TITLES, Comparison
from tsattn.sweeps.plots import Picture
from tsattn.sweeps.sheets import Item, Sheet, sheets

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1a1a1a; background: #fff;
       margin: 2rem auto; padding: 0 1.5rem; max-width: 80rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h3 { font-size: 1rem; margin: 0 0 .5rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; border-top: 2px solid #333;
        border-bottom: 2px solid #333; }
th, td { padding: .25rem .7rem; text-align: right; white-space: nowrap; vertical-align: top; }
th { vertical-align: bottom; border-bottom: 1px solid #333; white-space: normal; }
th.word, td.word { text-align: left; } td.long { white-space: normal; min-width: 16rem; }
tbody tr:nth-child(even) { background: #f5f6f8; } tr.first td { border-top: 1px solid #333; }
td.best { font-weight: 700; }
th:first-child, td:first-child { position: sticky; left: 0; background: #fff; }
tbody tr:nth-child(even) td:first-child { background: #f5f6f8; }
p { max-width: 60rem; margin: .5rem 0; }
figure { margin: 1rem 0 2rem; } figure img { max-width: 100%; height: auto; }
figcaption { color: #444; max-width: 60rem; }
"""


def html(one: Comparison, pictures: Sequence[Picture]) -> str:
    """One page. Each picture is an image of its own, so that names within one cannot meet another's."""
    return "\n".join(_page(one, pictures)) + "\n"


def _page(one: Comparison, pictures: Sequence[Picture]) -> Iterator[str]:
    name = f"{TITLES[one.metric]} of {len(one.methods)} methods on {len(one.data)} data sets"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(name)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(name)}</h1>"
    first, *others = sheets(one)
    yield from _table(first)
    yield "<h2>What this allows to say</h2>"
    yield from (f"<p>{escape(sentence)}</p>" for sentence in one.says)
    yield from (f"<p>{escape(sentence)}</p>" for sentence in one.notes)
    for sheet in others:
        yield from _table(sheet)
    if pictures:
        yield "<h2>Plots</h2>"
    for picture in pictures:
        coded = base64.b64encode(picture.svg).decode("ascii")
        yield f"<figure><h3>{escape(picture.title)}</h3>"
        yield f'<img alt="{escape(picture.title)}" src="data:image/svg+xml;base64,{coded}">'
        yield f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    yield "</body>\n</html>"


def _table(sheet: Sheet) -> Iterator[str]:
    yield f'<h2>{escape(sheet.title)}</h2>\n<div class="scroll"><table>\n<thead><tr>'
    for place, name in enumerate(sheet.header):
        yield f'<th scope="col"{_class(sheet, place)}>{escape(name)}</th>'
    yield "</tr></thead>\n<tbody>"
    for number, row in enumerate(sheet.rows):
        first = ' class="first"' if sheet.footed and number == len(sheet.rows) - sheet.footed else ""
        fields = "".join(_field(sheet, place, item) for place, item in enumerate(row))
        yield f"<tr{first}>{fields}</tr>"
    yield "</tbody></table></div>"


def _field(sheet: Sheet, place: int, item: Item) -> str:
    return f"<td{_class(sheet, place, item)}>{escape(item.text)}</td>"


def _class(sheet: Sheet, place: int, item: Item | None = None) -> str:
    words = ["word"] if place < sheet.words else []
    if item is not None:
        words += ["best"] if item.bold else []
        words += ["long"] if sheet.words > 1 and len(item.text) > 30 else []
    return f' class="{" ".join(words)}"' if words else ""

r"""A comparison as LaTeX: one table environment a sheet, to be \input; it needs the package booktabs."""

from __future__ import annotations

from collections.abc import Iterator

from tsattn.sweeps.comparison import Comparison
from tsattn.sweeps.sheets import Item, Sheet, sheets

LETTERS = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "×": r"$\times$",
}
NARROW = "p{0.3\\linewidth}"
"""Of a column whose words may be long."""


def latex(one: Comparison) -> str:
    """Tables with booktabs' rules; what the statistics allow to say and notes stand below them."""
    parts = [
        "% Made by tsattn compare. Needs \\usepackage{booktabs}; wide tables may want \\resizebox.",
        *("\n".join(_table(sheet)) for sheet in sheets(one)),
        "\n\n".join(_escaped(sentence) for sentence in (*one.says, *one.notes)),
    ]
    return "\n\n".join(parts) + "\n"


def _table(sheet: Sheet) -> Iterator[str]:
    yield r"\begin{table}[htbp]"
    yield r"  \centering"
    yield f"  \\caption{{{_escaped(sheet.title)}}}"
    yield f"  \\begin{{tabular}}{{{_columns(sheet)}}}"
    yield r"    \toprule"
    yield _row([_escaped(name) for name in sheet.header])
    yield r"    \midrule"
    for place, row in enumerate(sheet.rows):
        if sheet.footed and place == len(sheet.rows) - sheet.footed:
            yield r"    \midrule"
        yield _row([_item(item) for item in row])
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    yield r"\end{table}"


def _columns(sheet: Sheet) -> str:
    words = ["l"] * sheet.words
    if sheet.words > 1:
        words[-2:] = [NARROW if sheet.header[-2] == "protocol" else "r", NARROW]
    return "".join(words) + "r" * (len(sheet.header) - sheet.words)


def _row(fields: list[str]) -> str:
    return f"    {' & '.join(fields)} \\\\"


def _item(item: Item) -> str:
    return f"\\textbf{{{_escaped(item.text)}}}" if item.bold else _escaped(item.text)


def _escaped(text: str) -> str:
    return "".join(LETTERS.get(letter, letter) for letter in text)

"""Which columns of a table may be id, time and label, told from its first rows.

    id     stands in blocks of neighbouring rows, and no value comes back after another
    time   rises strictly within every block
    label  text or whole numbers, few distinct; in the long layout the same within a block, in the wide
           one text, the first or last column, or any beside columns CHANNEL_TIMEPOINT

A column whose name says its role has it, as everywhere. Not covered: what shows only in later rows.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tsattn.data.columns import TableOptions
from tsattn.data.csvdialect import is_missing
from tsattn.data.rolenames import ID_NAMES, LABEL_NAMES, TIME_NAMES
from tsattn.data.rows import TableHead

WHOLE = re.compile(r"[+-]?\d{1,12}")

_MOST_CLASSES = 60
_MOST_IDS = 4
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*")
_NUMBERED = re.compile(r"(.+)_\d{1,9}")

Blocks = list[tuple[int, int]]


@dataclass(frozen=True)
class _Table:
    """The sample: cells (by column, as text), names of columns of text, of columns CHANNEL_TIMEPOINT."""

    cells: dict[str, list[str]]
    text: frozenset[str]
    numbered: frozenset[str]

    def called(self, words: tuple[str, ...]) -> list[str]:
        """Columns whose name is one of `words`."""
        return [name for name in self.cells if name.lower() in words]


def candidates(head: TableHead, options: TableOptions) -> Iterator[TableOptions]:
    """Readings of the table that agree with what was typed, the likeliest first; each is to be tried.

    A column typed as group is in none of them, and is left to the caller.
    """
    cells = {name: head.sample(name) for name in head.names if name and name != options.group}
    table = _Table(cells, head.text_columns, _numbered(cells))
    long: list[TableOptions] = []
    if options.layout == "long" or not table.numbered or options.time or table.called(TIME_NAMES):
        long = list(_long(table, options)) if options.layout != "wide" else []
    yield from long
    # With times that are sure, or times and labels that fit, it would be odd for a row to be a case.
    sure = {*table.called(TIME_NAMES), *table.text}
    timed = any(c.time is not None and (c.label is not None or c.time in sure) for c in long)
    if options.layout != "long" and options.time is None and not timed:
        yield from _wide(table, options)


def _long(table: _Table, options: TableOptions) -> Iterator[TableOptions]:
    for case in _ids(table, options):
        blocks = _blocks(table.cells[case])
        rising = [name for name, cells in table.cells.items() if name != case and _rises(cells, blocks)]
        named = table.called(TIME_NAMES)
        # A number that rises may be a time or a channel, a date can only be a time.
        sure = [name for name in rising if name in table.text]
        times: list[str | None] = [options.time]
        if options.time is None:
            times = [*(named[:1] or sure[:1])] or [*rising[:1], None]
        for time in times:
            for label in _labels_of_long(table, options, blocks, {case, time, *rising}):
                yield TableOptions(layout="long", id=case, time=time, label=label)


def _ids(table: _Table, options: TableOptions) -> list[str]:
    if options.id is not None:
        return [options.id] if options.id in table.cells else []
    taken = {options.time, options.label}
    named = [name for name in table.called(ID_NAMES) if name not in taken and _repeats(table.cells[name])]
    if named:
        return named
    return [
        name
        for name, cells in table.cells.items()
        if name not in taken and name.lower() not in LABEL_NAMES + TIME_NAMES and _stands_in_blocks(cells)
    ][:_MOST_IDS]


def _labels_of_long(
    table: _Table, options: TableOptions, blocks: Blocks, taken: set[str | None]
) -> list[str | None]:
    if options.label is not None:
        return [options.label]
    if named := [name for name in table.called(LABEL_NAMES) if name not in taken]:
        return [*named]
    fit = (name for name, cells in table.cells.items() if name not in taken and _constant(cells, blocks))
    return [*(name for name in fit if _few(table.cells[name], len(blocks))), None]


def _wide(table: _Table, options: TableOptions) -> Iterator[TableOptions]:
    cases = [options.id] if options.id else table.called(ID_NAMES)
    case = next((name for name in cases if name in table.cells), None)
    if case is not None and options.layout is None and not table.numbered and _repeats(table.cells[case]):
        return
    free = [name for name in table.cells if name != case and name not in table.numbered]
    labels: list[str | None] = [options.label]
    if options.label is None and not (labels := [*table.called(LABEL_NAMES)]):
        likely = (
            free if table.numbered else [name for name in free if name in table.text or name in _ends(free)]
        )
        likely = [name for name in likely if _few(table.cells[name], len(table.cells[name]) // 2, least=2)]
        labels = [*sorted(likely, key=lambda name: name not in table.text), None]
    for label in labels:
        yield TableOptions(layout="wide", id=options.id, label=label)


def _ends(names: list[str]) -> set[str]:
    return {names[0], names[-1]} if names else set()


def _numbered(cells: dict[str, list[str]]) -> frozenset[str]:
    """Columns CHANNEL_TIMEPOINT, where a channel has at least two."""
    channels = {name: match[1] for name in cells if (match := _NUMBERED.fullmatch(name))}
    count = Counter(channels.values())
    return frozenset(name for name, channel in channels.items() if count[channel] > 1)


def _blocks(cells: list[str]) -> Blocks:
    """(first, one past the last) row of every run of the same cell."""
    starts = [i for i, cell in enumerate(cells) if i == 0 or cell != cells[i - 1]]
    return list(itertools.pairwise([*starts, len(cells)]))


def _repeats(cells: list[str]) -> bool:
    return len(set(cells)) < len(cells)


def _stands_in_blocks(cells: list[str]) -> bool:
    blocks = _blocks(cells)
    distinct = set(cells)
    named = not any(map(is_missing, distinct)) and _words_or_whole(distinct)
    return named and len(blocks) == len(distinct) and 2 * len(blocks) <= len(cells)


def _few(cells: list[str], most: int, least: int = 1) -> bool:
    """Whether a column has few distinct values, all of them words or all of them whole numbers."""
    distinct = {cell for cell in cells if not is_missing(cell)}
    if distinct and not any(map(WHOLE.fullmatch, distinct)):
        distinct |= {cell for cell in cells if cell.lower() == "none"}  # beside words it is one of them
    return least <= len(distinct) <= min(max(most, 2), _MOST_CLASSES) and _words_or_whole(distinct)


def _words_or_whole(distinct: set[str]) -> bool:
    whole = [WHOLE.fullmatch(cell.strip()) is not None for cell in distinct]
    return all(whole) or not any(
        whole or _number(cell) is not None for whole, cell in zip(whole, distinct, strict=True)
    )


def _constant(cells: list[str], blocks: Blocks) -> bool:
    return all(len(set(cells[start:stop])) == 1 for start, stop in blocks)


def _rises(cells: list[str], blocks: Blocks) -> bool:
    """Whether the cells are dates or numbers that grow strictly within each block."""
    times: list[str] | list[float | None]
    times = cells if all(map(_DATE.fullmatch, cells)) else [_number(cell) for cell in cells]
    if None in times:
        return False
    return all(a < b for start, stop in blocks for a, b in itertools.pairwise(times[start:stop]))  # type: ignore[operator]


def _number(cell: str) -> float | None:
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return None

"""`tsattn data inspect`: what a file is, and the command that trains on it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsattn.cli.options import (
    AsJson,
    GroupColumn,
    IdColumn,
    LabelColumn,
    LabelPattern,
    LabelsFile,
    Layout,
    Registry,
    TimeColumn,
)

if TYPE_CHECKING:
    from tsattn.data.inspection import Inspection, Reading

_CHANNELS = 12
_SHARED = 5
_NAME_WIDTH = 24
_WIDTH = 80


def inspect(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Files; also folders, zips and names of data sets.", show_default=False
        ),
    ],
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    group_column: GroupColumn = None,
    labels_file: LabelsFile = None,
    label_pattern: LabelPattern = None,
    registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """What a file is, and the command that trains on it.

    Where the columns can be understood in more than one way, every way is shown with its command. Several
    files are also searched for cases that stand in two of them.
    """
    from tsattn.cli import console
    from tsattn.cli.fetching import fetch_visibly
    from tsattn.data.columns import TableOptions
    from tsattn.data.inspection import inspect as look

    console.hear_remarks()
    options = TableOptions(
        layout=layout,
        id=id_column,
        time=time_column,
        label=label_column,
        group=group_column,
        labels=None if labels_file is None else str(labels_file),
        label_pattern=label_pattern,
    )
    seen = []
    for file in files:
        fetch_visibly(file, registry)
        with console.working(f"reading {file}"):
            seen.append(look(file, options, registry))
    shared = _shared(seen)
    if as_json:
        console.show_json({"files": [_document(each) for each in seen], "cases_in_both": shared})
        return
    for each in seen:
        _show(each)
    for pair in shared:
        _show_shared(len(pair["cases"]), pair["cases"], f"{pair['files'][0]} and {pair['files'][1]}")


def _show(seen: Inspection) -> None:
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.cli.facts import class_table, facts_table

    first = seen.readings[0]
    console.show(f"[bold]{escape(seen.source)}[/]")
    if len(seen.readings) > 1:
        _show_choice(seen)
    else:
        console.show(escape(_roles(first)))
    for remark in first.remarks:
        console.remark(remark)
    parts = {str(seen.part): first.facts} | ({"test": seen.test} if seen.test is not None else {})
    console.show(facts_table(parts, None if seen.shared is None else len(seen.shared)))
    _show_sampling(first)
    if (classes := class_table(parts)) is not None:
        console.show(classes)
    _show_channels(seen)
    if seen.shared is not None:
        _show_shared(len(seen.shared), seen.shared, "train and test")
    if len(seen.readings) == 1:
        console.show(escape(_what_to_type(first)))


def _show_choice(seen: Inspection) -> None:
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.cli.facts import counted, lengths_in_words

    console.show(f"It can be understood in {len(seen.readings)} ways; the figures below are of the first.")
    for number, reading in enumerate(seen.readings, start=1):
        facts = reading.facts
        classes = "" if facts.classes is None else f", {len(facts.classes)} classes"
        console.show(f"{number}. {escape(_roles(reading))}")
        console.show(
            f"   {counted(facts.cases, 'case')}, {counted(len(facts.channels), 'channel')}, "
            f"lengths {lengths_in_words(facts)}{classes}"
        )
        console.show(f"   {escape(_what_to_type(reading))}")


def _show_sampling(reading: Reading) -> None:
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.cli.facts import sampling_in_words

    if reading.sampling is not None and reading.roles is not None:
        console.show(f"time {escape(repr(reading.roles['time']))}: {sampling_in_words(reading.sampling)}")


def _show_channels(seen: Inspection) -> None:
    """A line a channel: its name and the series of one case."""
    from rich.markup import escape
    from rich.text import Text

    from tsattn.cli import console
    from tsattn.cli.sparkline import sparkline

    collection = seen.loaded.collection
    lengths = collection.lengths
    case = int((lengths > 0).argmax())
    names = [
        name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…" for name in collection.channels
    ]
    names = [name.replace("\n", " ").replace("\r", " ") for name in names[:_CHANNELS]]
    width = max(map(len, names))
    label = "" if collection.labels is None else f", class {collection.labels[case]!r}"
    console.show(f"case {escape(repr(collection.ids[case]) + label)}")
    for name, series in zip(names, collection.values[case], strict=False):
        line = sparkline(series[: max(int(lengths[case]), 1)], _WIDTH - width - 2)
        console.out.print(Text(f"{name:<{width}}  {line}"), soft_wrap=True)
    if len(collection.channels) > _CHANNELS:
        console.show(f"… and {len(collection.channels) - _CHANNELS:,} more channels")


def _show_shared(count: int, cases: Any, where: str) -> None:
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.cli.facts import counted

    if not count:
        return
    shown = ", ".join(one if one == other else f"{one} = {other}" for one, other in cases[:_SHARED])
    more = ", …" if count > _SHARED else ""
    console.show(f"[bold red]in both {escape(where)}: {counted(count, 'case')}:[/] {escape(shown)}{more}")


def _roles(reading: Reading) -> str:
    """The columns of a table in words, and what says the labels of files; a file of series has none."""
    roles = reading.roles or {}
    labels = ""
    if "labels" in roles:
        labels = f"labels from {roles['labels']}"
    elif "label_pattern" in roles:
        labels = f"labels from the files' names by {roles['label_pattern']!r}"
    if "layout" not in roles:
        return f"{f'series; {labels}' if labels else 'series with their labels'}; no columns to choose"
    if roles["layout"] == "file":
        return "; ".join(filter(None, ("files of one case each, a row a timepoint", labels)))
    words = [f"{roles['layout']} table, a row a {'timepoint' if roles['layout'] == 'long' else 'case'}"]
    columns = ("id", "time", "group") if labels else ("id", "time", "label", "group")
    words += [f"{role} {roles[role]!r}" for role in columns if role in roles]
    if roles["layout"] == "long" and "time" not in roles:
        words.append("timepoints in the order of the file")
    if not labels and "label" not in roles:
        labels = "no label" if reading.facts.classes is None else "labels from the sub-folders"
    return "; ".join(filter(None, (*words, labels)))


def _what_to_type(reading: Reading) -> str:
    return reading.command if reading.command is not None else f"({reading.obstacle})"


def _shared(seen: list[Inspection]) -> list[dict[str, Any]]:
    """Cases that stand in two of the files."""
    from tsattn.data.inspection import shared_between

    found = []
    for one, other in itertools.combinations(seen, 2):
        pairs = shared_between(one, other)
        if pairs:
            found.append({"files": [one.source, other.source], "cases": [list(pair) for pair in pairs]})
    return found


def _document(seen: Inspection) -> dict[str, Any]:
    from tsattn.cli.facts import facts_document

    return {
        "source": seen.source,
        "part": seen.part,
        "readings": [
            {
                "roles": reading.roles,
                "command": reading.command,
                "obstacle": reading.obstacle,
                "sampling": None if reading.sampling is None else vars(reading.sampling),
                "remarks": list(reading.remarks),
                **facts_document(reading.facts),
            }
            for reading in seen.readings
        ],
        "test": None if seen.test is None else facts_document(seen.test),
        "cases_in_both": None if seen.shared is None else [list(pair) for pair in seen.shared],
    }

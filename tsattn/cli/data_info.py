"""`tsattn data info`: the figures of a data set or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsattn.cli.options import (
    AsJson,
    IdColumn,
    LabelColumn,
    LabelPattern,
    LabelsFile,
    Layout,
    Registry,
    TimeColumn,
)

if TYPE_CHECKING:
    from tsattn.data.parts import Part
    from tsattn.data.registry import DatasetEntry
    from tsattn.data.sources import LoadedSplit
    from tsattn.data.whereabouts import Place


def info(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME_OR_FILE", help="Name of a data set, folder, zip or file.", show_default=False
        ),
    ],
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    labels_file: LabelsFile = None,
    label_pattern: LabelPattern = None,
    registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """The figures of a data set or a file.

    Cases, channels, lengths, what is missing, classes, where it lies, whom to cite. Nothing is downloaded.
    """
    from tsattn.cli import console
    from tsattn.data.cache import only_looking
    from tsattn.data.columns import TableOptions
    from tsattn.data.parts import load_parts
    from tsattn.data.whereabouts import locate

    console.hear_remarks()
    place = locate(source, registry)
    document = {"name": place.name, **_archive(place), **_where(place)}
    if place.path is None:
        assert place.entry is not None
        _show_absent(place.entry, document, as_json)
        return
    options = TableOptions(
        layout=layout,
        id=id_column,
        time=time_column,
        label=label_column,
        labels=None if labels_file is None else str(labels_file),
        label_pattern=label_pattern,
    )
    with console.working(f"reading {source}"), only_looking():
        loaded = load_parts(source, options, registry)
    _show_present(loaded, document, as_json)


def _show_present(loaded: dict[Part, LoadedSplit], document: dict[str, Any], as_json: bool) -> None:
    from tsattn.cli import console
    from tsattn.cli.facts import class_table, facts_document, facts_table
    from tsattn.data.describe import describe, shared_cases

    facts = {str(part): describe(split.collection) for part, split in loaded.items()}
    leaks = None
    if "train" in loaded and "test" in loaded:
        leaks = len(shared_cases(loaded["train"].collection, loaded["test"].collection))
    if as_json:
        parts = {part: facts_document(each) for part, each in facts.items()}
        console.show_json({**document, "parts": parts, "cases_in_both": leaks})
        return
    _show_heading(document)
    console.show(facts_table(facts, leaks))
    if (classes := class_table(facts)) is not None:
        console.show(classes)


def _show_absent(entry: DatasetEntry, document: dict[str, Any], as_json: bool) -> None:
    from tsattn.cli import console

    names = ("train", "test", "channels", "length", "classes")
    known = {name: value for name in names if (value := getattr(entry, name)) is not None}
    if as_json:
        console.show_json({**document, "registry": known})
        return
    _show_heading(document)
    console.show("By the registry: " + ", ".join(f"{name} {value}" for name, value in known.items()))
    console.show(f"Not on this machine. To have it: tsattn data download {entry.name}")


def _show_heading(document: dict[str, Any]) -> None:
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.cli.facts import size_in_words

    console.show(f"[bold]{escape(document['name'])}[/]")
    for key in ("archive", "kind", "record", "licence", "citation"):
        if document.get(key):
            console.show(f"{key:<9} {escape(document[key])}")
    if document["place"] is not None:
        console.show(f"place     {escape(document['place'])}, {size_in_words(document['bytes'])}")


def _archive(place: Place) -> dict[str, Any]:
    """What is known of where a named set comes from; nothing for files."""
    entry = place.entry
    if entry is None or entry.files is not None:
        return {}
    from tsattn.data.citations import CITATIONS, NOT_STATED

    return {
        "archive": entry.archive,
        "kind": entry.kind or None,
        "record": f"https://zenodo.org/records/{entry.zenodo}" if entry.zenodo else None,
        "licence": place.record.get("licence") or NOT_STATED,
        "citation": CITATIONS.get(entry.archive),
    }


def _where(place: Place) -> dict[str, Any]:
    return {"place": None if place.path is None else str(place.path), "bytes": place.bytes}

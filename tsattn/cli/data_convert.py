"""`tsattn data convert`: from one file format into another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tsattn.cli.options import (
    AsJson,
    GroupColumn,
    IdColumn,
    LabelColumn,
    LabelPattern,
    LabelsFile,
    LayoutName,
    Registry,
    TimeColumn,
)

if TYPE_CHECKING:
    from tsattn.data.columns import TableOptions
    from tsattn.data.parts import Part
    from tsattn.data.sources import LoadedSplit

FormatName = Literal["ts", "csv", "parquet", "npz"]


def convert(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Name of a data set, folder, zip or file.", show_default=False),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File ending in .ts, .csv, .parquet or .npz; or a folder, for both splits.",
            show_default=False,
        ),
    ],
    split: Annotated[
        Literal["train", "test"] | None,
        typer.Option("--split", help="Which part of SOURCE, if it has two.", show_default=False),
    ] = None,
    layout: Annotated[
        Literal["long", "wide"] | None,
        typer.Option(
            "--layout",
            help="Of the table that is written. Default: wide for one channel, long for several.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        FormatName | None,
        typer.Option(
            "--format",
            help="Of the files in a folder; ts if not given. A file's ending says its own.",
            show_default=False,
        ),
    ] = None,
    source_layout: Annotated[
        LayoutName | None,
        typer.Option(
            "--source-layout",
            help="Of SOURCE, if it is a table. Told from the header if not given.",
            rich_help_panel="Tables",
            show_default=False,
        ),
    ] = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    group_column: GroupColumn = None,
    labels_file: LabelsFile = None,
    label_pattern: LabelPattern = None,
    registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """From one file format into another.

    A new file appears only after it was read back and gave the same cases.
    """
    from tsattn.cli import console
    from tsattn.cli.fetching import fetch_visibly
    from tsattn.data.columns import TableOptions
    from tsattn.data.convert import write_file

    console.hear_remarks()
    options = TableOptions(
        layout=source_layout,
        id=id_column,
        time=time_column,
        label=label_column,
        group=group_column,
        labels=None if labels_file is None else str(labels_file),
        label_pattern=label_pattern,
    )
    fetch_visibly(source, registry)
    with console.working(f"reading {source}"):
        parts = _parts(source, split, options, registry)
    written = []
    for part, path in _targets(source, parts, out, form).items():
        loaded = parts[part]
        with console.working(f"writing {path}"):
            write_file(loaded.collection, path, layout=layout, name=loaded.name)
        written.append(_document(loaded, path))
    if as_json:
        console.show_json({"written": written})
    else:
        for document in written:
            _show(document)


def _parts(
    source: str, split: Literal["train", "test"] | None, options: TableOptions, registry: Path | None
) -> dict[Part, LoadedSplit]:
    from tsattn.data.parts import is_file, load_parts, part_of_file
    from tsattn.data.sources import load_split
    from tsattn.errors import InputError

    if split is None:
        return load_parts(source, options, registry)
    if is_file(source, registry) and part_of_file(Path(source)) == "all":
        raise InputError(f"{source} has no splits. Leave out --split {split} to convert all of it.")
    return {split: load_split(source, split, options, registry)}


def _targets(
    source: str, parts: dict[Part, LoadedSplit], out: str, form: FormatName | None
) -> dict[Part, Path]:
    """Where each part goes. InputError for two parts and one file, and an ending against --format."""
    from tsattn.errors import InputError

    path = Path(out).expanduser()
    if path.is_dir() or out.endswith("/"):
        return _in_folder(parts, path, form or "ts")
    if form is not None and path.suffix.lower() != f".{form}":
        raise InputError(f"{out}: the ending is not that of --format {form}. Type one of the two.")
    if len(parts) > 1:
        raise InputError(
            f"{source} has a training and a test split, and {out} is one file. Type --split train or "
            f"--split test; or a folder, {path.with_suffix('')}/, for both."
        )
    return dict.fromkeys(parts, path)


def _in_folder(parts: dict[Part, LoadedSplit], folder: Path, form: str) -> dict[Part, Path]:
    from tsattn.errors import InputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made a folder: {error.strerror or error}.") from None
    return {
        part: folder / (f"{loaded.name}.{form}" if part == "all" else f"{loaded.name}_{part.upper()}.{form}")
        for part, loaded in parts.items()
    }


def _document(loaded: LoadedSplit, path: Path) -> dict[str, Any]:
    collection = loaded.collection
    return {
        "file": str(path),
        "from": loaded.origin,
        "cases": len(collection),
        "channels": len(collection.channels),
        "classes": None if collection.labels is None else len(collection.classes),
        "bytes": path.stat().st_size,
    }


def _show(document: dict[str, Any]) -> None:
    from rich.markup import escape

    from tsattn.cli import console
    from tsattn.cli.facts import counted, size_in_words

    classes = "no labels" if document["classes"] is None else f"{document['classes']:,} classes"
    console.show(
        f"{escape(document['file'])}: {counted(document['cases'], 'case')}, "
        f"{counted(document['channels'], 'channel')}, "
        f"{classes}, {size_in_words(document['bytes'])}"
    )

"""Several files as one source: a glob, or a folder of files.

The first file says how all are read: cases by an id column (long), a row a case (wide), or, where there
is no id column and there are times or no columns CHANNEL_TIMEPOINT, a file a case. Not covered: files
of unlike columns.
"""

from __future__ import annotations

import glob
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tsattn.data.archives import Member
from tsattn.data.classes import sorted_classes
from tsattn.data.collection import Collection
from tsattn.data.columnless import say_unused
from tsattn.data.columns import TableOptions, layout_of_files, resolve_roles
from tsattn.data.csvtext import listed
from tsattn.data.filelabels import labels_of_files, name_of, say_of_levels
from tsattn.data.formats import KNOWN, is_read, is_series, parse_series
from tsattn.data.heads import open_head
from tsattn.data.remarks import said_once
from tsattn.data.tables import read_table
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """Files that are one source, in order, and the folder that their names are relative to."""

    place: str
    root: Path
    files: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class ReadSet:
    """What was read of a FileSet. options: how its tables are read; channels: their names."""

    collection: Collection
    options: TableOptions
    table: dict[str, str]


def is_glob(source: str) -> bool:
    """Whether SOURCE is a pattern of file names and not itself a file."""
    return any(mark in source for mark in "*?[") and not Path(source).expanduser().exists()


def glob_files(source: str) -> FileSet:
    """The files that the pattern fits, by name; ** goes through folders. InputError if there is none."""
    pattern = str(Path(source).expanduser())
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 Path.glob takes no absolute pattern
    files = sorted(path for path in map(Path, found) if path.is_file())
    if not files:
        raise InputError(f"{source}: no file fits this pattern.")
    unknown = [path for path in files if not is_read(path)]
    if unknown:
        raise InputError(f"{unknown[0]}: this form is not known. Files are {KNOWN}; narrow the pattern.")
    fixed = Path(pattern).parts
    depth = next(i for i, part in enumerate(fixed) if any(mark in part for mark in "*?["))
    return FileSet(place=source, root=Path(*fixed[:depth]), files=tuple(files))


def split_folder(folder: Path, split: str, *, say: bool = False) -> Path | None:
    """The sub-folder `split`, in upper or lower case; None if the folder has neither train nor test.

    say: name the other sub-folders with data in a remark. InputError if it has only the other split.
    """
    found = {sub.name.lower(): sub for sub in sorted(folder.iterdir()) if sub.is_dir()}
    if not {"train", "test"} & found.keys():
        return None
    if split not in found:
        raise InputError(f"{folder} has no sub-folder {split}, only the other split.")
    if say:
        others = [found[name] for name in found if name not in ("train", "test") and name[0] != "."]
        names = [sub.name for sub in others if any(map(is_read, filter(Path.is_file, sub.rglob("*"))))]
        if names:
            logger.warning(
                "%s: beside train and test, these sub-folders are not used: %s. To hold the cases of one out "
                "in training, type --val-file %s.", folder, listed(names), folder / names[0],
            )  # fmt: skip
    return found[split]


def first_of(source: FileSet, options: TableOptions) -> tuple[TableOptions, tuple[str, ...]]:
    """How the files are read and their channels, told from the first, for the test split of the same."""
    typed = options.labels is not None or options.label_pattern is not None
    chosen = _as_the_first(source, replace(options, label=None) if typed else options)
    channels = _read(source.files[0], chosen, source).channels
    labels = options.label if options.labels is not None else chosen.label
    return replace(
        options, layout=chosen.layout, id=chosen.id, time=chosen.time, label=labels, columns=chosen.columns
    ), channels


def folder_files(folder: Path, options: TableOptions) -> FileSet | None:
    """The files in the folder and its sub-folders; None if there is none that is read.

    The table of labels is none of them, nor what is hidden; files of other forms are named in a remark.
    """
    inside = sorted(path for path in _below(folder) if path.is_file())
    seen = [path for path in inside if not any(p.startswith(".") for p in path.relative_to(folder).parts)]
    labels = None if options.labels is None else Path(options.labels).expanduser().resolve()
    files = [path for path in seen if is_read(path) and path.resolve() != labels]
    other = [path.relative_to(folder).as_posix() for path in seen if not is_read(path)]
    if files and other:
        logger.warning("%s: files that are no data are not used: %s.", folder, listed(other))
    return FileSet(place=str(folder), root=folder, files=tuple(files)) if files else None


def _below(folder: Path) -> Iterator[Path]:
    """All that is in the folder and its sub-folders. InputError for one that cannot be read."""

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: the folder cannot be read ({error.strerror}).")

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(place) / name for name in names)


def read_set(source: FileSet, options: TableOptions, channels: tuple[str, ...] | None = None) -> ReadSet:
    """Every case of the files, in their order; labels as far as something says them.

    channels: names that the files have to have, for a test split. InputError for files of unlike
    channels, for some with labels and some without, and as for each file alone.
    """
    labels = labels_of_files(source.files, source.root, options)
    typed = options.labels is not None or options.label_pattern is not None
    chosen = _as_the_first(source, replace(options, label=None) if typed else options)
    parts: list[Collection] = []
    seen: set[tuple[object, ...]] = set()
    for i, file in enumerate(source.files):
        with said_once(seen):
            part = _read(file, chosen, source)
        if labels is not None and not typed and part.labels is None and i == 0:
            say_of_levels(source.files, source.root, source.place)
        if labels is not None and (typed or part.labels is None):
            part = replace(part, labels=(labels[i],) * len(part), classes=(labels[i],))
        _check(part, parts[0] if parts else None, channels, file, source)
        parts.append(part)
    table = {name: value for name, value in vars(chosen).items() if value is not None}
    said = {"label_pattern": options.label_pattern, "labels": options.labels}
    if options.labels is not None:
        said["label"] = options.label
    table |= {name: value for name, value in said.items() if value is not None}
    ids = _ids(source, parts, one_case=chosen.layout == "file")
    return ReadSet(collection=_joined(parts, ids), options=chosen, table=table)


def _as_the_first(source: FileSet, options: TableOptions) -> TableOptions:
    """The options, completed by the columns of the first file if it is a table."""
    first = source.files[0]
    if is_series(first):
        say_unused(replace(options, labels=None, label_pattern=None), source.place)
        return options
    head = open_head(first)
    layout = layout_of_files(head, options)
    if layout == "file" and options.layout is None:
        logger.warning(
            "%s: each file is taken for one case and its rows for timepoints, as there is no id column in "
            "%s. If each row is a case, type --layout wide.", source.place, first.name,
        )  # fmt: skip
    if layout == "wide" and options.layout is None and options.id is None and len(source.files) > 1:
        logger.warning(
            "%s: each row is taken for a case, as the columns of %s are of the form CHANNEL_TIMEPOINT. "
            "If each file is one case, type --layout file.", source.place, first.name,
        )  # fmt: skip
    roles = resolve_roles(head, replace(options, layout=layout))
    return TableOptions(**roles.for_card(), label_of=options.label_of)


def _read(file: Path, options: TableOptions, source: FileSet) -> Collection:
    series = is_series(file)
    if series != is_series(source.files[0]):
        raise InputError(f"{file} and {source.files[0]} are of unlike forms and no one source.")
    return parse_series(Member(file)) if series else read_table(file, options)[0]


def _check(
    part: Collection, first: Collection | None, channels: tuple[str, ...] | None, file: Path, source: FileSet
) -> None:
    wanted = channels or (part if first is None else first).channels
    if part.channels != wanted:
        other = source.files[0].name if channels is None else "the training split"
        raise InputError(
            f"{file}: channels {listed(part.channels)}, where {other} has {listed(wanted)}. Files "
            "of one source have the same columns in the same order."
        )
    if first is not None and (part.labels is None) != (first.labels is None):
        raise InputError(
            f"{file}: {'no labels' if part.labels is None else 'labels'}, unlike {source.files[0]}. "
            "Either every file of a source has labels or none."
        )


def _ids(source: FileSet, parts: Sequence[Collection], *, one_case: bool) -> list[str]:
    """Ids that stand for one case each: where two files share one, the file's name goes before it."""
    names = [name_of(file, file.parent) for file in source.files]
    if len(set(names)) < len(names):
        names = [name_of(file, source.root) for file in source.files]
    if one_case:
        return names
    counts = Counter(name for part in parts for name in set(part.ids))
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is None:
        return [name for part in parts for name in part.ids]
    logger.warning(
        "%s: id %r stands in more than one file, so the file's name goes before every id: %s/%s.",
        source.place, twice, names[0], parts[0].ids[0],
    )  # fmt: skip
    return [f"{file}/{name}" for file, part in zip(names, parts, strict=True) for name in part.ids]


def _joined(parts: list[Collection], ids: list[str]) -> Collection:
    """One Collection; `parts` is emptied on the way, so that memory does not double."""
    labels = None if parts[0].labels is None else tuple(x for part in parts for x in part.labels or ())
    groups = None
    if all(part.groups is not None for part in parts):
        groups = tuple(x for part in parts for x in part.groups or ())
    orders = {part.classes for part in parts}
    changed = parts[0].timepoint_labels is not None
    found = (name for part in parts for name in part.classes) if changed else labels or ()
    classes = orders.pop() if len(orders) == 1 else sorted_classes(found)
    changing = _changing(parts, classes) if changed else None
    longest = max(part.values.shape[2] for part in parts)
    channels = parts[0].channels
    values = np.empty((len(ids), len(channels), longest), np.float32)
    start = 0
    while parts:
        part = parts.pop(0)
        stop = start + len(part)
        values[start:stop, :, : part.values.shape[2]] = part.values
        values[start:stop, :, part.values.shape[2] :] = np.nan
        start = stop
    return Collection(values, tuple(ids), channels, labels, classes, groups, changing)


def _changing(parts: list[Collection], classes: tuple[str, ...]) -> NDArray[np.int32]:
    """(cases, longest) the timepoints' labels of all files as places in `classes`, −1 for none."""
    longest = max(part.values.shape[2] for part in parts)
    codes = np.full((sum(map(len, parts)), longest), -1, np.int32)
    start = 0
    for part in parts:
        assert part.timepoint_labels is not None
        places = np.array([*(classes.index(name) for name in part.classes), -1], np.int32)
        codes[start : start + len(part), : part.timepoint_labels.shape[1]] = places[part.timepoint_labels]
        start += len(part)
    return codes

"""Labels of whole files: from a table of labels, from a pattern in the name, or from the sub-folder."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from tsattn.data.columns import TableOptions
from tsattn.data.csvtext import listed
from tsattn.data.heads import ending, open_head
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

_FILE_NAMES = ("file", "path", "name", "filename", "id", "case")
_LABEL_NAMES = ("label", "class")


def labels_of_files(files: Sequence[Path], root: Path, options: TableOptions) -> tuple[str, ...] | None:
    """One label a file, None where nothing says any.

    What is typed counts, `--labels` or `--label-pattern`; else, if every file lies in a sub-folder of
    `root` and there are at least two, the sub-folder. InputError for a file without label.
    """
    if options.labels is not None and options.label_pattern is not None:
        raise InputError("--labels and --label-pattern cannot both say the labels. Leave out one.")
    if options.labels is not None:
        return _from_table(files, root, Path(options.labels).expanduser(), options.label)
    if options.label_pattern is not None:
        return _from_pattern(files, root, options.label_pattern)
    folders = [file.relative_to(root).parts[:-1] for file in files]
    if not all(folders) or len({parts[0] for parts in folders}) < 2:
        return None
    return tuple(parts[0] for parts in folders)


def say_of_levels(files: Sequence[Path], root: Path, place: str) -> None:
    """A remark, where sub-folders lie in sub-folders, on which of them is the label."""
    deep = [parts for file in files if len(parts := file.relative_to(root).parts) > 2]
    if deep:
        first, within = (sorted({parts[level] for parts in deep}) for level in (0, 1))
        logger.warning(
            "%s: the label is the first sub-folder (%s); those within it (%s) say nothing. If they are the "
            "labels, type --label-pattern '^[^/]+/([^/]+)/'.", place, listed(first), listed(within),
        )  # fmt: skip


def no_labels_of_files(origin: str) -> InputError:
    """The error for several files of which nothing says the labels."""
    return InputError(
        f"{origin}: nothing says the labels. Put the files of each class into a sub-folder of its own, "
        "or type --labels TABLE (columns file and label), --label-pattern 'REGEX with one group', or "
        "--label COLUMN."
    )


def name_of(file: Path, root: Path) -> str:
    """The file's path below `root` without its ending, parted by /."""
    name = file.relative_to(root).as_posix()
    return name[: len(name) - len(ending(file))]


def _from_pattern(files: Sequence[Path], root: Path, pattern: str) -> tuple[str, ...]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"--label-pattern {pattern!r} is no regular expression: {error}.") from None
    if compiled.groups != 1:
        raise InputError(
            f"--label-pattern {pattern!r} has {compiled.groups} groups. Put the part of the file's name that "
            r"is the label, and only it, in brackets, e.g. '^([a-z]+)_\d+'."
        )
    labels = []
    for file in files:
        name = file.relative_to(root).as_posix()
        match = compiled.search(name)
        if match is None or not match[1]:
            raise InputError(f"{file}: --label-pattern {pattern!r} finds no label in {name!r}.")
        labels.append(match[1])
    return tuple(labels)


def _from_table(files: Sequence[Path], root: Path, table: Path, label: str | None) -> tuple[str, ...]:
    known = _read_labels(table, label)
    labels: list[str] = []
    used: set[str] = set()
    for file in files:
        spelled = file.relative_to(root).as_posix()
        keys = (spelled, name_of(file, root), file.name, name_of(file, file.parent), str(file))
        key = next((key for key in keys if key in known), None)
        if key is None or not known[key]:
            raise InputError(f"{table}: no label for {spelled}. Add a row for it.")
        used.add(key)
        labels.append(known[key])
    if spare := [key for key in known if key not in used]:
        logger.warning("%s: rows for files that are not there: %s.", table, listed(spare))
    return tuple(labels)


def _read_labels(table: Path, label: str | None) -> dict[str, str]:
    """File → label."""
    head = open_head(table)
    lower = [name.lower() for name in head.names]
    file_at = next((lower.index(name) for name in _FILE_NAMES if name in lower), None)
    wanted = (label.lower(),) if label is not None else _LABEL_NAMES
    label_at = next((lower.index(name) for name in wanted if name in lower), None)
    if file_at is None or label_at is None:
        raise InputError(
            f"{table}: a table of labels has the columns file and label (--label names another one); "
            f"found {listed(head.names)}."
        )
    known: dict[str, str] = {}
    row = 0
    for batch in head.batches([], [file_at, label_at], None):
        for file, word in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            if known.setdefault(file, word) != word:
                raise InputError(f"{head.place(row)}: {file!r} had the label {known[file]!r} before.")
            row += 1
    return known

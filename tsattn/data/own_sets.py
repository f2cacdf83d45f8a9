"""Data sets of the user's own registry: the files they name, and what is said of their columns."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from tsattn.data.columns import TableOptions
from tsattn.data.registry import DatasetEntry, NamedFile, own_entry
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


def own_set(source: str, registry: Path | None) -> DatasetEntry | None:
    """The user's own entry called `source` if it names files; None if there is none.

    It wins over a file or folder of that name, and it is said. InputError as `load_registry`.
    """
    entry = own_entry(source, registry)
    if entry is None or entry.files is None:
        return None
    if Path(source).exists():
        logger.warning(
            "%s: %s is taken from here. To have the file or folder of that name, type %s.",
            entry.where, source, Path(source).absolute(),
        )  # fmt: skip
    return entry


def own_options(entry: DatasetEntry, typed: TableOptions) -> TableOptions:
    """The columns as the entry says; what is typed wins."""
    said = {
        role: getattr(entry.files, role)
        for role, word in vars(typed).items()
        if word is None and hasattr(entry.files, role)
    }
    return replace(typed, **said)


def own_train(entry: DatasetEntry) -> Path:
    """The file, folder or zip to train on. InputError if it is not there."""
    assert entry.files is not None
    return _there(entry.files.train, entry)


def own_test(entry: DatasetEntry) -> Path:
    """The file, folder or zip to judge on. InputError if the entry names none or it is not there."""
    assert entry.files is not None
    if entry.files.test is None:
        raise InputError(f"{entry.where}: {entry.name} names no test file. Add test: FILE, or type a file.")
    return _there(entry.files.test, entry)


def _there(file: NamedFile, entry: DatasetEntry) -> Path:
    if not file.path.exists():
        raise InputError(
            f"{file.where}: {entry.name}: {file.path} is not there. Mend the path; a relative one is "
            "relative to the folder of the registry."
        )
    return file.path

"""The schema of a registry file: YAML in, entries out, every fault with file and line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from tsattn.errors import InputError


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    """A file or folder that an entry names. where: FILE:LINE of the registry that names it."""

    path: Path
    where: str


@dataclass(frozen=True, kw_only=True)
class DatasetFiles:
    """The files of a user's own data set and the columns of its tables, None where nothing is said.

    train, test: files, folders or zips. layout: "long" or "wide". id, time, label, group: names of columns.
    """

    train: NamedFile
    test: NamedFile | None = None
    layout: Literal["long", "wide"] | None = None
    id: str | None = None
    time: str | None = None
    label: str | None = None
    group: str | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """What is known of a named data set before it is there; None where it is not known.

    archive: "UEA", "UCR" or another collection; also: others that name it. where: FILE:LINE of the entry.
    train, test: cases of the archive's split. length: timepoints of the longest case.
    zenodo: number of the record that holds its files. kind: what was recorded. unequal, missing: lengths
    differ, values are missing. embedded: inside the aeon package, so that no network is needed.
    files: where a user's own set lies; None for one of an archive.
    """

    name: str
    where: str
    archive: str = ""
    also: tuple[str, ...] = ()
    channels: int | None = None
    length: int | None = None
    classes: int | None = None
    train: int | None = None
    test: int | None = None
    zenodo: int | None = None
    kind: str = ""
    unequal: bool = False
    missing: bool = False
    embedded: bool = False
    files: DatasetFiles | None = None


_COLUMNS = ("layout", "id", "time", "label", "group")
_SPLITS = ("train", "test")


@dataclass(frozen=True)
class _Kind:
    """What the value of a key must be: for the check, and for the message."""

    fits: Callable[[Any], bool]
    expected: str


_COUNT = _Kind(lambda value: type(value) is int and value > 0, "a whole number above 0")
_TEXT = _Kind(lambda value: isinstance(value, str) and bool(value.strip()), "text")
_COLUMN = _Kind(_TEXT.fits, "a column's name as text, in quotes if it looks like a number or a date")
_FLAG = _Kind(lambda value: isinstance(value, bool), "true or false")
_WORDS = _Kind(
    lambda value: isinstance(value, list) and all(map(_TEXT.fits, value)), "a list of words: [one, two]"
)
_FILE = _Kind(
    lambda value: _COUNT.fits(value) or _TEXT.fits(value), "the path of a file, or a number of cases"
)
_LAYOUT = _Kind(lambda value: value in ("long", "wide"), "long or wide")

_KINDS = {
    "archive": _TEXT,
    "also": _WORDS,
    **dict.fromkeys(("channels", "length", "classes", "zenodo"), _COUNT),
    **dict.fromkeys(_SPLITS, _FILE),
    "kind": _TEXT,
    **dict.fromkeys(("unequal", "missing", "embedded"), _FLAG),
    "layout": _LAYOUT,
    **dict.fromkeys(("id", "time", "label", "group"), _COLUMN),
}


def parse_registry(text: str, file: Path, shown: str) -> dict[str, DatasetEntry]:
    """The entries of a registry by name, in its order; relative paths are relative to the folder of `file`.

    shown: how messages call the file. InputError with shown:LINE for the first thing that does not fit.
    """
    import yaml  # 20 ms, and who types a file mostly has no registry

    # Safe both; the one on libyaml is ten times as fast.
    safe_loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        loader = safe_loader(text)
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{shown}:{mark.line + 1}" if mark else shown
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(
            f"{place}: this is no YAML ({what}). An entry is NAME: {{train: FILE, test: FILE}}."
        ) from None
    if root is None:
        raise InputError(f"{shown}: the registry is empty. An entry is NAME: {{train: FILE, test: FILE}}.")
    entries: dict[str, DatasetEntry] = {}
    for name, line, node in _pairs(root, loader, shown, "the registry", "NAME: {train: FILE, test: FILE}"):
        where = f"{shown}:{line}"
        if name in entries:
            raise InputError(
                f"{where}: {name} has an entry already, at {entries[name].where}. Name it otherwise."
            )
        if not name.strip() or name.startswith(".") or any(sign in name for sign in "/\\\0"):
            raise InputError(
                f"{where}: {name!r} is no name for a data set: write one without / and \\ and no dot first."
            )
        entries[name] = _Entry(name, where, shown, file.parent).read(node, loader)
    return entries


def _pairs(node: Any, loader: Any, shown: str, whose: str, expected: str) -> Iterator[tuple[str, int, Any]]:
    """(key, line, value node) of a mapping."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        found = "a list" if isinstance(node, yaml.SequenceNode) else f"{loader.construct_object(node)!r}"
        raise InputError(f"{shown}:{node.start_mark.line + 1}: {whose} is {found}; expected {expected}.")
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = _built(loader, key, f"{shown}:{line}")
        if not isinstance(name, str):
            raise InputError(f'{shown}:{line}: {name!r} is no text. If it is a name, write "{name}".')
        yield name, line, value


def _built(loader: Any, node: Any, where: str) -> Any:
    """The value of a node: plain data only."""
    import yaml

    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, TypeError) as error:
        what = getattr(error, "problem", None) or str(error)
        raise InputError(
            f"{where}: a value that cannot be read ({what}). Write plain text or a number."
        ) from None


class _Entry:
    """One entry while it is read."""

    def __init__(self, name: str, where: str, shown: str, folder: Path) -> None:
        self.name, self.where, self.shown, self.folder = name, where, shown, folder
        self.values: dict[str, Any] = {}
        self.lines: dict[str, str] = {}

    def read(self, node: Any, loader: Any) -> DatasetEntry:
        for key, line, inner in _pairs(node, loader, self.shown, self.name, "{train: FILE, test: FILE}"):
            where = f"{self.shown}:{line}"
            self._check_key(key, where)
            value = _built(loader, inner, where)
            if not _KINDS[key].fits(value):
                raise InputError(
                    f"{where}: {self.name}: {key} is {value!r}; expected {_KINDS[key].expected}."
                )
            self.values[key], self.lines[key] = value, where
        facts = {key: value for key, value in self.values.items() if key not in _COLUMNS}
        files = self._files()
        if files is not None:
            facts = {key: value for key, value in facts.items() if key not in _SPLITS}
        elif not ("archive" in facts or "zenodo" in facts):
            raise InputError(f"{self.where}: {self.name} names no data. Add train: FILE.")
        facts["also"] = tuple(facts.get("also", ()))
        return DatasetEntry(name=self.name, where=self.where, files=files, **facts)

    def _check_key(self, key: str, where: str) -> None:
        if key not in _KINDS:
            near = difflib.get_close_matches(key, _KINDS, n=1)
            meant = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(_KINDS)}."
            raise InputError(f"{where}: {self.name}: unknown key {key!r}. {meant}")
        if key in self.values:
            raise InputError(f"{where}: {self.name}: {key} stands here twice. Keep one.")

    def _files(self) -> DatasetFiles | None:
        """The files, if the entry names any; relative paths are relative to the registry."""
        named = {key: self.values[key] for key in _SPLITS if isinstance(self.values.get(key), str)}
        columns: dict[str, Any] = {key: self.values[key] for key in _COLUMNS if key in self.values}
        if not named:
            for key in columns:
                raise InputError(
                    f"{self.lines[key]}: {self.name}: {key} describes a file, and none is named. "
                    "Add train: FILE."
                )
            return None
        for key in _SPLITS:
            if isinstance(self.values.get(key), int):
                raise InputError(
                    f"{self.lines[key]}: {self.name}: {key} is {self.values[key]} and the other split "
                    "is a file; expected the path of a file here too."
                )
        if "train" not in named:
            raise InputError(
                f"{self.where}: {self.name} names a test file and none to train on. Add train: FILE."
            )
        paths: dict[str, Any] = {
            key: NamedFile(path=self.folder / Path(path).expanduser(), where=self.lines[key])
            for key, path in named.items()
        }
        return DatasetFiles(**paths, **columns)


assert {field.name for field in fields(DatasetEntry)} - {"name", "where", "files"} <= set(_KINDS)

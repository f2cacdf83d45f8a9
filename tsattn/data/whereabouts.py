"""Where a SOURCE lies on this machine and how large it is; nothing is read and nothing fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tsattn.data.registry import DatasetEntry, find_entry
from tsattn.data.sources import embedded_folder
from tsattn.errors import InputError

_SPLIT_FILE = re.compile(r".+_(TRAIN|TEST)\..+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A SOURCE: its name, its registry entry if it was named, its file or folder and that one's bytes.

    path: None, and bytes 0, for a named set that is not here.
    """

    name: str
    entry: DatasetEntry | None
    path: Path | None
    bytes: int


def locate(source: str) -> Place:
    """Looks at paths first, then at names. InputError for what is neither."""
    path = Path(source).expanduser()
    if path.exists():
        name = path.name if path.is_file() else path.resolve().name
        return Place(name=name, entry=None, path=path, bytes=_size(path))
    if "/" in source or "\\" in source or path.suffix:
        raise InputError(f"{source}: no such file or folder.")
    entry = find_entry(source)
    folder = _folder_of(entry)
    return Place(name=entry.name, entry=entry, path=folder, bytes=_size(folder) if folder else 0)


def _folder_of(entry: DatasetEntry) -> Path | None:
    if entry.files is not None:
        return entry.files.train.path
    return embedded_folder(entry.name)


def _size(path: Path) -> int:
    """Bytes of a file, or of what lies in a folder; of a pair in a folder its two files only."""
    if path.is_file():
        return path.stat().st_size
    files = [file for file in path.rglob("*") if file.is_file()]
    pair = [file for file in files if _SPLIT_FILE.fullmatch(file.name) and file.suffix == ".ts"]
    return sum(file.stat().st_size for file in pair or files)

"""Where a SOURCE lies on this machine and how large it is; no case is read and nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tsattn.data.folders import glob_files, is_glob
from tsattn.data.named import embedded_folder, looks_like_a_path
from tsattn.data.own_sets import own_set, own_train
from tsattn.data.registry import DatasetEntry, find_entry
from tsattn.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Place:
    """A SOURCE: its name, its registry entry if it was named, its file or folder and that one's bytes.

    path: None, and bytes 0, for a named set that is not here. record: what the archive said of a set
    when it was fetched.
    """

    name: str
    entry: DatasetEntry | None = None
    path: Path | None = None
    bytes: int = 0
    record: Mapping[str, str] = field(default_factory=dict)


def locate(source: str, registry: Path | None = None) -> Place:
    """Looks as `load_split` does: own sets first, then paths, then names. InputError for what is none."""
    if (own := own_set(source, registry)) is not None and own.files is not None:
        train = own_train(own)
        test = own.files.test.path if own.files.test is not None else train
        size = _size(train) + (_size(test) if test != train and test.exists() else 0)
        return Place(name=own.name, entry=own, path=train, bytes=size)
    path = Path(source).expanduser()
    if path.exists():
        return Place(name=path.name if path.is_file() else path.resolve().name, path=path, bytes=_size(path))
    if is_glob(source):
        files = glob_files(source)
        size = sum(file.stat().st_size for file in files.files)
        return Place(name=source, path=files.root, bytes=size)
    if looks_like_a_path(source):
        raise InputError(f"{source}: no such file or folder.")
    entry = find_entry(source, registry)
    if (folder := embedded_folder(entry.name)) is not None:
        return Place(name=entry.name, entry=entry, path=folder, bytes=_size(folder))
    from tsattn.data.download.store import cached

    if (kept := cached(entry.name)) is not None:
        return Place(name=entry.name, entry=entry, path=kept.folder, bytes=kept.size, record=kept.record)
    return Place(name=entry.name, entry=entry)


def _size(path: Path) -> int:
    """Bytes of a file, of a data set's pair of .ts files in a folder, or of all that lies in the folder."""
    if path.is_file():
        return path.stat().st_size
    files = [file for file in path.rglob("*") if file.is_file()]
    name = path.resolve().name.lower()
    pair = [file for file in files if file.name.lower() in (f"{name}_train.ts", f"{name}_test.ts")]
    return sum(file.stat().st_size for file in pair or files)

"""The cache: a folder a set with its two files, and what they were when they came."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsattn.data.home import home

_NOTE = "source.json"


@dataclass(frozen=True, kw_only=True)
class Cached:
    """A data set in the cache.

    train, test: its files. files: by name the size and md5 they came with; empty if they were laid there
    by hand. origin: where they came from. record: what the source says of the set: title, doi, licence.
    """

    name: str
    folder: Path
    train: Path
    test: Path
    origin: str = ""
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    record: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of both files."""
        return self.train.stat().st_size + self.test.stat().st_size

    def altered(self) -> str | None:
        """What is wrong with the sizes of the files, which is quick to see; None if nothing is."""
        for file, (size, _) in self.files.items():
            found = (self.folder / file).stat().st_size
            if found != size:
                return f"{file} has {found} bytes and came with {size}"
        return None

    def verify(self) -> str | None:
        """What is wrong with the contents of the files, every byte read; None if nothing is."""
        if (wrong := self.altered()) is not None:
            return wrong
        for file, (_, md5) in self.files.items():
            found = md5_of(self.folder / file)
            if found != md5:
                return f"{file} is not what was fetched (md5 {found} instead of {md5})"
        return None


def set_folder(name: str) -> Path:
    """Where the set `name` lies, or would."""
    return home() / "datasets" / name


def cached(name: str) -> Cached | None:
    """The set `name` as far as both its files are in the cache."""
    folder = set_folder(name)
    train, test = (folder / f"{name}_{split}.ts" for split in ("TRAIN", "TEST"))
    if not (train.is_file() and test.is_file()):
        return None
    return Cached(name=name, folder=folder, train=train, test=test, **_noted(folder))


def cached_names() -> list[str]:
    """Names of the folders in the cache that hold at least one file of their set, sorted."""
    place = home() / "datasets"
    if not place.is_dir():
        return []
    return sorted(
        folder.name
        for folder in place.iterdir()
        if any((folder / f"{folder.name}_{split}.ts").is_file() for split in ("TRAIN", "TEST"))
    )


def publish(name: str, train: Path, test: Path, work: Path, origin: str, record: Mapping[str, str]) -> Cached:
    """Moves the two files into the cache as the set `name`; another process sees both or none.

    work: a folder of the same disk in which the new folder is put together.
    """
    fresh = work / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    files: dict[str, dict[str, Any]] = {}
    for split, path in (("TRAIN", train), ("TEST", test)):
        file = f"{name}_{split}.ts"
        files[file] = {"size": path.stat().st_size, "md5": md5_of(path)}
        os.replace(path, fresh / file)
        _settle(fresh / file)
    note = {"name": name, "origin": origin, "files": files, "record": dict(record)}
    (fresh / _NOTE).write_text(json.dumps(note, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    _settle(fresh / _NOTE)
    target = set_folder(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        spoilt = work / "spoilt"
        shutil.rmtree(spoilt, ignore_errors=True)
        os.replace(target, spoilt)
    os.replace(fresh, target)
    found = cached(name)
    assert found is not None
    return found


def md5_of(path: Path) -> str:
    """MD5 of a file, in hexadecimal: what Zenodo publishes, against accidents and not against malice."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _settle(path: Path) -> None:
    """Waits until the file is on the disk, so that a loss of power cannot leave an empty one."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _noted(folder: Path) -> dict[str, Any]:
    """What was noted when the set came; nothing if that is gone or no longer readable."""
    try:
        note = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
        files = {file: (int(said["size"]), str(said["md5"])) for file, said in note["files"].items()}
        record = {str(key): str(value) for key, value in note["record"].items()}
        return {"origin": str(note["origin"]), "files": files, "record": record}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}

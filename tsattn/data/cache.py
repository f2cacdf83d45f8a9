"""Files that were read once: their cases as memory-mapped arrays, found by the content of the file.

    parsed/KEY/values.npy   the values, of which memory takes only what is touched
    parsed/KEY/timepoints.npy   labels of timepoints, where there are any
    parsed/KEY/about.json   ids, labels, classes, channels, groups, roles of columns, and what was remarked
    parsed/index/….json     what a file's content is, so that it need not be hashed while it stays untouched

Nothing here is ever an error: what cannot be kept is read again, what was kept and is damaged is ignored.
Not covered: .npz and .npy, which are arrays already; globs and folders of files.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsattn import __version__
from tsattn.data.archives import Member
from tsattn.data.atomic import is_partial
from tsattn.data.collection import Collection
from tsattn.data.contents import Content, appearing, content_of, hash_of, noted, state_of, unimportant
from tsattn.data.home import home

logger = logging.getLogger(__name__)

FORMAT = 1
LEAST_BYTES = 1 << 20
"""Smaller files are read about as fast as their cache would be."""
MOST_BYTES = 8 << 30
"""What all that is kept may take; beyond it the least recently used goes."""
_ARRAYS = (".npz", ".npy")
_VALUES, _TIMEPOINTS, _ABOUT, _NOTES = "values.npy", "timepoints.npy", "about.json", "index"
_PLACE = "\0"  # stands for the file in remarks: the same content may lie elsewhere next time
_DEAD_AFTER = 24 * 3600  # seconds in which any draft is finished
_BROKEN = (OSError, ValueError, LookupError, TypeError, AssertionError, EOFError)


_LOOKING: ContextVar[bool] = ContextVar("looking", default=False)


@contextlib.contextmanager
def only_looking() -> Iterator[None]:
    """Within it, files are read from the cache where they are in it, and nothing is put there.

    For who wants a file's figures and no more: to hash and keep it takes longer than to read it.
    """
    token = _LOOKING.set(True)
    try:
        yield
    finally:
        _LOOKING.reset(token)


class Parsed(NamedTuple):
    """A file as it was read. table: roles of its columns, empty if it is no table."""

    collection: Collection
    table: dict[str, str]


def through_cache(member: Member, asked: Mapping[str, Any], read: Callable[[], Parsed]) -> Parsed:
    """What `read` gives for the file, from the cache if it was there with this content before.

    asked: everything beside the file that decides what is read, as JSON. What the reader remarked is
    said again. Values from the cache are mapped copy-on-write: whoever changes them changes his own.
    Errors of `read` pass through; whatever goes wrong with the cache does not.
    """
    content = _content(member)
    if content is None:
        return read()
    entry = _parsed() / _key(content, member, asked)
    if (found := _load(entry)) is not None:
        parsed, remarks = found
        for name, level, text in remarks:
            logging.getLogger(name).log(level, "%s", text.replace(_PLACE, member.where))
        return parsed
    with _heard() as heard:
        parsed = read()
    if content.stands():
        _store(
            entry, parsed, [(name, level, text.replace(member.where, _PLACE)) for name, level, text in heard]
        )
    return parsed


def channels_kept(member: Member) -> int | None:
    """How many channels a file of series has, if the cache knows it; says no remarks."""
    content = _content(member)
    found = None if content is None else _load(_parsed() / _key(content, member, {}))
    return None if found is None else len(found[0].collection.channels)


def _content(member: Member) -> Content | None:
    """The content of the file, a zip as a whole; None for what is not to be kept."""
    if is_partial(member.place) or Path(member.name).suffix.lower() in _ARRAYS:
        return None
    return content_of(member.place, _parsed() / _NOTES, LEAST_BYTES, only_noted=_LOOKING.get())


def _parsed() -> Path:
    return home() / "parsed"


def _key(content: Content, member: Member, asked: Mapping[str, Any]) -> str:
    # The name decides ids and the form, so it is a part of what is read.
    asked = {name: value for name, value in asked.items() if value is not None}
    said = [FORMAT, _reader(), content.digest, member.name, member.inside, sorted(asked.items())]
    return hash_of(json.dumps(said))[:40]


@cache
def _reader() -> str:
    """What reads: the version, and for a checkout that is worked on the state of its files."""
    here = Path(__file__).parent
    files = [(file.name, file.stat()) for file in sorted(here.glob("*.py"))]
    return hash_of(repr([__version__, *((name, stat.st_size, stat.st_mtime_ns) for name, stat in files)]))


def _load(entry: Path) -> tuple[Parsed, list[tuple[str, int, str]]] | None:
    """What is kept at `entry`, with the remarks; None if nothing is, or what is there is not whole."""
    try:
        checksum, _, text = (entry / _ABOUT).read_text(encoding="utf-8").partition("\n")
        about = json.loads(text)
        if checksum != hash_of(text):
            raise ValueError("changed since it was written")
        arrays = {name: _mapped(entry / name, state) for name, state in about["arrays"].items()}
        values = arrays[_VALUES]
        ids, codes, classes = about["ids"], about["labels"], about["classes"]
        collection = Collection(
            values=values,
            ids=tuple(map(str, range(len(values))) if ids is None else ids),
            channels=tuple(about["channels"]),
            labels=None if codes is None else tuple(map(classes.__getitem__, codes)),
            classes=tuple(classes),
            groups=None if about["groups"] is None else tuple(about["groups"]),
            timepoint_labels=arrays.get(_TIMEPOINTS),
        )
        remarks = [(str(name), int(level), str(said)) for name, level, said in about["remarks"]]
    except FileNotFoundError:
        return None
    except _BROKEN as error:
        logger.debug("%s: cannot be used: %s", entry, error)
        return None
    with contextlib.suppress(OSError):
        os.utime(entry / _ABOUT)  # when it was last used
    return Parsed(collection, about["table"]), remarks


def _mapped(file: Path, state: list[int]) -> NDArray[Any]:
    """The array in the file, copy-on-write. ValueError if the file is not as it was written."""
    if state_of(file) != state:
        raise ValueError(f"{file.name} changed since it was written")
    return np.load(file, mmap_mode="c", allow_pickle=False).view(np.ndarray)


def _store(entry: Path, parsed: Parsed, remarks: list[tuple[str, int, str]]) -> None:
    import shutil

    cases = parsed.collection
    arrays = {_VALUES: cases.values, _TIMEPOINTS: cases.timepoint_labels}
    size = sum(array.nbytes for array in arrays.values() if array is not None)
    with unimportant(entry):
        entry.parent.mkdir(parents=True, exist_ok=True)
        if size > min(MOST_BYTES, shutil.disk_usage(entry.parent).free // 2):
            return
        with appearing(entry) as draft:
            draft.mkdir()
            states = {
                name: _saved(array, draft / name) for name, array in arrays.items() if array is not None
            }
            place = {label: code for code, label in enumerate(cases.classes)}
            about = {
                "arrays": states,
                "ids": None if cases.ids == tuple(map(str, range(len(cases)))) else cases.ids,
                "channels": cases.channels,
                "labels": None if cases.labels is None else [place[label] for label in cases.labels],
                "classes": cases.classes,
                "groups": cases.groups,
                "table": parsed.table,
                "remarks": remarks,
            }
            text = json.dumps(about, separators=(",", ":"))
            (draft / _ABOUT).write_text(f"{hash_of(text)}\n{text}", encoding="utf-8", newline="\n")
        _tidy(entry)


def _saved(array: NDArray[Any], path: Path) -> list[int]:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())  # a loss of power could leave zeros for numbers
    return state_of(path)


def _tidy(fresh: Path) -> None:
    """Drops what was used least recently until the rest fits, drafts of dead processes, stale notes."""
    import shutil

    entries: list[tuple[float, int, Path]] = []
    for entry in fresh.parent.iterdir():
        with contextlib.suppress(OSError):
            if entry.name.startswith("."):
                if time.time() - entry.stat().st_mtime > _DEAD_AFTER:
                    shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _NOTES:
                parts = [file.stat() for file in entry.iterdir()]
                used = max((part.st_mtime for part in parts), default=0.0)
                entries.append((used, sum(part.st_size for part in parts), entry))
    total = 0
    for _, size, entry in sorted(entries, key=lambda one: (one[2] != fresh, -one[0])):
        total += size
        if total > MOST_BYTES:
            shutil.rmtree(entry, ignore_errors=True)
    for note in (fresh.parent / _NOTES).glob("*.json"):
        path = noted(note).get("path")
        if not isinstance(path, str) or not Path(path).exists():
            note.unlink(missing_ok=True)


@contextlib.contextmanager
def _heard() -> Iterator[list[tuple[str, int, str]]]:
    """Collects what the readers of this thread remark meanwhile, which is said all the same."""
    heard: list[tuple[str, int, str]] = []
    own = threading.get_ident()

    class Listen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == own:
                heard.append((record.name, record.levelno, record.getMessage()))

    readers, handler = logging.getLogger("tsattn.data"), Listen(logging.WARNING)
    readers.addHandler(handler)
    try:
        yield heard
    finally:
        readers.removeHandler(handler)

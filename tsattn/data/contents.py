"""What a file holds, known without reading it again while it stays untouched; and places for a cache.

Not covered: on Windows, a change that leaves size and time of a file as they were.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

# Nanoseconds within which two changes of a file may bear the same time.
_FINE, _COARSE = 100_000_000, 2_500_000_000


@dataclass(frozen=True)
class Content:
    """The content of a file.

    digest: SHA-256. state: as `state_of` before it was digested. settled: the last change lay long
    enough back for any later one to show in the state.
    """

    file: Path
    digest: str
    state: list[int]
    settled: bool

    def stands(self) -> bool:
        """Whether the file still holds it."""
        try:
            return state_of(self.file) == self.state and (self.settled or _digest(self.file) == self.digest)
        except OSError:
            return False


def content_of(file: Path, notes: Path, least: int, *, only_noted: bool = False) -> Content | None:
    """The content of the file; it is read only if it was touched since it was noted in the folder `notes`.

    only_noted: not even then; what is not noted is None.
    None for a file of fewer than `least` bytes, one that changes meanwhile and one that cannot be read.
    """
    try:
        state = state_of(file)
        if state[0] < least:
            return None
        note = notes / f"{hash_of(str(file.absolute()))}.json"
        if (known := noted(note)).get("state") == state and isinstance(known.get("digest"), str):
            return Content(file, known["digest"], state, settled=True)
        if only_noted:
            return None
        notes.mkdir(parents=True, exist_ok=True)  # where nothing can be kept, no digest is of use
        settled = _settled(state)  # judged before the digest, so that a change after it shows
        content = Content(file, _digest(file), state, settled)
        if state_of(file) != state:
            return None
    except OSError as error:
        logger.debug("%s: content not known: %s", file, error)
        return None
    if settled:
        said = {"path": str(file.absolute()), "state": state, "digest": content.digest}
        with unimportant(note), appearing(note) as draft:
            draft.write_text(json.dumps(said), encoding="utf-8")
    return content


def state_of(file: Path) -> list[int]:
    """Size and what changes with every write: times, in ns, and the file's number on its disk."""
    known = file.stat()
    return [known.st_size, known.st_mtime_ns, known.st_ctime_ns, known.st_ino]


def hash_of(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def noted(note: Path) -> dict[str, Any]:
    """What is written in a note: path, state and digest of a file; nothing if it cannot be read."""
    try:
        said = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


@contextlib.contextmanager
def appearing(place: Path) -> Iterator[Path]:
    """Gives a place for a file or folder, which appears whole at `place` instead of what was there."""
    import shutil
    import tempfile

    place.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".", dir=place.parent))
    try:
        yield work / "new"
        if (work / "new").is_dir():  # which replaces nothing but an empty folder
            with contextlib.suppress(OSError):
                os.replace(place, work / "old")
        os.replace(work / "new", place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def unimportant(place: Path) -> Iterator[None]:
    """A cache only saves time: that it cannot be written, or is full, is no error."""
    try:
        yield
    except OSError as error:
        logger.debug("%s: not kept: %s", place, error)


def _settled(state: list[int]) -> bool:
    """Whether the clock has moved on since the last change. Some clocks count whole seconds."""
    changed = state[1] if os.name == "nt" else state[2]
    return time.time_ns() - changed > (_FINE if changed % 1_000_000_000 else _COARSE)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

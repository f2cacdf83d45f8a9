"""Where rows of predictions go: a file that is renamed into its place when whole, or a stream.

A file is written beside its place. `--resume` keeps what was written, with a journal of how far it goes;
else it is gone if anything fails.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from tsattn.errors import InputError, looking_at

_SECONDS = 0.5
"""Between two entries of a journal."""


class Destination(Protocol):
    """Takes the bytes of the output in order. state: what its journal noted last; None at a beginning."""

    state: dict[str, Any] | None

    def write(self, data: bytes) -> None:
        """To the end of what is there."""
        ...

    def note(self, state: dict[str, Any]) -> None:
        """Says how far the rows written so far go; may be kept or not."""
        ...


class StreamOutput:
    """A stream, such as stdout: what is written is gone."""

    def __init__(self, stream: BinaryIO) -> None:
        self.state: dict[str, Any] | None = None
        self._stream = stream

    def write(self, data: bytes) -> None:
        """At once."""
        try:
            self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError:
            raise  # the reader has had enough
        except OSError as error:
            raise InputError(f"stdout cannot be written ({error.strerror or error}).") from None

    def note(self, state: dict[str, Any]) -> None:
        """Nothing: it cannot be gone on with."""


class _PartialFile:
    def __init__(self, path: Path, partial: Path, start: int) -> None:
        self.state: dict[str, Any] | None = None
        self._path = path
        with writing(path):
            self.file = partial.open("r+b" if start else "wb")
            self.file.truncate(start)
            self.file.seek(start)

    def write(self, data: bytes) -> None:
        """To the partial file."""
        with writing(self._path):
            self.file.write(data)

    def note(self, state: dict[str, Any]) -> None:
        """Nothing: without --resume a partial file is of no use."""


class _ResumableFile(_PartialFile):
    """With a journal beside the partial file."""

    def __init__(self, path: Path, partial: Path, journal: Path, identity: dict[str, Any]) -> None:
        self._journal, self._identity = journal, identity
        entry = _entry(journal, partial, identity, path)
        super().__init__(path, partial, entry["bytes"] if entry else 0)
        self.state = entry["state"] if entry else None
        self._noted = time.monotonic()

    def note(self, state: dict[str, Any]) -> None:
        """Kept every half second; what stands in the partial file by then is on the disk."""
        if time.monotonic() - self._noted < _SECONDS:
            return
        with writing(self._path):
            self.file.flush()
            os.fsync(self.file.fileno())
            entry = {"bytes": self.file.tell(), "state": state, "identity": self._identity}
            fresh = self._journal.with_name(self._journal.name + ".new")
            fresh.write_text(json.dumps(entry), "utf-8")
            os.replace(fresh, self._journal)
        self._noted = time.monotonic()


def _entry(journal: Path, partial: Path, identity: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """The last entry, None where there is none. InputError if it is of another prediction."""
    if not (journal.exists() and partial.exists()):
        return None
    try:
        entry: dict[str, Any] = json.loads(journal.read_text("utf-8"))
        begun_with, size = dict(entry["identity"]), int(entry["bytes"])
        if size < 0 or not isinstance(entry["state"], dict):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise _damaged(journal, path) from None
    other = [name for name in identity if begun_with.get(name) != identity[name]]
    if other or size > partial.stat().st_size:
        raise InputError(
            f"{path} was begun with other {' and '.join(other) or 'content'} than now. Type what was typed "
            f"then, or remove {journal} to begin again."
        )
    return entry


def _damaged(journal: Path, path: Path) -> InputError:
    return InputError(f"{journal} is damaged, or of another tsattn. Remove it to begin {path} again.")


@contextmanager
def file_output(
    path: Path, finish: Callable[[Path], Path], identity: dict[str, Any] | None
) -> Iterator[Destination]:
    """A destination that appears at `path` when the block ends, and never if it ends with an error.

    finish: makes of the file that was written the one that is wanted, and gives its place. identity: of
    what is predicted, where it may be gone on with; None where it may not. InputError before the block
    if the place cannot be written.
    """
    with writing(path):
        _check_place(path)
    place = path.resolve()  # a link keeps pointing at the file
    if identity is None:
        partial = place.with_name(f".{place.name}.{os.getpid()}.part")
        try:
            with _whole(path, _PartialFile(path, partial, 0), lambda: finish(partial)) as file:
                yield file
        finally:
            with suppress(OSError):
                partial.unlink()
        return
    partial, journal = (place.with_name(f".{place.name}.part{end}") for end in ("", ".json"))
    with _alone(path, place.with_name(f".{place.name}.part.lock")):
        resumable = _ResumableFile(path, partial, journal, identity)
        with _whole(path, resumable, lambda: finish(partial)) as file:
            yield file
        for left in (partial, journal):
            left.unlink(missing_ok=True)


@contextmanager
def _whole(path: Path, file: _PartialFile, finish: Callable[[], Path]) -> Iterator[_PartialFile]:
    """The partial file; in the end it is finished and moved into its place."""
    try:
        yield file
        with writing(path):
            file.file.close()
    finally:
        with suppress(OSError):  # of a full disk once more, after the error that says so
            file.file.close()
    with writing(path):
        os.replace(finish(), path.resolve())


@contextmanager
def _alone(path: Path, lock: Path) -> Iterator[None]:
    """InputError where another process is writing the same output."""
    from filelock import FileLock, Timeout

    own = FileLock(lock)
    try:
        own.acquire(timeout=0)
    except Timeout:
        raise InputError(f"{path} is being written by another process. Type another -o.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}. Type another -o.") from None
    try:
        yield
        with suppress(OSError):
            lock.unlink()
    finally:
        own.release()


def refuse_model(output: Path, model: Path, *, but: tuple[str, ...] = ()) -> None:
    """InputError if `output` is the model file, or a file of the run folder `model` that it is made of.

    but: endings of files in the run folder that may be replaced.
    """
    with writing(output):
        if not output.is_file():
            return
    with looking_at(model):
        parts = [model] if model.is_file() else list(model.iterdir()) if model.is_dir() else []
    for part in parts:
        free = part != model and part.name != "history.csv" and part.suffix.lower() in but
        if not free and part.is_file() and output.samefile(part):
            what = "the model" if part == model else f"part of the run {model}"
            raise InputError(f"-o {output} is {what} and would be overwritten. Type another -o.")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the system says against writing `path` (no right, a full disk) into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}. Type another -o.") from None


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder. Type a file: -o {path / 'predictions.csv'}")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no regular file and cannot be replaced. Type another -o.")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} is write-protected. Type another -o.")
    try:
        folder = path.resolve().parent
    except RuntimeError:  # of pathlib
        raise InputError(f"{path} is a link that leads back to itself. Type another -o.") from None
    if not folder.is_dir():
        raise InputError(
            f"The folder {path.parent} for the output does not exist. Make it, or type another -o."
        )

"""Files of local disks and of object stores by their names: listed, brought here, put there whole.

A name with a scheme, such as `s3://bucket/new/a.csv`, is read and written by pyarrow: s3, gs, abfs, hdfs and
file, with what else belongs to it behind a question mark (`?region=eu-central-1`).
"""

from __future__ import annotations

import os
import posixpath
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tsattn.data.formats import is_read
from tsattn.errors import InputError
from tsattn.inference.inputs import STDIN, files_of

ENDINGS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}
WHOLE_BY_THEMSELVES = ("s3", "gcs", "abfs")
"""Stores in which an object appears when it was written to its end."""


def is_remote(word: str) -> bool:
    """Whether a word is a name with a scheme. `C:\\\\data` is none."""
    return "://" in word


def listed(word: str) -> list[str]:
    """That file, or all below that folder that are read, in order. InputError where there is none."""
    with _said(word) as (store, place):
        from pyarrow import fs

        info = store.get_file_info(place)
        if info.type == fs.FileType.File:
            return [word]
        inside = []
        if info.type == fs.FileType.Directory:
            inside = store.get_file_info(fs.FileSelector(place, recursive=True))
    files = sorted(one.path for one in inside if one.type == fs.FileType.File and is_read(Path(one.path)))
    if not files:
        raise InputError(f"{word}: no such file, and no folder with files that are read.")
    return [_renamed(word, path) for path in files]


def joined(folder: str, name: str) -> str:
    """The name of a file in a folder: `name` may have folders in it, with slashes."""
    if not is_remote(folder):
        return str(Path(folder) / name)
    _, place = _store(folder)
    return _renamed(folder, posixpath.join(place, name))


def exists(word: str) -> bool:
    """Whether there is a file of that name."""
    if not is_remote(word):
        return Path(word).is_file()
    with _said(word) as (store, place):
        from pyarrow import fs

        return bool(store.get_file_info(place).type == fs.FileType.File)


def brought(word: str, scratch: Path) -> Path:
    """A local file of that content and ending: the file itself, or a copy in `scratch`."""
    if not is_remote(word):
        return Path(word)
    with _said(word) as (store, place):
        copy = scratch / posixpath.basename(place)
        with store.open_input_stream(place) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 22)
        return copy


def delivered(file: Path, word: str) -> None:
    """Puts a local file there whole; what was of that name is replaced."""
    with _said(word) as (store, place):
        direct = store.type_name in WHOLE_BY_THEMSELVES
        draft = place if direct else f"{place}.{uuid.uuid4().hex}.part"
        if not direct:
            store.create_dir(posixpath.dirname(place), recursive=True)
        with file.open("rb") as source, store.open_output_stream(draft) as target:
            shutil.copyfileobj(source, target, 1 << 22)
        if not direct:
            store.move(draft, place)


def outputs_of(words: Sequence[str], folder: str, form: str) -> list[tuple[str, str]]:
    """Each file with its output: FOLDER/NAME.csv, below the sub-folders in which the files differ.

    InputError where two would have the same, or one would be one of the files.
    """
    if "-" in words or folder == "-":
        raise InputError("--engine ray reads files and writes files: - stands for a stream.")
    if not is_remote(folder) and Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"-o {folder} is a file. --engine ray writes a file for each input: type a folder.")
    folder = folder if is_remote(folder) else str(Path(folder).absolute())
    files: list[str] = []
    for word in words:
        if is_remote(word):
            files += listed(word)
        else:
            files += [str(path.absolute()) for path in files_of([word], None) if path != STDIN]
    found: dict[str, str] = {}
    for file, name in zip(files, _below(files), strict=True):
        head, _, tail = name.rpartition("/")
        output = joined(folder, f"{head}/{tail.split('.')[0]}{ENDINGS[form]}".lstrip("/"))
        if output in found:
            raise InputError(f"{found[output]} and {file} would both be written to {output}.")
        if output in files:
            raise InputError(f"{output} is one of the files to predict. Type another -o.")
        found[output] = file
    return [(file, output) for output, file in found.items()]


def _below(names: list[str]) -> list[str]:
    """Each name seen from the folder that holds them all, with slashes."""
    places = [urlsplit(name).netloc + urlsplit(name).path if is_remote(name) else name for name in names]
    parts = [place.replace(os.sep, "/").split("/") for place in places]
    shared = 0
    for step in zip(*(folders[:-1] for folders in parts), strict=False):
        if len(set(step)) > 1:
            break
        shared += 1
    return ["/".join(folders[shared:]) for folders in parts]


def _store(word: str) -> tuple[Any, str]:
    from pyarrow import ArrowException, fs

    try:
        store, place = fs.FileSystem.from_uri(word)
    except (ArrowException, OSError) as error:
        raise InputError(f"{word}: cannot be reached ({_first(error)}).") from None
    return store, place


@contextmanager
def _said(word: str) -> Iterator[tuple[Any, str]]:
    """The store and the place in it; what it says against reading or writing becomes an InputError."""
    store, place = _store(word)
    try:
        yield store, place
    except OSError as error:
        raise InputError(f"{word}: {_first(error)}.") from None


def _renamed(word: str, place: str) -> str:
    """`word` with another place in the same store."""
    parts = urlsplit(word)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{place}{query}"


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__

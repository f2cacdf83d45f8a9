"""All that a SOURCE holds, split by split, for the commands that describe and convert it.

A file is what is in it, whatever it is called; a name, a folder or a zip may have two splits.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tsattn.data.columns import TableOptions
from tsattn.data.formats import holds_splits
from tsattn.data.heads import ending
from tsattn.data.own_sets import own_set
from tsattn.data.sources import LoadedSplit, load_file, load_split
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

Part = Literal["train", "test", "all"]
"""A split, or the whole of a source that has none."""
_SPLIT_NAME = re.compile(r"(.*)_(TRAIN|TEST)", re.IGNORECASE)


def is_file(source: str, registry: Path | None = None) -> bool:
    """Whether SOURCE is one file with one split's cases: no name, folder or zip, no .npz with both."""
    path = Path(source).expanduser()
    if not path.is_file() or path.suffix.lower() == ".zip" or own_set(source, registry) is not None:
        return False
    return not holds_splits(path)


def part_of_file(path: Path) -> Part:
    """Which split a file is by its name."""
    match = _SPLIT_NAME.fullmatch(_stem(path))
    if match is None:
        return "all"
    return "train" if match[2].lower() == "train" else "test"


def load_parts(source: str, options: TableOptions, registry: Path | None = None) -> dict[Part, LoadedSplit]:
    """The splits of SOURCE that are there, labelled or not; at least one. registry as for `load_split`.

    A split that cannot be read beside one that can is said in a remark. InputError if there is none.
    """
    if is_file(source, registry):
        path = Path(source).expanduser()
        return {part_of_file(path): load_file(path, options)}
    parts: dict[Part, LoadedSplit] = {}
    refused: list[InputError] = []
    splits: tuple[Literal["train", "test"], ...] = ("train", "test")
    for split in splits:
        try:
            parts[split] = load_split(source, split, options, registry)
        except InputError as error:
            refused.append(error)
    if not parts:
        raise refused[0]
    for missing in refused:
        logger.warning("%s", missing)
    if "train" in parts and parts["train"].undivided:
        return {"all": parts["train"]}
    return parts


def sibling_test(path: Path) -> Path | None:
    """NAME_TEST beside the file NAME_TRAIN; None if `path` is no such file or it is not there."""
    match = _SPLIT_NAME.fullmatch(_stem(path))
    if match is None or match[2].lower() == "test":
        return None
    sibling = path.with_name(f"{match[1]}_{'TEST' if match[2].isupper() else 'test'}{ending(path)}")
    return sibling if sibling.is_file() else None


def _stem(path: Path) -> str:
    """The file's name without its ending, and without both of .csv.gz."""
    return path.name[: len(path.name) - len(ending(path))]


@contextmanager
def hushed() -> Iterator[list[str]]:
    """Collects what the readers would say to the user instead of having it said."""
    said: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger = logging.getLogger("tsattn.data")
    handler, before = Collect(logging.WARNING), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = before

"""What a user types to be predicted becomes a list of files, and each file the blocks of its cases."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tsattn.card import ModelCard
from tsattn.data.caseblocks import CaseBlock, numbered, of_collection, wide_block
from tsattn.data.columns import TableOptions, TableRoles, resolve_roles
from tsattn.data.csvtext import listed
from tsattn.data.folders import folder_files, glob_files, is_glob
from tsattn.data.formats import KNOWN, is_series, series_blocks
from tsattn.data.heads import open_head
from tsattn.data.longblocks import long_blocks
from tsattn.data.parsedrows import RowReader, row_reader
from tsattn.data.piped import piped_head
from tsattn.data.rows import TableHead
from tsattn.errors import InputError, looking_at
from tsattn.inference.concurrency import in_order, read_ahead
from tsattn.inference.roles import roles_of_head

STDIN = Path("-")
"""Stands for a CSV on the standard input."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read. keep: columns carried through; sort: rows of one case may stand anywhere."""

    options: TableOptions
    keep: tuple[str, ...] = ()
    sort: bool = False


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Threads that parse, and how many pieces are begun before they are asked for."""

    pool: Executor
    depth: int


def files_of(words: Sequence[str], output: Path | None) -> list[Path]:
    """The files that the words name, in order: files, patterns, folders and `-`.

    output: is left out of what a pattern or folder gives. InputError where nothing is named.
    """
    files: list[Path] = []
    for word in words:
        with looking_at(word):
            files += _files_of(word, output)
    if files.count(STDIN) > 1:
        raise InputError("- stands for stdin, which can be read once.")
    return files


def _files_of(word: str, output: Path | None) -> list[Path]:
    path = Path(word)
    if not word:
        raise InputError("An empty word was typed where a file belongs: a variable that is not set?")
    if word == "-":
        return [STDIN]
    if path.is_dir():
        inside = folder_files(path, TableOptions())
        found = [] if inside is None else [file for file in inside.files if not _same(file, output)]
        if not found:
            raise InputError(f"{path}: a folder without files to predict. Files are {KNOWN}.")
        return found
    if is_glob(word):
        return [file for file in glob_files(word).files if not _same(file, output)]
    return [path]


def check_files(files: Sequence[Path], output: Path | None) -> None:
    """Every file is there and is not the output, before hours are spent on the first."""
    for path in files:
        if path != STDIN:
            with looking_at(path):
                _check_file(path, output)


def _check_file(path: Path, output: Path | None) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder. Type the files to predict: {path / '*.csv'}")
    if not path.exists():
        raise InputError(f"{path}: no such file.")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file (a pipe?). Type - and give the data to stdin.")
    if _same(path, output):
        raise InputError(f"-o {output} is one of the files to predict. Type another name for the output.")


def _same(path: Path, output: Path | None) -> bool:
    return output is not None and output.exists() and path.exists() and output.samefile(path)


def blocks_of(
    path: Path, reading: Reading, card: ModelCard, workers: Workers, stdin: BinaryIO | None = None
) -> Generator[CaseBlock, None, None]:
    """The cases of one file in its order, with channels in the model's.

    InputError for what is wrong with the file as a whole; what is wrong with a row stands in its block.
    """
    if path != STDIN and is_series(path):
        if reading.keep:
            raise InputError(f"{path} has no columns: --keep {reading.keep[0]} is for tables.")
        for cases in series_blocks(path, card.channels, 256):
            yield of_collection(cases)
        return
    content = None
    if path == STDIN:
        if stdin is None:
            raise InputError("stdin is closed: there is nothing to read for -.")
        head: TableHead
        head, content = piped_head(stdin, "stdin")
    else:
        head = open_head(path)
    if (remark := head.remark()) is not None:
        logger.warning("%s: %s.", head.path, remark)
    roles = resolve_roles(head, roles_of_head(head, reading.options, card), card.channels)
    _say_if_reordered(head, roles)
    keep = _kept(head, roles, reading.keep)
    reader = row_reader(head, roles, reading.keep, content)
    if roles.layout == "wide":
        yield from numbered(_wide(head, roles, reader, keep, workers))
    else:
        yield from _long(head, roles, reader, keep, workers, sort=reading.sort)


def _wide(
    head: TableHead, roles: TableRoles, reader: RowReader, keep: list[int], workers: Workers
) -> Generator[CaseBlock, None, None]:
    id_at = None if roles.id is None else head.names.index(roles.id)

    def parse(piece: object) -> CaseBlock:
        return wide_block(reader.parse(piece), roles, keep, id_at)

    with (
        closing(read_ahead(reader.pieces(), workers.depth)) as pieces,
        closing(in_order(parse, pieces, workers.depth, workers.pool)) as parsed,
    ):
        for _, block in parsed:
            if len(block):
                yield block


def _long(
    head: TableHead, roles: TableRoles, reader: RowReader, keep: list[int], workers: Workers, *, sort: bool
) -> Generator[CaseBlock, None, None]:
    def parsed() -> Generator[CaseBlock, None, None]:
        with (
            closing(read_ahead(reader.pieces(), workers.depth)) as pieces,
            closing(in_order(reader.parse, pieces, workers.depth, workers.pool)) as rows,
        ):
            if not sort or roles.id is None:
                yield from long_blocks(head, roles, keep, (part for _, part in rows))
                return
            from tsattn.data.rowsort import sorted_rows

            with sorted_rows(
                (part for _, part in rows), head.names.index(roles.id), str(head.path)
            ) as together:
                yield from long_blocks(head, roles, keep, together)

    with closing(read_ahead(parsed(), workers.depth)) as blocks:
        yield from blocks


def _kept(head: TableHead, roles: TableRoles, keep: Sequence[str]) -> list[int]:
    """Positions of the columns to carry through. InputError for one that is not there or not free."""
    for name in keep:
        if name not in head.names:
            raise InputError(f"{head.path}: no column {name!r} (--keep). Columns: {listed(head.names)}.")
        if name == roles.time or any(name in columns for columns in roles.columns):
            raise InputError(
                f"{head.path}: --keep {name} is a column of the series, of which each case has many values."
                if roles.layout != "wide"
                else f"{head.path}: --keep {name} is one of the values that the model reads."
            )
    return [head.names.index(name) for name in keep]


def _say_if_reordered(head: TableHead, roles: TableRoles) -> None:
    places = [head.names.index(columns[0]) for columns in roles.columns]
    if places != sorted(places):
        logger.warning(
            "%s: the channels stand in another order than in training; they are matched by name.", head.path
        )

"""Every form of file that tsattn reads: tables, and files of series, which have no columns to speak of.

.csv .csv.gz .csv.zst .parquet .feather .arrow   tables (tables.py)
.tsv with a header                               a table too
.ts .tsv .arff .npz .npy                         series
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tsattn.data.archives import Member
from tsattn.data.collection import Collection
from tsattn.data.heads import TABLES, ending
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

SERIES = (".ts", ".tsv", ".arff", ".npz", ".npy")
"""Endings of files of series."""
READ = (*SERIES, *TABLES)
"""Endings of all files that are read, those first that win where a data set lies there in several forms."""
KNOWN = ".ts, .csv (also .gz, .zst), .parquet, .feather, .tsv, .arff, .npz or .npy"
"""The endings for people."""


def is_series(path: Path) -> bool:
    """Whether the file holds series: by its ending, a .tsv by its first line. InputError if it is gone."""
    kind = ending(path)
    if kind != ".tsv":
        return kind in SERIES
    from tsattn.data.csvdialect import CsvFile
    from tsattn.data.tsv import first_line, has_header

    with CsvFile(path).open_bytes() as file:
        return not has_header(first_line(file.read(1 << 20)))


def is_read(path: Path) -> bool:
    """Whether the file's ending is one that tsattn reads."""
    return ending(path) in READ


def unknown_form(path: Path) -> InputError:
    """The error for a file of none of these forms."""
    form = f"the form {path.suffix!r}" if path.suffix else "a file without an ending"
    return InputError(
        f"{path}: {form} is not known. Type a file {KNOWN}, "
        "or a folder or zip with NAME_TRAIN.ts and NAME_TEST.ts."
    )


def parse_series(member: Member, split: str | None = None) -> Collection:
    """The cases of a file of series. split: which of two to take where a .npz holds both.

    InputError, with line where there are lines, for whatever is wrong with it.
    """
    kind = Path(member.name).suffix.lower()
    data = member.read()
    if kind == ".ts":
        from tsattn.data.ts import parse_ts

        return parse_ts(data, member.where)
    if kind == ".tsv":
        from tsattn.data.tsv import parse_tsv

        return parse_tsv(data, member.where)
    if kind == ".arff":
        from tsattn.data.arff import parse_arff

        return parse_arff(data, member.where)
    from tsattn.data import npz

    if kind == ".npz":
        return npz.parse_npz(data, member.where, split)
    name = npz.labels_name(member.name)
    if name is None:
        raise InputError(
            f"{member.where}: a .npy file holds one array; call the one with the values NAME_X.npy and the "
            "one with the labels NAME_y.npy, and type the first."
        )
    labels = member.beside(name)
    return npz.parse_npy(data, None if labels is None else labels.read(), member.where)


def holds_splits(path: Path) -> bool:
    """Whether one file holds both splits."""
    if ending(path) != ".npz":
        return False
    from tsattn.data.npz import has_splits

    return has_splits(Member(path).read())


def channels_in(member: Member) -> int:
    """How many channels a file of series has; of a .ts file only the first case is looked at."""
    if Path(member.name).suffix.lower() != ".ts":
        return len(parse_series(member, "train").channels)
    from tsattn.data.ts_cases import read_cases
    from tsattn.data.ts_header import read_header, text_lines

    data = member.read().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    header = read_header(data, member.where)
    _, end, _ = next(text_lines(data, header.end, header.lines + 1), (0, len(data), b""))
    return read_cases(data[:end], header, member.where)[0].series.count(b":") + 1


def series_blocks(path: Path, channels: tuple[str, ...], cases: int) -> Iterator[Collection]:
    """The cases of a file of series, up to `cases` at a time, each block as long as its longest.

    channels: names of those the model was trained on, which are taken by name if the file has them, of
    others beside them too where they are more than numbers. Else, with a remark, the file's are taken in
    their order. InputError for another number of channels.
    """
    if ending(path) == ".ts":
        from tsattn.data.ts_stream import stream_ts

        parts: Iterable[Collection] = stream_ts(path)
    else:
        parts = [parse_series(Member(path))]
    for part in parts:
        yield from _blocks(part, path, channels, cases)


def _blocks(whole: Collection, path: Path, channels: tuple[str, ...], cases: int) -> Iterator[Collection]:
    have = whole.channels
    # Files without channel names number them: there, more channels are other data.
    named = not all(re.fullmatch(r"dim_\d+", name) for name in channels)
    fits = set(channels) <= set(have) and len(set(have)) == len(have)
    if have != channels and fits and (named or len(have) == len(channels)):
        places = [have.index(name) for name in channels]
        whole = replace(whole, values=whole.values[:, places], channels=channels)
        if left := ", ".join(name for name in have if name not in channels):
            logger.warning("%s: not in the training data and not used: %s.", path, left)
    elif len(have) != len(channels):
        raise InputError(
            f"{path}: {len(have)} channels; the model was trained on {len(channels)}: {', '.join(channels)}."
        )
    elif have != channels and len(have) > 1:
        logger.warning(
            "%s: the channels (%s) are not called as in training (%s); they are taken in their order.",
            path,
            ", ".join(have),
            ", ".join(channels),
        )
    for start in range(0, len(whole), cases):
        yield _cut(whole.take(np.arange(start, min(start + cases, len(whole)))))


def _cut(block: Collection) -> Collection:
    """Without the timepoints at the end at which no case is observed; at least one stays.

    The model's answer does not depend on them, its time does.
    """
    longest = int(block.lengths.max()) if block.values.shape[2] else 0
    if longest == 0:
        return replace(block, values=np.full((*block.values.shape[:2], 1), np.nan, np.float32))
    return replace(block, values=np.ascontiguousarray(block.values[:, :, :longest]))

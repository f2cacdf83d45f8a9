"""Reader of .ts files, the format of the UEA and UCR archives.

ts_header.py reads what stands before @data. Where all the rest is plain, ts_blocks.py turns it into numbers
in bulk; else ts_cases.py makes lines of text of the cases first, and a block of them that is still not plain
is read value by value, which also finds the line of an error.

Not covered: the timestamps themselves (values are taken in the order of the file), and labels that
contain blanks or ':', for which the format has no spelling.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tsattn.data.collection import Collection
from tsattn.data.ts_blocks import BLOCK, Parsed, Series, in_threads, parse_block, read_plain
from tsattn.data.ts_cases import Case, check_channels, read_cases
from tsattn.data.ts_header import Header, decoded, quoted, read_header
from tsattn.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

log = logging.getLogger(__name__)

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_MISSING = re.compile(rb"\??|[+-]?nan", re.IGNORECASE)


def read_ts(path: Path) -> Collection:
    """The cases of the .ts file at `path`; see `parse_ts`. InputError also if it cannot be opened."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Give the path of a .ts file.") from None
    return parse_ts(data, str(path))


def parse_ts(data: bytes, where: str) -> Collection:
    """The cases of a .ts file given as bytes, in its order, with ids "0", "1", ...; channels "dim_0", ...

    Values are parsed as float64 and rounded to float32; '?', NaN and nothing are missing. Classes are
    all those of @classLabel in its order. Without class labels, labels are None. What the data belie
    in the header, and channels of unequal length within a case, are said through logging.
    InputError with `where`:line for anything that cannot be read without guessing.
    """
    data = _plain_lines(data, where)
    header = read_header(data, where)
    parsed = read_plain(data, header) or _parse(read_cases(data, header, where), header, where)
    labels, classes = _labels(parsed.labels, header)
    return _collection(parsed, header, labels, classes, where)


def collection_of(
    cases: list[Case], labels: tuple[str, ...] | None, classes: tuple[str, ...], where: str
) -> Collection:
    """Cases that another reader has brought into the form of .ts lines, without the timepoints at the
    end that no case has; ids and channels as `parse_ts`.

    InputError with `where`:line for what is no number and for another number of channels.
    """
    header = Header(labels=None, classes={}, end=0, lines=0)
    check_channels(cases, header, where)
    collection = _collection(_parse(cases, header, where), header, labels, classes, where)
    seen = np.flatnonzero(collection.observed.any(axis=0))
    return replace(collection, values=collection.values[:, :, : int(seen[-1]) + 1 if seen.size else 1])


def _collection(
    parsed: Parsed, header: Header, labels: tuple[str, ...] | None, classes: tuple[str, ...], where: str
) -> Collection:
    _remark(parsed, header, where)
    cases, channels = parsed.counts.shape
    return Collection(
        values=padded(parsed, where),
        ids=tuple(map(str, range(cases))),
        channels=tuple(f"dim_{i}" for i in range(channels)),
        labels=labels,
        classes=classes,
    )


def _plain_lines(data: bytes, where: str) -> bytes:
    """`data` without byte order mark and carriage returns, line numbers unchanged."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(
            f"{where}:{line}: a NUL byte: this is a binary file or UTF-16 text, and a .ts file is "
            "plain text. Unpack it, or save it as UTF-8."
        )
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise InputError(
            f"{where}:1: the file is empty. Give a .ts file: tags, a line @data, then the cases."
        )
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def _labels(found: list[bytes], header: Header) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    if not header.labels:
        return None, ()
    spelled = header.classes or {raw: decoded(raw) for raw in sorted(set(found))}
    return tuple(spelled[raw] for raw in found), tuple(dict.fromkeys(spelled.values()))


def _parse(cases: list[Case], header: Header, where: str) -> Parsed:
    """Cases that were taken apart line by line."""
    channels = cases[0].series.count(b":") + 1

    def bulk(block: list[Case]) -> Series | None:
        return parse_block(b"\n".join([*(case.series for case in block), b""]), channels)

    blocks = list(_blocks(cases))
    parts = in_threads(bulk, blocks)
    if None in parts:
        check_channels(cases, header, where)
    read = [part or _parse_singly(block, where) for block, part in zip(blocks, parts, strict=True)]
    return Parsed(
        parts=read,
        counts=np.concatenate([part.counts for part in read]).reshape(-1, channels),
        labels=[case.label for case in cases],
        lines=[case.line for case in cases],
        stamped=any(case.stamped for case in cases),
    )


def _blocks(cases: list[Case]) -> Iterator[list[Case]]:
    block: list[Case] = []
    size = 0
    for case in cases:
        block.append(case)
        size += len(case.series)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _parse_singly(cases: list[Case], where: str) -> Series:
    """The slow path, value by value: blanks around '?', unusual numbers, and the place of an error."""
    fields = [(case.line, i, text) for case in cases for i, text in enumerate(case.series.split(b":"))]
    series = [
        np.array([_value(cell, f"{where}:{line}", i, at) for at, cell in enumerate(text.split(b","))])
        for line, i, text in fields
    ]
    counts = np.array([len(values) for values in series], dtype=np.int64)
    return Series(np.concatenate(series).astype(np.float32), counts)


def _value(cell: bytes, here: str, channel: int, at: int) -> float:
    cell = cell.strip()
    if _MISSING.fullmatch(cell):
        return np.nan
    if not _NUMBER.fullmatch(cell):
        raise InputError(
            f"{here}: found {quoted(cell)} where a number belongs (channel dim_{channel}, timepoint {at}). "
            "Write a number, or ? where nothing was measured."
        )
    value = float(cell)
    with np.errstate(over="ignore"):
        too_large = bool(np.isinf(np.float32(value)))
    if too_large:
        raise InputError(
            f"{here}: {quoted(cell)} is too large (channel dim_{channel}, timepoint {at}): values are kept "
            "as float32, up to 3.4e38. Scale the data, or write ? where nothing was measured."
        )
    return value


def padded(parsed: Parsed, where: str) -> NDArray[np.float32]:
    """(cases, channels, longest) with NaN behind each series that is shorter."""
    counts = parsed.counts
    longest = int(counts.max())
    cells, given = counts.size * longest, int(counts.sum())
    if cells > 1 << 27 and cells > 64 * given:
        line = parsed.lines[int(counts.max(axis=1).argmax())]
        raise InputError(
            f"{where}:{line}: a series of {longest} timepoints where most have "
            f"{int(np.median(counts))}; padded to it, the cases would take {cells / 2**28:.0f} GiB. "
            "If lines are joined here, part them; else cut the long case into several."
        )
    series = np.empty((counts.size, longest), np.float32)
    stops = np.cumsum([len(part.counts) for part in parsed.parts])

    def fill(work: tuple[Series, int]) -> None:
        part, stop = work
        rows = series[stop - len(part.counts) : stop]
        if len(part.values) == rows.size:
            rows[:] = part.values.reshape(rows.shape)
        else:
            rows.fill(np.nan)
            rows[np.arange(longest) < part.counts[:, None]] = part.values

    in_threads(fill, list(zip(parsed.parts, stops.tolist(), strict=True)))
    return series.reshape(*counts.shape, longest)


def _remark(parsed: Parsed, header: Header, where: str) -> None:
    counts = parsed.counts
    belied = header.belied(
        channels=counts.shape[1],
        shortest=int(counts.min()),
        longest=int(counts.max()),
        missing=any(bool(np.isnan(part.values).any()) for part in parsed.parts),
        stamped=parsed.stamped,
    )
    if header.labels and not header.classes:
        belied.append("@classLabel true without labels but labelled cases")
    if belied:
        log.warning(
            "%s: the header contradicts the data, and the data are taken as they are: %s.",
            where,
            "; ".join(belied),
        )
    ragged = np.flatnonzero((counts != counts[:, :1]).any(axis=1))
    if len(ragged):
        first = counts[ragged[0]]
        log.warning(
            "%s:%d: channels of one case have between %d and %d timepoints; the shorter are padded at "
            "their end with missing values, in %d of %d cases.",
            where, parsed.lines[ragged[0]], first.min(), first.max(), len(ragged), len(counts),
        )  # fmt: skip

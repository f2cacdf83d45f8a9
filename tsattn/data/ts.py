"""Reader of .ts files, the format of the UEA and UCR archives.

ts_header.py reads what stands before @data and ts_cases.py makes lines of text of the cases; here they
become numbers. Blocks of lines are cast in bulk by pyarrow; a block it does not understand is read value
by value, which also finds the line of an error.

Not covered: the timestamps themselves (values are taken in the order of the file), and labels that
contain blanks or ':', for which the format has no spelling.
"""

from __future__ import annotations

import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tsattn.data.arrowcalls import call, cast
from tsattn.data.collection import Collection
from tsattn.data.ts_cases import Case, check_channels, read_cases
from tsattn.data.ts_header import Header, decoded, quoted, read_header
from tsattn.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

log = logging.getLogger(__name__)

_BLOCK = 1 << 20  # bytes of text parsed at once: fits the cache, and enough blocks for every core
_COMMA, _COLON, _NEWLINE = b",:\n"
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_LARGEST = float(np.finfo(np.float32).max)
_MISSING = re.compile(rb"\??|[+-]?nan", re.IGNORECASE)


class _Series(NamedTuple):
    """Series one behind the other: values (sum of counts,) float32, counts (series,) int64."""

    values: NDArray[np.float32]
    counts: NDArray[np.int64]


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
    cases = read_cases(data, header, where)
    channels = cases[0].series.count(b":") + 1
    series = _parse(cases, channels, header, where)
    _remark(cases, channels, series, header, where)
    labels, classes = _labels(cases, header)
    return Collection(
        values=_padded(cases, channels, series, where),
        ids=tuple(map(str, range(len(cases)))),
        channels=tuple(f"dim_{i}" for i in range(channels)),
        labels=labels,
        classes=classes,
    )


def collection_of(
    cases: list[Case], labels: tuple[str, ...] | None, classes: tuple[str, ...], where: str
) -> Collection:
    """Cases that another reader has brought into the form of .ts lines, without the timepoints at the
    end that no case has; ids and channels as `parse_ts`.

    InputError with `where`:line for what is no number and for another number of channels.
    """
    header = Header(labels=None, classes={}, end=0, lines=0)
    check_channels(cases, header, where)
    channels = cases[0].series.count(b":") + 1
    series = _parse(cases, channels, header, where)
    _remark(cases, channels, series, header, where)
    values = _padded(cases, channels, series, where)
    seen = np.flatnonzero(~np.isnan(values).all(axis=(0, 1)))
    return Collection(
        values=values[:, :, : int(seen[-1]) + 1 if seen.size else 1],
        ids=tuple(map(str, range(len(cases)))),
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


def _labels(cases: list[Case], header: Header) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    if not header.labels:
        return None, ()
    spelled = header.classes or {raw: decoded(raw) for raw in sorted({case.label for case in cases})}
    return tuple(spelled[case.label] for case in cases), tuple(dict.fromkeys(spelled.values()))


def _parse(cases: list[Case], channels: int, header: Header, where: str) -> _Series:
    """Every channel of every case, in the order of the file."""
    blocks = list(_blocks(cases))
    if len(blocks) == 1:  # a thread would cost more than it saves
        parts = [_parse_bulk(cases, channels)]
    else:
        with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1, 8)) as pool:
            parts = list(pool.map(lambda block: _parse_bulk(block, channels), blocks))
    if None in parts:
        check_channels(cases, header, where)
    read = [part or _parse_singly(block, where) for part, block in zip(parts, blocks, strict=True)]
    return _Series(*(np.concatenate(arrays) for arrays in zip(*read, strict=True)))


def _blocks(cases: list[Case]) -> Iterator[list[Case]]:
    block: list[Case] = []
    size = 0
    for case in cases:
        block.append(case)
        size += len(case.series)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _parse_bulk(cases: list[Case], channels: int) -> _Series | None:
    """The fast path: all values of the block as one array of strings, cast to numbers in one call.

    None where the text is not all numbers, '?', NaN and nothing, where it has an infinity, and where a
    case has another number of channels.
    """
    text = b"\n".join([*(case.series for case in cases), b""]).replace(b"?", b"nan")
    letters = np.frombuffer(text, np.uint8)
    stops = np.flatnonzero((letters == _COMMA) | (letters == _COLON) | (letters == _NEWLINE))
    ends = np.flatnonzero(letters[stops] != _COMMA)  # (series,): index of the last value of each
    last = np.tile(np.arange(channels) == channels - 1, len(cases))
    if not np.array_equal(letters[stops[ends]] == _NEWLINE, last):
        return None
    values = _numbers(text, stops)
    if values is None or np.isinf(values).any():
        return None
    return _Series(values, np.diff(ends, prepend=-1))


def _numbers(text: bytes, stops: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """What stands before each of the offsets `stops`, where the separators are; NaN for nothing."""
    # Arrow's strings lie close together: the separators go, and the offsets move up by as many.
    offsets = np.zeros(len(stops) + 1, np.int64)
    np.subtract(stops, np.arange(len(stops)), out=offsets[1:])
    absent = offsets[1:] == offsets[:-1]
    some_absent = bool(absent.any())
    strings = pa.LargeStringArray.from_buffers(
        len(stops),
        pa.py_buffer(offsets),
        pa.py_buffer(text.translate(None, b",:\n")),
        pa.py_buffer(np.packbits(~absent, bitorder="little")) if some_absent else None,
    )
    if b" " in text or b"\t" in text:
        strings = call("ascii_trim_whitespace", strings)
    try:
        numbers = cast(strings, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Arrow's own to_numpy imports pandas, which takes longer than to read most files.
    with np.errstate(over="ignore"):  # a value too large for float32 becomes an infinity
        values = np.frombuffer(numbers.buffers()[1], np.float64, len(stops)).astype(np.float32)
    if some_absent:
        values[absent] = np.nan
    return values


def _parse_singly(cases: list[Case], where: str) -> _Series:
    """The slow path, value by value: blanks around '?', unusual numbers, and the place of an error."""
    fields = [(case.line, i, text) for case in cases for i, text in enumerate(case.series.split(b":"))]
    series = [
        np.array([_value(cell, f"{where}:{line}", i, at) for at, cell in enumerate(text.split(b","))])
        for line, i, text in fields
    ]
    counts = np.array([len(values) for values in series], dtype=np.int64)
    return _Series(np.concatenate(series).astype(np.float32), counts)


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
    if abs(value) > _LARGEST:
        raise InputError(
            f"{here}: {quoted(cell)} is too large (channel dim_{channel}, timepoint {at}): values are kept "
            "as float32, up to 3.4e38. Scale the data, or write ? where nothing was measured."
        )
    return value


def _padded(cases: list[Case], channels: int, series: _Series, where: str) -> NDArray[np.float32]:
    """(cases, channels, longest) with NaN behind each series that is shorter."""
    longest = int(series.counts.max())
    shape = (len(cases), channels, longest)
    if (series.counts == longest).all():
        return series.values.reshape(shape)
    cells = len(series.counts) * longest
    if cells > 1 << 27 and cells > 64 * series.values.size:
        line = cases[int(series.counts.argmax()) // channels].line
        raise InputError(
            f"{where}:{line}: a series of {longest} timepoints where most have "
            f"{int(np.median(series.counts))}; padded to it, the cases would take {cells / 2**28:.0f} GiB. "
            "If lines are joined here, part them; else cut the long case into several."
        )
    values = np.full((len(series.counts), longest), np.nan, np.float32)  # (cases·channels, longest)
    values[np.arange(longest) < series.counts[:, None]] = series.values
    return values.reshape(shape)


def _remark(cases: list[Case], channels: int, series: _Series, header: Header, where: str) -> None:
    counts = series.counts.reshape(len(cases), channels)
    belied = header.belied(
        channels=channels,
        shortest=int(counts.min()),
        longest=int(counts.max()),
        missing=bool(np.isnan(series.values).any()),
        stamped=any(case.stamped for case in cases),
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
            where, cases[ragged[0]].line, first.min(), first.max(), len(ragged), len(cases),
        )  # fmt: skip

"""Bulk parsing of .ts lines: blocks of text become numbers without a Python object a value.

Only what is plain is read here: numbers, '?', NaN and nothing, and labels that @classLabel lists. For the
rest these functions answer None, and the caller reads line by line, which also finds the place of an error.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from tsattn.data.arrowcalls import call, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tsattn.data.ts_header import Header

BLOCK = 1 << 20  # bytes of text parsed at once: fits the cache, and enough blocks for every core
_Work = TypeVar("_Work")
_Part = TypeVar("_Part")
_COMMA, _COLON, _NEWLINE, _UNKNOWN = b",:\n?"


class Series(NamedTuple):
    """Series one behind the other: values (sum of counts,) float32, counts (series,) int64."""

    values: NDArray[np.float32]
    counts: NDArray[np.int64]


class Lines(NamedTuple):
    """What a block of lines holds."""

    series: Series
    labels: list[bytes]


class Parsed(NamedTuple):
    """Every channel of every case in the order of the file, and what else its line says.

    parts: one block of lines behind the other. counts: (cases, channels) int64, timepoints of each.
    labels: as they stand there, none if the file has none. lines: their numbers, (cases,).
    stamped: whether values had timestamps.
    """

    parts: list[Series]
    counts: NDArray[np.int64]
    labels: list[bytes]
    lines: Sequence[int]
    stamped: bool


def read_plain(data: bytes, header: Header) -> Parsed | None:
    """The cases behind @data, if each line there is a case without timestamps or comments; else None.

    The lines of `data` end in a bare newline. None too where the header does not say whether there are
    labels, or which, since that takes a look at all the lines.
    """
    if header.labels is None or (header.labels and not header.classes):
        return None
    stop = len(data)
    while stop > header.end and data[stop - 1 : stop].isspace():
        stop -= 1
    if stop <= header.end:
        return None
    first = data.find(b"\n", header.end, stop)
    fields = data.count(b":", header.end, first if first >= 0 else stop) + 1
    classes = header.classes if header.labels else None

    def parse(span: tuple[int, int]) -> Lines | None:
        text = data[span[0] : span[1]]
        return parse_lines(text if text.endswith(b"\n") else text + b"\n", fields, classes)

    parts = in_threads(parse, list(_spans(data, header.end, stop)))
    plain = [part for part in parts if part is not None]
    if len(plain) < len(parts):
        return None
    counts = np.concatenate([part.series.counts for part in plain]).reshape(-1, fields - header.labels)
    return Parsed(
        parts=[part.series for part in plain],
        counts=counts,
        labels=[label for part in plain for label in part.labels],
        lines=range(header.lines + 1, header.lines + 1 + len(counts)),
        stamped=False,
    )


def parse_block(text: bytes, channels: int) -> Series | None:
    """The series of lines without labels; every line ends in a newline.

    None where the text is not all numbers, '?', NaN and nothing, where it has an infinity, and where a
    line has another number of channels.
    """
    fields = _fields(text, channels)
    values = None if fields is None else _numbers(text, fields.stops, fields.ends[:0])
    return None if fields is None or values is None else Series(values, np.diff(fields.ends, prepend=-1))


def in_threads(work: Callable[[_Work], _Part], pieces: list[_Work]) -> list[_Part]:
    """`work` over the pieces, in their order."""
    if len(pieces) == 1:  # a thread would cost more than it saves
        return [work(pieces[0])]
    with ThreadPoolExecutor(min(len(pieces), os.cpu_count() or 1, 8)) as pool:
        return list(pool.map(work, pieces))


def _spans(data: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Offsets of blocks of whole lines; the last may want its newline."""
    while start < stop:
        end = data.find(b"\n", min(start + BLOCK, stop), stop) + 1 or stop
        yield start, end
        start = end


def parse_lines(text: bytes, count: int, classes: dict[bytes, str] | None) -> Lines | None:
    """`text` ends in a newline; `count` fields a line are the channels and, with classes, the label."""
    if text.startswith(b"\n") or b"\n\n" in text:
        return None
    if classes is None:
        series = parse_block(text, count)
        return None if series is None else Lines(series, [])
    fields = _fields(text, count)
    if fields is None or count == 1:
        return None
    last = fields.ends[count - 1 :: count]
    counts = np.diff(fields.ends, prepend=-1).reshape(-1, count)
    bounds = zip((fields.stops[last - 1] + 1).tolist(), fields.stops[last].tolist(), strict=True)
    labels = [text[start:stop] for start, stop in bounds]
    if not set(labels) <= classes.keys() or (counts[:, -1] != 1).any():  # as a label with a comma has
        return None
    values = _numbers(text, fields.stops, last)
    return None if values is None else Lines(Series(np.delete(values, last), counts[:, :-1].ravel()), labels)


class _Fields(NamedTuple):
    """Where a text has separators: the offset of each, and which of them end a field between ':'."""

    stops: NDArray[np.int64]
    ends: NDArray[np.int64]


def _fields(text: bytes, count: int) -> _Fields | None:
    """None if not every line has `count` fields, and for brackets, as timestamps have and nan(ind)."""
    if b"(" in text:
        return None
    letters = np.frombuffer(text, np.uint8)
    separating = letters == _COMMA
    separating |= letters == _COLON
    separating |= letters == _NEWLINE
    stops = np.flatnonzero(separating)
    kinds = letters[stops]
    ends = np.flatnonzero(kinds != _COMMA)
    if len(ends) % count:
        return None
    closing = (kinds[ends] == _NEWLINE).reshape(-1, count)
    return _Fields(stops, ends) if (closing == (np.arange(count) == count - 1)).all() else None


def _numbers(text: bytes, stops: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """What stands before each of the offsets `stops`, where the separators are; NaN for nothing, anything
    for those with the indices `words`. None for what is no finite number.
    """
    # Arrow's strings lie close together: every other string is a separator, and null.
    offsets = np.zeros(2 * len(stops) + 1, np.int64)
    offsets[1::2] = stops
    np.add(stops, 1, out=offsets[2::2])
    lengths = stops - offsets[:-1:2]
    present = lengths > 0
    if b"?" in text:
        short = np.flatnonzero(lengths == 1)
        present[short[np.frombuffer(text, np.uint8)[offsets[2 * short]] == _UNKNOWN]] = False
    valid = np.zeros(2 * len(stops), bool)
    valid[::2] = present
    valid[2 * words] = False
    strings = pa.LargeStringArray.from_buffers(
        len(valid),
        pa.py_buffer(offsets),
        pa.py_buffer(text),
        pa.py_buffer(np.packbits(valid, bitorder="little")),
    )
    if b" " in text or b"\t" in text:
        strings = call("ascii_trim_whitespace", strings)
    try:
        numbers = cast(strings, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Arrow's own to_numpy imports pandas, which takes longer than to read most files.
    with np.errstate(over="ignore"):  # a value too large for float32 becomes an infinity
        values = np.frombuffer(numbers.buffers()[1], np.float64, len(valid))[::2].astype(np.float32)
    if not present.all():
        values[~present] = np.nan
    values[words] = 0
    return None if np.isinf(values).any() else values

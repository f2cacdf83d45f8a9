"""A stream of CSV bytes cut into blocks of whole records, so that each can be parsed by itself.

Records end at a line's end outside of quotes. Where quotes stand only where CSV has them, that is told
from their number; a block in which one stands elsewhere is read through with the csv module.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tsattn.data.csvtext import Head
from tsattn.errors import InputError

_MOST_OPEN = 1 << 26  # bytes that a quote may stay open
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class TextBlock:
    """Whole records, each with its line's end but the last of a file. line: number of its first line."""

    text: bytes
    line: int


def text_blocks(head: Head, chunks: Iterable[bytes]) -> Iterator[TextBlock]:
    """The records below the header, a block for about each chunk.

    chunks: the bytes of the file from its beginning. InputError, with line, for a NUL byte, and for a
    quote that is opened and not closed.
    """
    rest, line, begun, end = b"", 1, False, b""
    for chunk in chunks:
        if b"\0" in chunk:
            _refuse_nul(head, rest + chunk, line)
        if not begun:
            rest = (rest + chunk).removeprefix(b"\xef\xbb\xbf")
            if (below := _below_header(rest, head.file.separator)) is None:
                continue
            end = b"\n" if b"\n" in rest else b"\r"
            line, begun = 1 + _lines(rest[:below]), True
            chunk, rest = rest[below:], b""  # noqa: PLW2901
        text, rest = _cut(rest, chunk, end, head.file.separator)
        if text:
            yield TextBlock(text, line)
            line += _lines(text)
        elif len(rest) > _MOST_OPEN:
            break
    if rest and begun:
        if (opened := _open_quote(rest, head.file.separator)) is not None:
            raise InputError(
                f"{head.path}:{line + opened}: a quote is opened and never closed. Double it in a cell, "
                "or remove it."
            )
        yield TextBlock(rest, line)


def records(block: TextBlock, separator: str) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of every record; blank lines are left out. UnicodeDecodeError."""
    reader = csv.reader(io.StringIO(block.text.decode("utf-8"), newline=""), delimiter=separator)
    line = 0
    for cells in reader:
        if cells:
            yield block.line + line, cells
        line = reader.line_num


def _lines(text: bytes) -> int:
    """How many lines end in `text`, as the csv module counts them."""
    if b"\r" in text:
        return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == 10))  # faster than bytes.count


def _below_header(start: bytes, separator: str) -> int | None:
    """Where the first record after the header's begins; None if the header does not end in `start`."""
    reader = csv.reader(io.StringIO(start.decode("utf-8", "replace"), newline=""), delimiter=separator)
    if not next(filter(None, reader), None):
        return None
    ends = [match.end() for match in _LINE_END.finditer(start)]
    below = ends[reader.line_num - 1] if len(ends) >= reader.line_num else None
    return None if below == len(start) and start.endswith(b"\r") else below  # a newline may follow


def _cut(rest: bytes, chunk: bytes, end: bytes, separator: str) -> tuple[bytes, bytes]:
    """The records that end in `rest` and `chunk` together, and what is left."""
    if b'"' not in chunk and b'"' not in rest:
        stop = chunk.rfind(end) + 1
        return (rest + chunk[:stop], chunk[stop:]) if stop else (b"", rest + chunk)
    text = rest + chunk
    stop = _end_of_records(text, end, separator)
    return text[:stop], text[stop:]


def _end_of_records(text: bytes, end: bytes, separator: str) -> int:
    """Where the last record that ends in `text` ends; 0 if none does."""
    stop = text.rfind(end) + 1
    if not stop:
        return stop
    quotes = _regular_quotes(text, separator)
    if quotes is None:
        return _end_by_reading(text, end, separator)
    while stop and int(np.searchsorted(quotes, stop)) % 2:
        stop = text.rfind(end, 0, stop - 1) + 1
    return stop


def _regular_quotes(text: bytes, separator: str) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """The places of quotes; None if one opens within a cell or closes before its end."""
    letters = np.frombuffer(b"\n" + text + b"\n", np.uint8)
    places = np.flatnonzero(letters == 34)
    bounds = np.frombuffer(b'\r\n"' + separator.encode(), np.uint8)
    opens, closes = letters[places[0::2] - 1], letters[places[1::2] + 1]
    if not (np.isin(opens, bounds).all() and np.isin(closes, bounds).all()):
        return None
    return places - 1


def _end_by_reading(text: bytes, end: bytes, separator: str) -> int:
    """As `_end_of_records`, by the csv module, which knows a quote within a cell for a letter."""
    reader = csv.reader(io.StringIO(text.decode("utf-8", "replace"), newline=""), delimiter=separator)
    whole = seen = 0
    with contextlib.suppress(csv.Error):  # a quote that stays open makes too large a cell
        for _ in reader:
            whole, seen = seen, reader.line_num
    complete = text.endswith(end) and _open_quote(text, separator) is None
    place = 0
    for match in list(_LINE_END.finditer(text))[: seen if complete else whole]:
        place = match.end()
    return place


def _open_quote(text: bytes, separator: str) -> int | None:
    """The line, from 0, of the record in which a quote is not closed; None if all are."""
    if b'"' not in text:
        return None
    reader = csv.reader(
        io.StringIO(text.decode("utf-8", "replace"), newline=""), delimiter=separator, strict=True
    )
    line = 0
    try:
        for _ in reader:
            line = reader.line_num
    except csv.Error as error:  # the other: a letter after a closing quote, which is taken as it is
        return line if "end of data" in str(error) or "field larger" in str(error) else None
    return None


def _refuse_nul(head: Head, text: bytes, line: int) -> None:
    at = line + _lines(text[: text.index(b"\0")])
    raise InputError(f"{head.path}:{at}: a NUL byte: this is a binary file or damaged, not CSV.")

"""A .ts file as a stream of Collections, so that memory does not grow with it.

Only what is plain, with channels of one length in a case, is read so (ts_blocks.py); from the first block
on that is not, the file is read whole, which also finds the place of an error, and the cases that had come
are left out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tsattn.data.archives import Member
from tsattn.data.collection import Collection
from tsattn.data.ts import padded, parse_ts
from tsattn.data.ts_blocks import BLOCK, Lines, Parsed, parse_lines
from tsattn.data.ts_header import Header, read_header
from tsattn.errors import looking_at

logger = logging.getLogger(__name__)

_DATA = re.compile(rb"^[ \t]*@data[ \t]*\n", re.IGNORECASE | re.MULTILINE)
_NOT_PLAIN = (b"\r", b"\0", b"\xef\xbb\xbf")


def stream_ts(path: Path) -> Iterator[Collection]:
    """The cases in their order, without labels; ids and channels as `parse_ts`, whose InputErrors come."""
    done = 0
    seen = _Seen()
    for part in _plain_parts(path, seen):
        if part is None:
            whole = parse_ts(Member(path).read(), str(path))
            yield whole.take(np.arange(done, len(whole)))
            return
        yield _collection(part, done, str(path))
        done += len(part.counts)
    if not done:
        yield parse_ts(Member(path).read(), str(path))  # which says what is missing
    seen.say(str(path))


def _plain_parts(path: Path, seen: _Seen) -> Iterator[Parsed | None]:
    """Blocks of lines as numbers; None, and nothing more, where one is not plain."""
    fields = 0
    for block in _blocks(path):
        part = None
        if block is not None:
            seen.header, text = block
            fields = fields or text[: text.index(b"\n")].count(b":") + 1
            part = _parsed(text, seen.header, fields, seen)
        yield part
        if part is None:
            return


def _blocks(path: Path) -> Iterator[tuple[Header, bytes] | None]:
    """The header with blocks of whole lines below it; None where there are bytes that no plain file has."""
    header, rest = None, b""
    with _opened(path) as file:
        while chunk := file.read(BLOCK):
            if any(mark in chunk for mark in _NOT_PLAIN):
                yield None
                return
            rest += chunk
            if header is None:
                if (header := _header(rest, str(path))) is None:
                    continue
                rest = rest[header.end :]
            if stop := rest.rfind(b"\n") + 1:
                yield header, rest[:stop]
            rest = rest[stop:]
    if header is None:
        yield None
    elif rest.strip():
        yield header, rest.rstrip() + b"\n"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with looking_at(path):
        file = path.open("rb")
    with file:
        yield file


def _header(start: bytes, where: str) -> Header | None:
    """The header in the beginning of a file; None if it is not whole there."""
    match = _DATA.search(start)
    header = None if match is None else read_header(start[: match.end()], where)
    return header if match is not None and header is not None and header.end == match.end() else None


def _parsed(text: bytes, header: Header, fields: int, seen: _Seen) -> Parsed | None:
    if header.labels is None or (header.labels and not header.classes):
        return None
    lines: Lines | None = parse_lines(text, fields, header.classes if header.labels else None)
    if lines is None:
        return None
    counts = lines.series.counts.reshape(-1, fields - header.labels)
    if (counts != counts[:, :1]).any():  # which is said, with how many of all there are
        return None
    first = header.lines + 1 + seen.cases
    part = Parsed([lines.series], counts, [], range(first, first + len(counts)), stamped=False)
    seen.add(part)
    return part


def _collection(part: Parsed, first: int, where: str) -> Collection:
    cases, channels = part.counts.shape
    return Collection(
        values=padded(part, where),
        ids=tuple(map(str, range(first, first + cases))),
        channels=tuple(f"dim_{i}" for i in range(channels)),
    )


@dataclass
class _Seen:
    """What of all the blocks the header may belie."""

    header: Header | None = None
    cases: int = 0
    channels: int = 0
    shortest: int = 1 << 62
    longest: int = 0
    missing: bool = False

    def add(self, part: Parsed) -> None:
        """One block more."""
        self.cases += len(part.counts)
        self.channels = part.counts.shape[1]
        self.shortest = min(self.shortest, int(part.counts.min()))
        self.longest = max(self.longest, int(part.counts.max()))
        self.missing = self.missing or any(bool(np.isnan(series.values).any()) for series in part.parts)

    def say(self, where: str) -> None:
        """A remark where the header says other than the data."""
        if self.header is None or not self.cases:
            return
        belied = self.header.belied(
            channels=self.channels,
            shortest=self.shortest,
            longest=self.longest,
            missing=self.missing,
            stamped=False,
        )
        if belied:
            logger.warning(
                "%s: the header contradicts the data, and the data are taken as they are: %s.",
                where,
                "; ".join(belied),
            )

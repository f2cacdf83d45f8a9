"""A CSV that comes through a pipe: its beginning is looked at, and then read on, once."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tsattn.data.csvdialect import CsvFile
from tsattn.data.csvtext import Head, head_of
from tsattn.errors import InputError

_START, _LINES, _MOST, _CHUNK = 1 << 16, 10, 1 << 23, 1 << 20
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True)
class _Beginning(CsvFile):
    """A file of which only the beginning is there."""

    start: bytes = b""

    def open_bytes(self) -> Any:
        """The beginning."""
        return io.BytesIO(self.start)


def piped_head(stream: BinaryIO, name: str) -> tuple[Head, Iterator[bytes]]:
    """The head of a CSV, plain or packed by gzip or zstd, and all its bytes in chunks.

    name: how messages call it. InputError for what is no CSV with rows.
    """
    chunks = _chunks(stream, name)
    start = b""
    for chunk in chunks:
        start += chunk
        lines = max(start.count(b"\n"), start.count(b"\r"))
        if len(start) >= _START and (lines >= _LINES or len(start) >= _MOST):
            break
    shown = start[: max(start.rfind(b"\n"), start.rfind(b"\r")) + 1] or start
    head = head_of(_Beginning(Path(name), start=shown))
    return head, _from(start, chunks)


def _from(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from chunks


def _chunks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    import pyarrow as pa

    first = stream.read(4)
    packed = next((kind for magic, kind in _PACKED.items() if first.startswith(magic)), None)
    source: Any = _Rejoined(first, stream)
    if packed is not None:
        source = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), packed)
    try:
        while chunk := source.read(_CHUNK):
            yield chunk
    except OSError as error:
        raise InputError(f"{name}: cannot be unpacked ({error}): damaged or cut short.") from None


class _Rejoined(io.RawIOBase):
    """A stream of which some bytes were taken."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._read: Any = getattr(rest, "read1", rest.read)  # what has come, without waiting for more

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, those that were taken first."""
        if self._first:
            data, self._first = self._first[:size], self._first[size:] if size >= 0 else b""
            return data
        return self._read(size)

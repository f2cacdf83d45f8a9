"""The head of a .ts file: what it declares up to the line @data, and what of it the data belie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tsattn.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = {b"true": True, b"false": False}
_FLAGS = {
    b"@univariate": "univariate",
    b"@equallength": "equal",
    b"@missing": "missing",
    b"@timestamps": "stamped",
}
_COUNTS = {b"@dimensions": "channels", b"@dimension": "channels", b"@serieslength": "length"}


@dataclass(frozen=True, kw_only=True)
class Header:
    """What the head of a .ts file declares; None where it says nothing.

    labels: True if every case ends in a label. classes: the labels of @classLabel, bytes as in the
        file against their text, in the order declared; empty if the tag lists none.
    channels, length: @dimensions and @seriesLength. univariate, equal, missing, stamped: the flags
        @univariate, @equalLength, @missing and @timeStamps.
    end: offset of the first byte after the line @data; lines: how many lines stand before it.
    """

    labels: bool | None = None
    classes: dict[bytes, str]
    channels: int | None = None
    length: int | None = None
    univariate: bool | None = None
    equal: bool | None = None
    missing: bool | None = None
    stamped: bool | None = None
    end: int
    lines: int

    def belied(
        self, *, channels: int, shortest: int, longest: int, missing: bool, stamped: bool
    ) -> list[str]:
        """What the data contradict, one phrase a contradiction; the arguments are what they hold.

        A flag that allows more than this file needs (@equalLength false, @missing true) speaks of
        the whole data set and is no contradiction.
        """
        found = []
        if self.channels not in (None, channels):
            found.append(f"@dimensions {self.channels} but {channels} channels")
        if self.univariate not in (None, channels == 1):
            found.append(f"@univariate {_word(self.univariate)} but {channels} channel(s)")
        if self.equal and shortest != longest:
            found.append(f"@equalLength true but lengths from {shortest} to {longest}")
        if self.length is not None and (longest > self.length or shortest == longest != self.length):
            found.append(f"@seriesLength {self.length} but up to {longest} timepoints")
        if self.missing is False and missing:
            found.append("@missing false but missing values")
        if self.stamped not in (None, stamped):
            found.append(f"@timeStamps {_word(self.stamped)} but {'' if stamped else 'no '}timestamps")
        return found


def text_lines(data: bytes, start: int, number: int) -> Iterator[tuple[int, int, bytes]]:
    """The lines of `data` from offset `start` on that are neither blank nor a comment (# or %).

    Yields (line number, offset of the line after it, line without outer blanks); the first line
    has the number `number`.
    """
    while start < len(data):
        stop = data.find(b"\n", start)
        stop = len(data) if stop < 0 else stop
        line = data[start:stop].strip()
        start = stop + 1
        if line and line[0] not in b"#%":
            yield number, start, line
        number += 1


def read_header(data: bytes, where: str) -> Header:
    """The head of the .ts file `data`, whose lines end in a bare newline.

    InputError, beginning with `where`:line, for a line that is no tag, a @classLabel that is neither
    true nor false, a regression problem, and a file without @data.
    """
    said: dict[str, Any] = {"classes": {}}
    for number, end, line in text_lines(data, 0, 1):
        tag, *words = line.split()
        if tag.lower() == b"@data" and not words:
            return Header(**said, end=end, lines=number)
        said |= _declared(tag.lower(), words, line, f"{where}:{number}")
    last = len(data.splitlines())
    raise InputError(
        f"{where}:{last}: no line @data up to this last line: this is no .ts file or it was cut "
        "short. Put @data on a line of its own before the first case."
    )


def _declared(tag: bytes, words: list[bytes], line: bytes, here: str) -> dict[str, Any]:
    """The fields of Header that one tag sets; none for a tag of no use here, such as @problemName."""
    if tag in _FLAGS:
        return {_FLAGS[tag]: _flag(words)}
    if tag in _COUNTS:
        return {_COUNTS[tag]: int(words[0]) if words and re.fullmatch(rb"\d{1,9}", words[0]) else None}
    if tag == b"@classlabel":
        return _class_label(words, here)
    if tag == b"@targetlabel" and _flag(words):
        raise InputError(
            f"{here}: @targetLabel true: this is a regression problem, its targets are numbers. "
            "tsattn classifies: give a file with @classLabel true LABEL ..."
        )
    if tag == b"@data":
        raise InputError(
            f"{here}: @data is followed by {quoted(line[5:])}; "
            "it must stand alone, the cases begin on the next line."
        )
    if not tag.startswith(b"@"):
        raise InputError(
            f"{here}: found {quoted(line)} before @data, where a .ts file has only tags such as "
            "@classLabel. Put # before a comment and @data before the cases; "
            "if this is no .ts file, check the name."
        )
    return {}


def decoded(raw: bytes) -> str:
    """`raw` as text: UTF-8, else Latin-1, which old archive files are in."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def quoted(raw: bytes) -> str:
    """`raw` for a message: decoded, in quotes, cut to 40 characters."""
    text = decoded(raw.strip())
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _class_label(words: list[bytes], here: str) -> dict[str, Any]:
    labels = _flag(words)
    if labels is None:
        raise InputError(
            f"{here}: @classLabel is followed by {quoted(b' '.join(words)) if words else 'nothing'}. "
            "Write @classLabel true LABEL LABEL ..., or @classLabel false if the cases have no labels."
        )
    return {"labels": labels, "classes": {word: decoded(word) for word in words[1:]} if labels else {}}


def _flag(words: list[bytes]) -> bool | None:
    return _WORDS.get(words[0].lower()) if words else None


def _word(flag: bool | None) -> str:
    return str(flag).lower()

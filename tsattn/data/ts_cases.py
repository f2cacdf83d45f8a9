"""The cases of a .ts file as lines: label and timestamps taken off.

A case is a line: its channels joined by ':', their values by ',', and the label behind the last ':'.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tsattn.data.ts_header import Header, quoted, text_lines
from tsattn.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_STAMPED = re.compile(rb"\([^(),]*,([^(),]*)\)")


class Case(NamedTuple):
    """One line of the file: its number, its series, and its label as it stands there.

    series: channels joined by ':' and values by ',', as text. label: empty if the file has none.
    stamped: whether the values had timestamps, which `series` no longer has.
    """

    line: int
    series: bytes
    label: bytes
    stamped: bool


def read_cases(data: bytes, header: Header, where: str) -> list[Case]:
    """The cases behind @data, in order; at least one.

    InputError with `where`:line for a label missing or not listed, a tag among the cases, pairs with
    timestamps that are no pairs, and a file that ends with its header.
    """
    cases = list(_cases(data, header, where))
    if not cases:
        raise InputError(
            f"{where}:{header.lines}: no case after @data: the file is a header only or was cut short."
        )
    if header.labels is None:
        _check_unlabelled(cases, where)
    return cases


def _cases(data: bytes, header: Header, where: str) -> Iterator[Case]:
    for number, _, line in text_lines(data, header.end, header.lines + 1):
        here = f"{where}:{number}"
        if line.startswith(b"@"):
            raise InputError(
                f"{here}: the tag {quoted(line)} stands among the cases. "
                "Tags belong before @data: are two files joined here?"
            )
        series, label = _split_label(line, header, here) if header.labels else (line, b"")
        stamped = b"(" in series
        if stamped:
            series = _without_stamps(series, here)
        yield Case(number, series, label, stamped)


def _split_label(line: bytes, header: Header, here: str) -> tuple[bytes, bytes]:
    series, colon, label = line.rpartition(b":")
    label = label.strip()
    if colon and label in header.classes:
        return series, label
    # What follows the last ':' is then the last channel, or the end of a timestamp.
    unlabelled = b"," in label or series.count(b"(") != series.count(b")")
    if not colon or not label or unlabelled:
        raise InputError(
            f"{here}: the case has no label, and @classLabel true promises one. "
            "Put ':' and the label at the end of the line."
        )
    if header.classes:
        listed = list(header.classes.values())
        shown = ", ".join(map(repr, listed[:10])) + (", ..." if len(listed) > 10 else "")
        raise InputError(
            f"{here}: the label {quoted(label)} is not listed by @classLabel, which has {shown}. "
            "Add it there, or mend the label; upper and lower case differ."
        )
    return series, label


def _without_stamps(series: bytes, here: str) -> bytes:
    # The blanks keep two pairs without a comma between them from melting into one number.
    bare = _STAMPED.sub(rb" \1 ", series)
    if b"(" in bare or b")" in bare:
        at = re.search(rb"[()][^:]*", bare)
        raise InputError(
            f"{here}: found {quoted(at[0] if at else bare)} in a case with timestamps. "
            "Write each value as (time,value) and put commas between them."
        )
    return bare


def _check_unlabelled(cases: list[Case], where: str) -> None:
    """Refuses to guess: without the tag @classLabel, a last field of one value may be a label."""
    for case in cases:
        series, _, last = case.series.rpartition(b":")
        if b"," in last or b"," not in series:
            return
    raise InputError(
        f"{where}:{cases[0].line}: the cases end in what looks like a label ({quoted(last)} the last), but "
        "there is no @classLabel. Write @classLabel true LABEL LABEL ... before @data, or "
        "@classLabel false if it is a channel of one timepoint."
    )


def check_channels(cases: list[Case], header: Header, where: str) -> None:
    """InputError with `where`:line for the first case with another number of channels than the rest.

    The header's number counts if any case has it, else that of the first case.
    """
    counts = [case.series.count(b":") + 1 for case in cases]
    expected = header.channels if header.channels in counts else counts[0]
    for case, count in zip(cases, counts, strict=True):
        if count != expected:
            raise InputError(
                f"{where}:{case.line}: {count} channel(s) where {expected} were expected, as in the other "
                "cases. A case is one line: its channels with ':' between them"
                + (", then ':' and the label." if header.labels else ".")
            )

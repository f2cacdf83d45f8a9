"""A CSV cut into blocks, wherever its bytes are cut, has the records that the csv module reads."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsattn.data.csvblocks import records, text_blocks
from tsattn.data.csvdialect import CsvFile
from tsattn.data.csvtext import Head
from tsattn.errors import InputError


def head(separator: str = ",") -> Head:
    return Head(Path("x.csv"), ("id", "v"), skip=1, rows=(), file=CsvFile(Path("x.csv"), separator))


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


cells = st.text(st.sampled_from('ab",\r\n é'), max_size=6)


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(cells, cells), max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 40),
    closed=st.booleans(),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_records_are_those_of_the_csv_module(
    rows: list[tuple[str, str]], end: str, size: int, closed: bool, bom: bytes
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)  # else a bare \r is not quoted
    writer.writerows([("id", 'a "name"'), *rows])
    data = text.getvalue().encode()
    if not closed and rows:
        data = data.removesuffix(end.encode())
    found = [r for block in text_blocks(head(), chunks(bom + data, size)) for r in records(block, ",")]
    reader = csv.reader(io.StringIO(data.decode(), newline=""))
    line, expected = 1, []
    for cells in reader:
        if cells:
            expected.append((line, cells))
        line = reader.line_num + 1
    assert found == expected[1:]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("body", "ids"),
    [
        (b'5" pipe,1\n6" pipe,2\n7" pipe,3\n', ['5" pipe', '6" pipe', '7" pipe']),
        (b'5" pipe,1\n"two\nlines",2\nlast,3\n', ['5" pipe', "two\nlines", "last"]),
        (b"a,1\rb,2\rc,3", ["a", "b", "c"]),
        (b"a,1\rb,2\r", ["a", "b"]),
        (b"\n\na,1\n\n\nb,2\n\n", ["a", "b"]),
    ],
)
def test_quotes_within_cells_and_other_line_ends(body: bytes, ids: list[str], size: int) -> None:
    end = b"\r" if b"\n" not in body else b"\n"
    data = b"id,v" + end + body
    found = [r for block in text_blocks(head(), chunks(data, size)) for r in records(block, ",")]
    assert [cells[0] for _, cells in found] == ids


def test_an_open_quote_and_a_nul_byte_are_said_with_their_line() -> None:
    with pytest.raises(InputError, match=r"x\.csv:3: a quote is opened and never closed"):
        list(text_blocks(head(), chunks(b'id,v\na,1\n"b,2\nc,3\n', 4)))
    with pytest.raises(InputError, match=r"x\.csv:4: a NUL byte"):
        list(text_blocks(head(), chunks(b"id,v\na,1\nb,2\nc,\x00\n", 6)))

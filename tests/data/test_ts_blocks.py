"""The bulk path of the .ts reader: the same as line by line, and silent about what is not plain."""

from __future__ import annotations

import importlib.util
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsattn.data import ts, ts_blocks
from tsattn.data.collection import Collection
from tsattn.data.ts import parse_ts
from tsattn.data.ts_blocks import read_plain
from tsattn.data.ts_header import read_header
from tsattn.errors import InputError

HEAD = "@classLabel true a b,c\n@data\n"


def embedded() -> list[Path]:
    """Files of aeon's package that hold classes and no timestamps."""
    found = importlib.util.find_spec("aeon")
    assert found is not None
    assert found.origin is not None
    files = sorted((Path(found.origin).parent / "datasets" / "data").glob("*/*.ts"))
    return [
        path for path in files if not re.search(rb"(?i)@(targetlabel|timestamps) true", path.read_bytes())
    ]


def is_plain(text: str) -> bool:
    data = text.encode()
    return read_plain(data, read_header(data, "toy.ts")) is not None


def line_by_line(data: bytes) -> Collection:
    """The same cases read with a comment among them, which the bulk path leaves alone."""
    start = data.index(b"\n", data.lower().index(b"@data")) + 1
    commented = data[:start] + b"# a comment\n" + data[start:]
    assert read_plain(commented, read_header(commented, "toy.ts")) is None
    return parse_ts(commented, "toy.ts")


def assert_same(one: Collection, other: Collection) -> None:
    np.testing.assert_array_equal(one.values, other.values, strict=True)
    assert (one.ids, one.channels, one.labels, one.classes) == (
        other.ids, other.channels, other.labels, other.classes,
    )  # fmt: skip


@pytest.mark.parametrize("block", [4096, ts_blocks.BLOCK])
@pytest.mark.parametrize("path", embedded(), ids=lambda path: path.stem)
def test_real_files_take_it_and_read_the_same(
    path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ts_blocks, "BLOCK", block)
    monkeypatch.setattr(ts, "BLOCK", block)
    data = path.read_bytes().replace(b"\r\n", b"\n")
    assert read_plain(data, read_header(data, str(path))) is not None
    assert_same(parse_ts(data, "toy.ts"), line_by_line(data))


NUMBERS = ["1", "-2.5", "3e-2", ".5", "6.", " 7 "]
CELLS = st.sampled_from([*NUMBERS, "?", "NaN", "nan", "", "1e39", "0x", "#1", "(1", "inf"])
CHANNELS = st.lists(CELLS, min_size=1, max_size=4).map(",".join)
SERIES = st.lists(CHANNELS, min_size=1, max_size=3).map(":".join)
CASES = st.tuples(SERIES, st.sampled_from(["a", "b,c", " a ", "?", "A", ""])).map(":".join)
LINES = st.lists(st.one_of(CASES, st.sampled_from(["", " ", "# a comment", "@data"])), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(lines=LINES, end=st.sampled_from(["", "\n", "\n\n", " \n"]), labelled=st.sampled_from([True, False]))
def test_what_it_reads_is_what_the_lines_say(lines: list[str], end: str, labelled: bool) -> None:
    """Whenever the bulk path answers, line by line gives the same answer, and no error."""
    head = HEAD if labelled else "@classLabel false\n@data\n"
    data = (head + "\n".join(lines) + end).encode()
    if read_plain(data, read_header(data, "toy.ts")) is not None:
        assert_same(parse_ts(data, "toy.ts"), line_by_line(data))


@pytest.mark.parametrize(
    "cases",
    [
        "1,2:a\n\n3,4:a\n",
        "\n1,2:a\n",
        "1,2:a\n# why\n3,4:a\n",
        "1,2:b,c\n",
        "1,2: a\n",
        "1,2:?\n",
        "1,x:a\n",
        "1,1e39:a\n",
        "1,inf:a\n",
        "(0,1),(1,2):a\n",
        "1,2:3,4:a\n1,2:a\n",
        "1,2:3,c\n",
        "1,-?:a\n",
        "1,?(2):a\n",
        "1,nan(ind):a\n",
        "a\n",
        "",
        "\n \n",
    ],
)
def test_leaves_alone_what_needs_a_look(cases: str) -> None:
    assert not is_plain(HEAD + cases)


@pytest.mark.parametrize("head", ["@data\n", "@classLabel true\n@data\n"])
def test_leaves_alone_what_the_header_does_not_say(head: str) -> None:
    assert not is_plain(head + "1,2:a\n")


def test_blank_lines_are_no_cases_of_an_unlabelled_file() -> None:
    text = "@classLabel false\n@data\n1,2\n\n3,4\n"
    assert not is_plain(text)
    assert len(parse_ts(text.encode(), "toy.ts")) == 2


@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_how_the_file_ends_is_no_matter(end: str) -> None:
    text = f"{HEAD}1,2:a\n3,?:a{end}"
    assert is_plain(text)
    np.testing.assert_array_equal(parse_ts(text.encode(), "toy.ts").values[:, 0], [[1, 2], [3, np.nan]])


def test_a_line_longer_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ts_blocks, "BLOCK", 8)
    rows = [",".join(str(case * 100 + i) for i in range(50 - case)) for case in range(5)]
    text = HEAD + "".join(f"{row}:{row}:a\n" for row in rows)
    assert is_plain(text)
    assert_same(parse_ts(text.encode(), "toy.ts"), line_by_line(text.encode()))


def test_remarks_name_the_line(caplog: pytest.LogCaptureFixture) -> None:
    text = f"{HEAD}1,2:3,4:a\n1,2:3:a\n"
    assert is_plain(text)
    with caplog.at_level(logging.WARNING):
        parse_ts(text.encode(), "toy.ts")
    assert [message.split()[0] for message in caplog.messages] == ["toy.ts:4:"]


def test_only_a_question_mark_by_itself_is_missing() -> None:
    text = "@classLabel true nan xnan ?\n@data\n?,1,?:?\n?:nan\n"
    assert is_plain(text)
    read = parse_ts(text.encode(), "toy.ts")
    np.testing.assert_array_equal(read.values[:, 0], [[np.nan, 1, np.nan], [np.nan] * 3])
    assert read.labels == ("?", "nan")
    for label in ("x?", "?"):
        text = f"@classLabel true nan xnan\n@data\n1,2:{label}\n"
        with pytest.raises(InputError, match=rf"toy\.ts:3: the label '{re.escape(label)}' is not listed"):
            parse_ts(text.encode(), "toy.ts")


@pytest.mark.parametrize("value", ["-?", "?(2)", "nan(ind)"])
def test_what_only_begins_like_a_missing_value_is_an_error(value: str) -> None:
    with pytest.raises(InputError, match=r"^toy\.ts:3: found "):
        parse_ts(f"{HEAD}1,{value}:a\n".encode(), "toy.ts")


def test_the_largest_float32_is_the_same_on_both_paths() -> None:
    """It rounds down to it, and the next is too large."""
    for beside in ("", "#\n"):
        read = parse_ts(f"{HEAD}{beside}1,3.40282351e38:a\n".encode(), "toy.ts")
        assert read.values[0, 0, 1] == np.finfo(np.float32).max
        with pytest.raises(InputError, match=r"'3\.4028236e38' is too large"):
            parse_ts(f"{HEAD}{beside}1,3.4028236e38:a\n".encode(), "toy.ts")


def test_a_header_alone_is_told(tmp_path: Path) -> None:
    for end in ("", "\n", " \n\n"):
        with pytest.raises(InputError, match=r"^toy\.ts:2: no case after @data"):
            parse_ts(f"@classLabel true a b\n@data{end}".encode(), "toy.ts")


def test_a_blank_line_at_the_start_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ts_blocks, "BLOCK", 3)
    text = "@classLabel false\n@data\n1,2\n\n3,4\n"  # the second block is "\n3,4\n"
    assert not is_plain(text)
    assert len(parse_ts(text.encode(), "toy.ts")) == 2


def test_one_label_spelled_in_two_encodings_is_one_class() -> None:
    data = b"@classLabel true \xe9 \xc3\xa9\n@data\n1:\xe9\n2:\xc3\xa9\n"
    read = parse_ts(data, "toy.ts")
    assert (read.labels, read.classes) == (("é", "é"), ("é",))

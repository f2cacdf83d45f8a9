"""A .ts file read as a stream has the cases, and the errors, of the file read whole."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from tsattn.data import ts_stream
from tsattn.data.sources import embedded_folder
from tsattn.data.ts import read_ts
from tsattn.data.ts_stream import stream_ts
from tsattn.errors import InputError


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ts_stream, "BLOCK", 5000)


def check(path: Path, least_blocks: int) -> None:
    whole, blocks = read_ts(path), list(stream_ts(path))
    assert len(blocks) >= least_blocks
    assert tuple(name for block in blocks for name in block.ids) == whole.ids
    start = 0
    for block in blocks:
        assert block.channels == whole.channels
        longest = block.values.shape[2]
        expected = whole.values[start : start + len(block)]
        np.testing.assert_array_equal(block.values, expected[:, :, :longest])
        assert np.isnan(expected[:, :, longest:]).all()
        start += len(block)


@pytest.mark.parametrize("name", ["JapaneseVowels", "GunPoint", "PickupGestureWiimoteZ"])
def test_embedded_sets(name: str) -> None:
    folder = embedded_folder(name)
    assert folder is not None
    check(folder / f"{name}_TEST.ts", 5)


CASES = "".join(f"{n}.5,?,{n}:1,2,3:{'ab'[n % 2]}\n" for n in range(2000))
HEADER = "@problemName x\n# a comment\n@dimensions 2\n@equalLength true\n@classLabel true a b\n@data\n"


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (HEADER + CASES, 6),
        (HEADER + CASES + "\n\n  \n", 6),
        (HEADER + CASES.removesuffix("\n"), 6),
        ((HEADER + CASES).replace("\n", "\r\n"), 1),
        (HEADER + CASES + "# a comment\n" + CASES, 6),
        (HEADER + CASES + "1,2:3:a\n" + CASES, 6),
        (HEADER.replace(" a b", "") + CASES, 1),
        (
            HEADER.replace("@dimensions 2\n", "").replace("true a b", "false")
            + CASES.replace(":a", "").replace(":b", ""),
            6,
        ),
    ],
)
def test_plain_or_not(text: str, blocks: int, tmp_path: Path) -> None:
    path = tmp_path / "x.ts"
    path.write_bytes(text.encode())
    check(path, blocks)


@pytest.mark.parametrize("text", [HEADER, HEADER.replace("@data\n", ""), "@data", ""])
def test_a_file_without_cases(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ts"
    path.write_text(text)
    with pytest.raises(InputError) as whole:
        read_ts(path)
    with pytest.raises(InputError) as streamed:
        list(stream_ts(path))
    assert str(streamed.value) == str(whole.value)


@pytest.mark.parametrize(
    "line", ["1,2,3:4,5,high:a\n", "1,2,3:a\n", "1,2,3:4,5,1e999:a\n", "1,2,3:4,5,6:c\n"]
)
def test_an_error_far_down_is_that_of_the_whole_file(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ts"
    path.write_text(HEADER + CASES + line + CASES)
    with pytest.raises(InputError) as whole:
        read_ts(path)
    with pytest.raises(InputError) as streamed:
        list(stream_ts(path))
    assert str(streamed.value) == str(whole.value)


def test_what_the_header_belies_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.ts"
    path.write_text(HEADER.replace("@dimensions 2", "@dimensions 7") + CASES + "1:2:a\n")
    with caplog.at_level(logging.WARNING):
        list(stream_ts(path))
    assert len(caplog.records) == 1
    assert "@dimensions 7 but 2 channels; @equalLength true but lengths from 1 to 3" in caplog.text

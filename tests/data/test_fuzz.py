"""The fast core of the fuzzing, and that its watch sees what it should; `make fuzz` is the long run."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FUZZING = Path(__file__).with_name("fuzzing.py")

SPOILERS = """
import os, time
from fuzzing import Outcome, _read

def judged(spoilt, folder):
    word = "cases"
    if spoilt.number == 1:
        time.sleep(60)
    if spoilt.number == 3:
        os.abort()
    if spoilt.number == 4:
        word, _ = _read(folder / spoilt.name, lambda: [bytearray(1 << 31)])
    return Outcome(spoilt.number, spoilt.name, word, "", 0.0)
"""


@pytest.fixture
def fuzzing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, which the processes that it starts can import too."""
    monkeypatch.syspath_prepend(str(FUZZING.parent))
    return importlib.import_module("fuzzing")


def test_spoilt_files_become_cases_or_a_clear_error() -> None:
    done = subprocess.run(
        [sys.executable, str(FUZZING), "--count", "1500", "--seed", "3", "--processes", "2"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    said = re.search(r"1500 files: (\d+) cases, (\d+) errors, 0 faults", done.stdout)
    assert said is not None, done.stdout
    assert min(map(int, said.groups())) > 200, "neither all is refused nor all is taken"


def test_the_same_seed_spoils_alike(fuzzing: Any, tmp_path: Path) -> None:
    sources = fuzzing.originals(tmp_path)
    files = [fuzzing.spoil(sources, 1, number) for number in range(50)]
    assert files == [fuzzing.spoil(sources, 1, number) for number in range(50)]
    assert files != [fuzzing.spoil(sources, 2, number) for number in range(50)]
    assert len({file.data for file in files}) > 45


def test_originals_are_read(fuzzing: Any, tmp_path: Path) -> None:
    for source in fuzzing.originals(tmp_path):
        for options in source.options:
            whole = fuzzing.Spoilt(0, source.name, source.data, options, ())
            outcome = fuzzing.judge(whole, tmp_path)
            assert outcome.word == "cases" or options.layout == "file", (source.name, options, outcome)


def test_hangs_crashes_and_memory_are_seen(
    fuzzing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spoilers.py").write_text(SPOILERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    spoilers = importlib.import_module("spoilers")
    found = list(fuzzing.outcomes(0, list(range(6)), spoilers.judged, 2.0))
    assert [one.number for one in found] == list(range(6))
    assert [one.word for one in found] == [
        "cases", "takes more than 2 s", "cases", "died", "another exception", "cases",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("a/t.csv:3: 1 fields, the header has 2.", "error"),
        ("a/t.csv: the file is empty. A table begins", "error"),
        ("a/t.csv: something is wrong", "an error without a line"),
        ("line 3 is wrong", "an error without the file"),
    ],
)
def test_messages_are_judged(message: str, word: str, fuzzing: Any) -> None:
    assert fuzzing._judged(message, Path("a/t.csv"))[0] == word

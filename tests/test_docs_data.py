"""docs/data.md does what it says: its files are written, its commands run, its lines of output come.

A file is a fenced block after a paragraph that begins with, or ends in, its name in backquotes. A line of
output may be longer and padded more than the document shows. `tsattn train` is run with a small model.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import documented
from typer.testing import CliRunner

from tsattn.cli.app import app

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"((?:^[^\n`#][^\n]*\n|^`[^`\n][^\n]*\n)+)?\n?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
FILE_NAME = re.compile(r"`([\w./-]+\.\w+)`")


def blocks() -> Iterator[tuple[str, str, str]]:
    """(paragraph before, language, content) of every fenced block."""
    for match in BLOCK.finditer(TEXT):
        yield match[1] or "", match[2], match[3]


def files() -> dict[str, str]:
    """Name and content of the example files."""
    found = {}
    for before, language, content in blocks():
        if language != "console":
            names = FILE_NAME.findall(before)
            found[names[0] if before.startswith("`") else names[-1]] = content
    return found


@pytest.fixture(autouse=True)
def _in_a_folder_with_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in files().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_the_document_has_an_example_of_each_form() -> None:
    endings = {Path(name).suffix for name in files()}
    assert endings == {".csv", ".ts", ".tsv", ".arff", ".yaml"}
    assert len(documented(TEXT)) > 15


def test_the_commands_print_what_the_document_shows() -> None:
    for command, expected in documented(TEXT):
        words = shlex.split(command)
        assert words[0] == "tsattn", command
        rest = map(narrow, run(words[1:]).splitlines())
        for line in expected:
            assert any(narrow(line) in printed for printed in rest), (command, line)


def test_the_commands_that_are_printed_train(tmp_path: Path) -> None:
    printed = [
        line for _, lines in documented(TEXT) for line in lines if line.strip().startswith("tsattn train")
    ]
    assert len(printed) == 3
    for line in printed:
        run(shlex.split(line)[1:])


def run(words: list[str]) -> str:
    """What the command prints; a training is real, but of a model as small as can be."""
    small = ["--epochs", "1", "--width", "8", "--heads", "2", "--layers", "1", "--tokens", "linear"]
    done = CliRunner().invoke(app, [*words, *(small if words[0] == "train" else [])], prog_name="tsattn")
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.output


def narrow(line: str) -> str:
    """The line with one blank where columns are padded."""
    return " ".join(line.split())

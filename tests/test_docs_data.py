"""docs/data.md does what it says: its files are written, its commands run, its lines of output come.

A file is a fenced block after a paragraph that begins with, or ends in, its name in backquotes. A line of
output may be longer and padded more than the document shows. `tsattn train` is checked up to the cases that
it would train on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split

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


def commands() -> list[tuple[str, list[str]]]:
    """Every command with the lines of output below it."""
    found: list[tuple[str, list[str]]] = []
    for _, language, content in blocks():
        for line in content.splitlines() if language == "console" else ():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
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
    assert len(commands()) > 15


def test_the_commands_print_what_the_document_shows() -> None:
    for command, expected in commands():
        words = shlex.split(command)
        assert words[0] == "tsattn", command
        if words[1] == "train":
            check_training(words[2:])
            continue
        done = CliRunner().invoke(app, words[1:], prog_name="tsattn")
        assert done.exit_code == 0, (command, done.output, done.exception)
        rest = map(narrow, done.stdout.splitlines())
        for line in expected:
            assert any(printed.startswith(narrow(line)) for printed in rest), (command, line, done.stdout)


def test_the_commands_that_are_printed_train(tmp_path: Path) -> None:
    printed = [line for _, lines in commands() for line in lines if line.strip().startswith("tsattn train")]
    assert len(printed) == 3
    for line in printed:
        check_training(shlex.split(line)[2:])


def narrow(line: str) -> str:
    """The line with one blank where columns are padded."""
    return " ".join(line.split())


def check_training(words: list[str]) -> None:
    """`tsattn train` understands the words and finds cases with two classes."""
    root: Any = typer.main.get_command(app)
    _, train, rest = root.resolve_command(typer.Context(root), ["train", *words])
    given = train.make_context("train", rest).params
    options = TableOptions(
        layout=given["layout"], id=given["id_column"], time=given["time_column"], label=given["label_column"]
    )
    assert len(load_split(given["source"], "train", options).collection.classes) == 2

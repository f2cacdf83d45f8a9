"""docs/training.md: every command runs, and prints the lines that stand below it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from commands import documented

from tsattn.cli.app import main

TEXT = (Path(__file__).parents[1] / "docs" / "training.md").read_text("utf-8")
QUICK = "--epochs 2 --width 8 --heads 2 --layers 1 --tokens linear --threads 1"


def test_every_command_does_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [(line, lines) for line, lines in documented(TEXT) if line.startswith("tsattn ")]
    assert len(shown) >= 8
    for line, expected in shown:
        words = shlex.split(line)
        extra = shlex.split(QUICK) if words[1] == "train" else []
        monkeypatch.setattr("sys.argv", [*words, *extra])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        assert not left.value.code, (line, printed.err)
        for wanted in expected:
            assert wanted in printed.out, line

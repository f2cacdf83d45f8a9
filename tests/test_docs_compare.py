"""docs/compare.md: every command runs on the figures it speaks of, and prints what stands below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commands import documented
from sweep_figures import cells, write_sweep

from tsattn.cli.app import main

TEXT = (Path(__file__).parents[1] / "docs" / "compare.md").read_text("utf-8")


def test_every_command_does_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_sweep(tmp_path / "runs" / "sweep", cells())
    assert len(documented(TEXT)) >= 9
    for line, expected in documented(TEXT):
        monkeypatch.setattr("sys.argv", shlex.split(line))
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        assert not left.value.code, (line, printed.err)
        for wanted in expected:
            assert wanted in printed.out, line
    plots = {place.stem for place in Path("plots").iterdir()}
    assert plots == set(re.findall(r"^\| `([a-z][a-z-]+)` \|", TEXT, re.MULTILINE))
    written = {place.suffix for place in Path().iterdir() if place.is_file()}
    assert written == {f".{ending}" for ending in re.findall(r"^\| `FILE\.(\w+)` \|", TEXT, re.MULTILINE)}

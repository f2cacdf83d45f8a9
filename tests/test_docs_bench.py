"""docs/bench.md: every command does what is said. A double computes the cells; tests/sweeps has real ones."""

from __future__ import annotations

import shlex
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
from commands import documented

from tsattn.cli.app import main
from tsattn.sweeps.baselines import BASELINES
from tsattn.sweeps.processes import Here
from tsattn.sweeps.running import run

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "bench.md").read_text("utf-8")
QUICK = "--epochs 1 --width 8 --heads 2 --layers 1 --tokens linear --threads 1"
DOUBLE = ROOT / "tests" / "sweeps" / "double.py"


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr("sys.argv", list(words))
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    assert not left.value.code, (words, printed.err)
    return printed.out


def test_every_command_does_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.__kwdefaults__ is not None
    monkeypatch.setitem(run.__kwdefaults__, "begin", partial(Here, command=(sys.executable, str(DOUBLE))))
    monkeypatch.chdir(tmp_path)
    call(monkeypatch, capsys, *shlex.split(f"tsattn train GunPoint {QUICK} --out runs/first"))
    shutil.copytree("runs/first", "runs/second")
    config = Path("runs/second/config.yaml")
    config.write_text(config.read_text("utf-8").replace("seed: 0", "seed: 1"), "utf-8")
    assert len(documented(TEXT)) >= 10
    for line, expected in documented(TEXT):
        out = call(monkeypatch, capsys, *shlex.split(line))
        for wanted in expected:
            assert wanted in out, (line, out)
    assert not Path("runs/second").exists()


def test_the_table_of_baselines_is_that_of_the_registry() -> None:
    for baseline in BASELINES.values():
        row = f"| `{baseline.word}` | {baseline.summary} | {'yes' if baseline.probabilities else 'no'} |"
        assert row in TEXT

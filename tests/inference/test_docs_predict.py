"""docs/predict.md: its files are written, its commands run, their lines come, every option is there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.cli.predict import predict

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "predict.md").read_text("utf-8")
LEAVES = re.compile(r"  # leaves with (\d)$")


def commands() -> list[tuple[str, list[str]]]:
    """Every command with the lines of output below it."""
    found: list[tuple[str, list[str]]] = []
    for shell in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for line in shell.strip("\n").splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


@pytest.fixture
def _files(make_model: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_model(("calm", "busy"), ("speed", "load"))
    for name, content in re.findall(
        r"^`(\w+\.csv)`,[^\n]*\n(?:[^\n]+\n)*\n```csv\n(.*?)```", TEXT, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(content)
    head, first, second, _ = (tmp_path / "new.csv").read_text().splitlines()
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.csv").write_text(f"{head}\n{first.replace('m1', 'm7')}\n{second}\n")
    (tmp_path / "parts" / "2.csv").write_text(f"{head}\n{first}\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_files")
def test_the_commands_do_what_is_said() -> None:
    assert len(commands()) > 12
    for line, expected in commands():
        code = int(match[1]) if (match := LEAVES.search(line)) else 0
        piped, _, typed = LEAVES.sub("", line).rpartition(" | ")
        given = Path(piped.removeprefix("cat ")).read_bytes() if piped else None
        words = shlex.split(typed)
        assert words[:2] == ["tsattn", "predict"]
        done = CliRunner().invoke(app, words[1:], input=given)
        left = getattr(done.exception, "exit_code", done.exit_code) if done.exit_code else 0
        assert left == code, (line, done.output, done.exception)
        for wanted in expected:
            assert wanted in done.stdout, (line, done.stdout)


def test_every_option_is_shown() -> None:
    group = typer.Typer()
    group.command()(predict)
    names = {
        name for param in typer.main.get_command(group).params for name in param.opts if name[:2] == "--"
    }
    clusters = (DOCS / "deploy.md").read_text("utf-8")  # what needs Ray is shown there
    shown = " ".join([*(line for line, _ in commands()), clusters])
    missing = {name for name in names if name not in ("--output", "--help") and name not in shown}
    assert not missing - {"--install-completion", "--show-completion"}

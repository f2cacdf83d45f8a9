"""The command line as a whole: every command's help, what help costs, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from tsattn import __version__
from tsattn.cli.app import COMMANDS, app

ROOT = Path(__file__).parents[1]


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(words after `tsattn`, command) of every command and group, loaded as an invocation loads it."""
    yield path, command
    if isinstance(command, TyperGroup):
        context = typer.Context(command)
        for name in command.list_commands(context):
            _, inner, _ = command.resolve_command(context, [name])
            yield from walk(inner, (*path, name))


EVERY = dict(walk(typer.main.get_command(app)))
each_command = pytest.mark.parametrize("path", EVERY, ids=lambda path: " ".join(["tsattn", *path]))


def process(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", **(env or {})}
    command = [sys.executable, "-m", "tsattn", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)


@each_command
def test_help_leaves_with_0_and_says_something(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*path, "--help"], prog_name="tsattn")
    assert done.exit_code == 0, done.output
    assert " ".join(["tsattn", *path]) in done.output
    first_words = (EVERY[path].help or "").split()[:3]
    assert len(first_words) == 3
    assert " ".join(first_words) in done.output


@each_command
def test_every_option_and_argument_is_explained(path: tuple[str, ...]) -> None:
    silent = [param.name for param in EVERY[path].params if not getattr(param, "help", None)]
    assert not silent


def test_every_command_in_the_table_is_there() -> None:
    assert {path[0] for path in EVERY if path} == set(COMMANDS)


def test_help_imports_nothing_that_takes_seconds() -> None:
    code = (
        "import json, sys\n"
        "sys.argv = ['tsattn', '--help']\n"
        "from tsattn.cli.app import main\n"
        "try: main()\n"
        "finally: print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stderr))
    assert "typer" in loaded
    assert not loaded & {"torch", "pandas", "numpy", "onnxruntime", "aeon", "pyarrow", "yaml"}
    assert not {name for name in loaded if name.startswith(("tsattn.cli.train", "tsattn.cli.eval"))}


def test_version() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"tsattn {__version__}\n", "")


def test_a_ctrl_c_while_it_is_loaded_leaves_quietly(tmp_path: Path) -> None:
    """Typer is what takes time to load: here it takes for ever."""
    (tmp_path / "typer.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n", "utf-8")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = process("--help", env={"PYTHONPATH": paths})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_unknown_command_leaves_with_2_and_suggests() -> None:
    done = process("trian")
    assert (done.returncode, done.stdout) == (2, "")
    assert "train" in done.stderr


def test_an_unknown_option_leaves_with_2() -> None:
    done = process("eval", "--nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--nonsense" in done.stderr


@pytest.mark.parametrize(("words", "wanted"), [("tsattn ev", "eval"), ("tsattn eval --spl", "--split")])
def test_completion_knows_commands_and_their_options(words: str, wanted: str) -> None:
    count = str(len(words.split()) - 1)
    env = {"_TSATTN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
    done = process(env=env)
    assert done.stdout.split() == [wanted]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("words", ["attention list", "attention list --json"])
def test_a_full_disk_behind_stdout_is_one_message(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tsattn", *words.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: The result cannot be written to stdout (")
    assert len(done.stderr.splitlines()) == 1


def test_letters_that_the_terminal_has_not() -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = process("attention", "show", "bn", env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(process("attention", "show", "bn", "--json", env=ascii_only).stdout)
    assert document["cost in N"].startswith("softmax: N²")
    assert process("data", "info", "nöpe", env=ascii_only).stderr.startswith("Error: 'n?pe' is neither")

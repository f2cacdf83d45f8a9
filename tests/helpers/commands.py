"""Commands as tests give them and as documents show them."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tsattn.cli.app import main


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


def command_in(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """command(*words): `tsattn WORDS…` in `place`, in this process."""
    logger = logging.getLogger("tsattn")  # which the command line takes over

    def call(*words: object) -> Done:
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", True)
        monkeypatch.chdir(place)
        monkeypatch.setattr(sys, "argv", ["tsattn", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return Done(int(left.value.code or 0), captured.out, captured.err)

    return call


def document(done: Done) -> dict[str, Any]:
    """What `--json` printed of a command that did what it was asked."""
    assert done.code == 0, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


def documented(text: str) -> list[tuple[str, list[str]]]:
    """Every command of the console blocks of a document, with the lines of output below it."""
    found: list[tuple[str, list[str]]] = []
    for shell in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in shell.strip().splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line.strip())
    return found

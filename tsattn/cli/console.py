"""The only place that prints: results to stdout, progress and remarks to stderr."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape

from tsattn.errors import InputError

out = Console()
err = Console(stderr=True)


def show(renderable: RenderableType) -> None:
    """A result for a person: a rich table or text, to stdout. Text is not folded: it may be copied."""
    with _to_stdout():
        out.print(renderable, soft_wrap=isinstance(renderable, str))


def show_text(text: str) -> None:
    """A result that is text to be used elsewhere, to stdout as it is."""
    with _to_stdout():
        out.file.write(text + "\n")


def show_json(document: Any) -> None:
    """A result for a program: one JSON document, the only thing on stdout."""
    plain = not out.encoding.startswith("utf")
    show_text(json.dumps(document, ensure_ascii=plain, indent=2, allow_nan=False))


@contextmanager
def _to_stdout() -> Iterator[None]:
    """What cannot be written is said at once, not when Python closes the stream."""
    try:
        yield
        out.file.flush()
    except BrokenPipeError:
        raise  # the reader has had enough: typer leaves quietly
    except OSError as error:
        raise InputError(f"The result cannot be written to stdout ({error.strerror or error}).") from None


def be_silent() -> None:
    """From now on nothing is shown: another process of the same training speaks."""
    out.file = err.file = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - stays open


def remark(message: str) -> None:
    """A sentence beside the result, to stderr."""
    err.print(escape(message), style="dim", highlight=False, soft_wrap=True)


def fail(message: str) -> None:
    """The one message of a command that did not succeed, to stderr."""
    err.print("[bold red]Error:[/] " + escape(message), highlight=False, soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr while something runs whose length is not known; nothing when it is no terminal."""
    if err.is_terminal:
        with err.status(escape(what)):
            yield
    else:
        yield


class _RemarkHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        remark(record.getMessage())


def hear_remarks() -> None:
    """Prints what the library says through logging.getLogger("tsattn.…"), warnings and up, as remarks.

    Each sentence is printed once a process.
    """
    logger = logging.getLogger("tsattn")
    if not logger.handlers:
        said: set[str] = set()
        handler = _RemarkHandler(logging.WARNING)
        handler.addFilter(lambda r: r.getMessage() not in said and not said.add(r.getMessage()))  # type: ignore[func-returns-value]
        logger.addHandler(handler)
        logger.propagate = False

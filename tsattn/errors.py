"""The one exception family of tsattn.

A message is written for the person who typed the command: what was found, where, what was
expected and what to type instead. The command line prints it and leaves with `exit_code`;
anything that is not a TsattnError is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TsattnError(Exception):
    """Anything that a user can mend; never raised itself, only through its children."""

    exit_code = 2


class InputError(TsattnError):
    """Wrong usage or bad input: a file, a column, a name, a value (exit code 2)."""

    exit_code = 2


class CheckFailed(TsattnError):
    """A check that was asked for did not hold: parity, a device, an accuracy gate (exit code 3)."""

    exit_code = 3


class Interrupted(TsattnError):
    """The user asked to stop, by Ctrl-C or a signal, and what was done so far is kept (exit code 130)."""

    exit_code = 130


@contextmanager
def looking_at(path: str | Path) -> Iterator[None]:
    """Turns what the system says against looking at a file (no right, a name too long) into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be looked at ({error.strerror}).") from None

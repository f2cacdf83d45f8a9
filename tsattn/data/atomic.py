"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tsattn.errors import InputError

_PARTIAL = re.compile(r"\.\d+\.part\..+")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Gives a place beside `path`, with its ending, to write to; it becomes `path` if all went well.

    InputError if the place cannot be written. Nothing is left behind where anything is raised.
    """
    partial = path.with_name(f".{os.getpid()}.part.{path.name}")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}. Type another place for the file."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def is_partial(path: Path) -> bool:
    """Whether `path` is a place that `whole_file` gives: a file that is not yet one."""
    return _PARTIAL.fullmatch(path.name) is not None

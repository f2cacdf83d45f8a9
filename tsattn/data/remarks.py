"""What readers say of many files alike, said once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def said_once(seen: set[tuple[object, ...]]) -> Iterator[None]:
    """Holds the remarks of the readers back, and then lets through those not in `seen`.

    The same remark on two files counts as one; `seen` is added to.
    """
    logger = logging.getLogger("tsattn.data")
    held = _Held()
    handlers, propagate = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [held], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        for record in held.records:
            # The first argument of a remark is the file that it is about.
            arguments = record.args[1:] if isinstance(record.args, tuple) else ()
            if (remark := (record.msg, *map(str, arguments))) not in seen:
                seen.add(remark)
                logging.getLogger(record.name).handle(record)


class _Held(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps it."""
        self.records.append(record)

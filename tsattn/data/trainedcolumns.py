"""The value columns of training, found again in a table whose columns name no channel and no timepoint."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence

from tsattn.data.csvtext import listed
from tsattn.data.rows import TableHead
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


def as_text(columns: Sequence[str]) -> str:
    """The names as the text of a JSON list, for the model card."""
    return json.dumps(list(columns), ensure_ascii=False)


def first_absent(head: TableHead, trained: Sequence[str], spare: set[str | None]) -> str | None:
    """The first column of training that the table lacks or has in another role (`spare`); None if none."""
    there = set(head.names) - spare
    return next((name for name in trained if name not in there), None)


def say_absent(head: TableHead, absent: str, values: Sequence[str]) -> None:
    """The remark that the columns `values` stand in for those of training, of which `absent` is the first."""
    logger.warning(
        "%s: no column %r as in training; %d columns of numbers are taken for timepoints as they stand: %s.",
        head.path, absent, len(values), listed(values),
    )  # fmt: skip


def say_left_out(head: TableHead, names: Iterable[str]) -> None:
    """A remark that names what the model was not trained on, if there is anything."""
    if left := list(names):
        logger.warning("%s: not in the training data and not used: %s.", head.path, listed(left))


def from_text(head: TableHead, text: str) -> tuple[str, ...]:
    """The names in what `as_text` made. InputError if it is no list of names."""
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{head.path}: the columns noted in training are no list of names. Export the model anew."
        )
    return tuple(names)

"""Columns CHANNEL_TIMEPOINT of a wide table, put in order of time."""

from __future__ import annotations

from tsattn.data.rows import TableHead
from tsattn.errors import InputError


def in_order_of_time(
    head: TableHead, numbered: dict[str, list[tuple[int, str]]]
) -> dict[str, tuple[str, ...]]:
    """Refuses a timepoint that is missing or there twice in a channel."""
    points = [point for columns in numbered.values() for point, _ in columns]
    first = 0 if min(points) == 0 else 1
    count = max(points) - first + 1
    for channel, columns in numbered.items():
        columns.sort()
        for expected, (point, column) in enumerate(columns, start=first):
            if point < expected:
                raise InputError(
                    f"{head.path}: columns {columns[expected - first - 1][1]!r} and {column!r} are the same "
                    f"timepoint of channel {channel!r}."
                )
            if point > expected:
                raise _missing(head, f"{channel}_{expected}")
        if len(columns) < count:
            raise _missing(head, f"{channel}_{first + len(columns)}")
    return {channel: tuple(column for _, column in columns) for channel, columns in numbered.items()}


def _missing(head: TableHead, column: str) -> InputError:
    return InputError(
        f"{head.path}: column {column!r} is missing. Columns CHANNEL_TIMEPOINT count the timepoints of every "
        "channel from 0 or 1 without a gap; add it (empty cells are missing values)."
    )

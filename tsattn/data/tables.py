"""CSV tables as a stream of Collections: wide (a row a case) and long (a row a timepoint).

pyarrow reads blocks of bytes of fixed size, so memory does not grow with the file beside the ids of
a long table, which are remembered to notice one that comes back. Not covered: compressed files,
decimal commas, separators other than the comma.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions, TableRoles, resolve_roles
from tsattn.data.csvread import Rows, read_rows
from tsattn.data.csvtext import Head, line_of_row, read_head
from tsattn.data.longcases import cases_of_long_rows
from tsattn.errors import InputError

Series = NDArray[np.float32]
Case = tuple[str, str | None, Series]
"""Id, label or None, values (channels, timepoints)."""


def table_roles(path: Path, options: TableOptions, channels: tuple[str, ...] | None = None) -> TableRoles:
    """What each column of the CSV file is; reads only its beginning. InputError as `resolve_roles`."""
    return resolve_roles(read_head(path), options, channels)


def stream_table(
    path: Path, options: TableOptions, channels: tuple[str, ...] | None = None, cases: int = 256
) -> Iterator[Collection]:
    """The cases of a CSV file in its order, up to `cases` at a time, each block as long as its longest.

    channels: names of the channels a model was trained on, which the blocks then have in its order.
    Labels are there if the table has a label column; a block's classes are its own labels, sorted.
    InputError, with file and line, at the first thing that is wrong; earlier blocks have come by then.
    """
    head = read_head(path)
    yield from _blocks(head, resolve_roles(head, options, channels), cases)


def read_table(
    path: Path, options: TableOptions, channels: tuple[str, ...] | None = None
) -> tuple[Collection, TableRoles]:
    """The whole CSV file as one Collection, and what each of its columns is; channels as `stream_table`.

    InputError as `stream_table`, and for a case whose label is empty.
    """
    head = read_head(path)
    roles = resolve_roles(head, options, channels)
    blocks = list(_blocks(head, roles, cases=1024))
    ids = tuple(name for block in blocks for name in block.ids)
    labels = None if roles.label is None else tuple(x for block in blocks for x in block.labels or ())
    if labels is not None and "" in labels:
        case = labels.index("")
        where = f"{path}:{line_of_row(path, case)}" if roles.layout == "wide" else str(path)
        raise InputError(f"{where}: the label of case {ids[case]!r} is empty (column {roles.label!r}).")
    longest = max(block.values.shape[2] for block in blocks)
    values = np.full((len(ids), len(roles.channels), longest), np.nan, np.float32)
    start = 0
    for block in blocks:
        values[start : start + len(block), :, : block.values.shape[2]] = block.values
        start += len(block)
    return Collection(values, ids, roles.channels, labels, sorted_classes(labels or ())), roles


def sorted_classes(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels: in order of number if all are numbers, else of text."""
    distinct = set(labels)
    try:
        numbers = {label: float(label) for label in distinct}
    except ValueError:
        return tuple(sorted(distinct))
    if not all(np.isfinite(number) for number in numbers.values()):
        return tuple(sorted(distinct))
    return tuple(sorted(distinct, key=lambda label: (numbers[label], label)))


def _blocks(head: Head, roles: TableRoles, cases: int) -> Iterator[Collection]:
    rows = read_rows(head, roles)
    if roles.layout == "wide":
        yield from _wide_blocks(rows, roles, cases)
        return
    block: list[Case] = []
    for case in cases_of_long_rows(head, roles, rows):
        block.append(case)
        if len(block) == cases:
            yield _long_block(block, roles)
            block = []
    if block:
        yield _long_block(block, roles)


def _wide_blocks(rows: Iterable[Rows], roles: TableRoles, cases: int) -> Iterator[Collection]:
    """Cuts the reader's batches, whose size follows from bytes, into blocks of `cases` rows."""
    shape = (len(roles.channels), len(roles.columns[0]))
    held: list[Rows] = []
    count = 0
    for batch in rows:
        start = 0
        while start < len(batch):
            piece = batch.slice(start, start + cases - count)
            start, count = start + len(piece), count + len(piece)
            held.append(piece)
            if count == cases:
                yield _wide_block(held, roles, shape)
                held, count = [], 0
    if held:
        yield _wide_block(held, roles, shape)


def _wide_block(pieces: Sequence[Rows], roles: TableRoles, shape: tuple[int, int]) -> Collection:
    columns = np.concatenate([piece.values for piece in pieces], axis=1)  # (channels·timepoints, cases)
    values = columns.T.reshape(columns.shape[1], *shape)  # (cases, channels, timepoints)
    if roles.id is None:
        ids = [str(piece.first + i) for piece in pieces for i in range(len(piece))]
    else:
        ids = [name for piece in pieces for name in piece.ids.to_pylist()]
    labels = None
    if roles.label is not None:
        labels = [label for piece in pieces for label in piece.labels.to_pylist()]
    return _collection(values, ids, labels, roles)


def _long_block(cases: Sequence[Case], roles: TableRoles) -> Collection:
    longest = max(series.shape[1] for _, _, series in cases)
    values = np.full((len(cases), len(roles.channels), longest), np.nan, np.float32)
    for row, (_, _, series) in zip(values, cases, strict=True):
        row[:, : series.shape[1]] = series
    labels = None if roles.label is None else [label or "" for _, label, _ in cases]
    return _collection(values, [name for name, _, _ in cases], labels, roles)


def _collection(
    values: Series, ids: Sequence[str], labels: Sequence[str] | None, roles: TableRoles
) -> Collection:
    """Without the timepoints at the end at which no case is observed; at least one stays."""
    seen = np.flatnonzero(~np.isnan(values).all(axis=(0, 1)))
    longest = int(seen[-1]) + 1 if seen.size else 1
    return Collection(
        values=np.ascontiguousarray(values[:, :, :longest]),
        ids=tuple(ids),
        channels=roles.channels,
        labels=None if labels is None else tuple(labels),
        classes=sorted_classes(labels or ()),
    )

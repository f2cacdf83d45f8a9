"""Tables as a stream of Collections: wide (a row a case), long (a row a timepoint), or a file a case.

The rows come from any container (heads.py) in batches of fixed size, so memory does not grow with the
file beside the ids of a long table, which are remembered to notice one that comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tsattn.data.classes import sorted_classes as sorted_classes
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions, TableRoles, resolve_roles
from tsattn.data.heads import open_head
from tsattn.data.longcases import Group, groups_of_long_rows
from tsattn.data.rows import Rows, TableHead, read_rows
from tsattn.data.rowwords import RowWords
from tsattn.data.spool import LongSpool, Spool, padded
from tsattn.data.suspects import look_at_channels, look_at_ids
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

Series = NDArray[np.float32]


def table_roles(path: Path, options: TableOptions, channels: tuple[str, ...] | None = None) -> TableRoles:
    """What each column of the table is; reads only its beginning. InputError as `resolve_roles`."""
    return resolve_roles(open_head(path), options, channels)


def stream_table(
    path: Path, options: TableOptions, channels: tuple[str, ...] | None = None, cases: int = 256
) -> Iterator[Collection]:
    """The cases of a table in its order, up to `cases` at a time, each block as long as its longest.

    channels: names of the channels a model was trained on, which the blocks then have in its order;
    labels are then not read, whatever they say. Else they are there if the table has a label column,
    and a block's classes are its own labels, sorted.
    InputError, with file and line, at the first thing that is wrong; earlier blocks have come by then.
    """
    head, roles = _begin(path, options, channels)
    if channels is not None:
        roles = replace(roles, label=None, group=None)
    if roles.layout == "wide":
        yield from _wide_blocks(read_rows(head, roles), roles, cases)
    else:
        yield from _long_blocks(groups_of_long_rows(head, roles, read_rows(head, roles)), roles, cases)


def read_table(
    path: Path, options: TableOptions, channels: tuple[str, ...] | None = None
) -> tuple[Collection, TableRoles]:
    """The whole table as one Collection, and what each of its columns is; channels as `stream_table`.

    InputError as `stream_table`, and for a case whose label is empty.
    """
    head, roles = _begin(path, options, channels)
    if options.label_of == "timepoint" and roles.layout != "wide" and roles.label is not None:
        cases = _whole_changing(head, roles)
        if channels is None:
            look_at_channels(head, cases)
        return cases, roles
    read = _whole_wide if roles.layout == "wide" else _whole_long
    cases = read(head, roles)
    if roles.layout == "wide":
        look_at_ids(head, roles, options, cases.ids)
    elif channels is None:
        look_at_channels(head, cases)
    if cases.labels is not None and "" in cases.labels:
        case = cases.labels.index("")
        where = head.place(case) if roles.layout == "wide" else str(path)
        raise InputError(f"{where}: the label of case {cases.ids[case]!r} is empty (column {roles.label!r}).")
    return cases, roles


def _begin(
    path: Path, options: TableOptions, channels: tuple[str, ...] | None
) -> tuple[TableHead, TableRoles]:
    head = open_head(path)
    if (remark := head.remark()) is not None:
        logger.warning("%s: %s.", path, remark)
    return head, resolve_roles(head, options, channels)


def _whole_wide(head: TableHead, roles: TableRoles) -> Collection:
    spool = Spool(sum(map(len, roles.columns)))
    kept: list[Rows] = []
    for rows in read_rows(head, roles):
        spool.append(rows.values)
        kept.append(replace(rows, values=rows.values[:0]))
    ids, labels = _wide_names(kept, roles)
    values = np.empty((len(ids), len(roles.channels), len(roles.columns[0])), np.float32)
    start = 0
    for piece in spool.drain():
        stop = start + piece.shape[1]
        values[start:stop].reshape(stop - start, piece.shape[0])[:] = piece.T
        start = stop
        del piece
    groups = None
    if roles.group is not None:
        groups = tuple(word for piece in kept for word in piece.groups.to_pylist())
        if "" in groups:
            where = head.place(groups.index(""))
            raise InputError(f"{where}: column {roles.group!r} is empty. A case belongs to one group.")
    return _collection(values, ids, labels, roles, groups)


def _whole_long(head: TableHead, roles: TableRoles) -> Collection:
    groups = None if roles.group is None else RowWords(roles.group)
    spool = LongSpool(len(roles.channels) + (groups is not None))
    names: list[str] = []
    labels: list[str] = []
    for group in groups_of_long_rows(head, roles, _with_words(read_rows(head, roles), groups=groups)):
        spool.append(group)
        names += group.names
        labels += group.labels or ()
    values = spool.values()
    words = None if groups is None else groups.of_cases(values[:, -1], names, head, roles)
    values = values[:, : len(roles.channels)]
    return _collection(values, names, None if roles.label is None else labels, roles, words)


def _whole_changing(head: TableHead, roles: TableRoles) -> Collection:
    """A long table whose label may change within a case: every timepoint has its own."""
    assert roles.label is not None
    labels = RowWords(roles.label)
    groups = None if roles.group is None else RowWords(roles.group)
    spool = LongSpool(len(roles.channels) + 1 + (groups is not None))
    rows = _with_words(read_rows(head, roles), groups=groups, labels=labels)
    names: list[str] = []
    for group in groups_of_long_rows(head, replace(roles, label=None), rows):
        spool.append(group)
        names += group.names
    values, count = spool.values(), len(roles.channels)
    words = None if groups is None else groups.of_cases(values[:, count], names, head, roles)
    classes = sorted_classes(tuple(labels.words))
    if not classes:
        raise InputError(f"{head.path}: no row has a label, column {roles.label!r} is empty.")
    place = np.array([classes.index(word) for word in labels.words] + [-1], np.int32)
    codes = place[np.nan_to_num(values[:, -1], nan=-1).astype(np.int64)]  # (cases, timepoints)
    cases = _collection(values[:, :count], names, None, roles, words)
    codes = np.ascontiguousarray(codes[:, : cases.values.shape[2]])
    return replace(cases, classes=classes, timepoint_labels=codes)


def _with_words(
    batches: Iterable[Rows], *, groups: RowWords | None = None, labels: RowWords | None = None
) -> Iterator[Rows]:
    """The rows with these columns as further channels, groups before labels."""
    for rows in batches:
        more = [rows.values]
        if groups is not None:
            more.append(groups.channel(rows.groups)[None])
        if labels is not None:
            more.append(labels.channel(rows.labels)[None])
            rows = replace(rows, labels=None)  # noqa: PLW2901
        yield rows if len(more) == 1 else replace(rows, values=np.concatenate(more))


def _long_blocks(groups: Iterable[Group], roles: TableRoles, cases: int) -> Iterator[Collection]:
    """Puts groups together, or cuts them, into blocks of `cases` cases."""
    held: list[Group] = []
    count = 0
    for group in groups:
        start = 0
        while start < len(group.names):
            piece = group.slice(start, start + cases - count)
            start, count = start + len(piece.names), count + len(piece.names)
            held.append(piece)
            if count == cases:
                yield _long_block(held, roles)
                held, count = [], 0
    if held:
        yield _long_block(held, roles)


def _long_block(groups: list[Group], roles: TableRoles) -> Collection:
    names = [name for group in groups for name in group.names]
    labels = [label for group in groups for label in group.labels or ()]
    return _collection(padded(groups), names, None if roles.label is None else labels, roles)


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
    return _collection(values, *_wide_names(pieces, roles), roles)


def _wide_names(pieces: Sequence[Rows], roles: TableRoles) -> tuple[list[str], list[str] | None]:
    """Ids, which are row numbers where no column holds them, and labels."""
    if roles.id is None:
        ids = [str(piece.first + i) for piece in pieces for i in range(len(piece))]
    else:
        ids = [name for piece in pieces for name in piece.ids.to_pylist()]
    if roles.label is None:
        return ids, None
    return ids, [label for piece in pieces for label in piece.labels.to_pylist()]


def _collection(
    values: Series,
    ids: Sequence[str],
    labels: Sequence[str] | None,
    roles: TableRoles,
    groups: tuple[str, ...] | None = None,
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
        groups=groups,
    )

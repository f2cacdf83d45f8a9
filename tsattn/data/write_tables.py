"""A Collection as CSV or Parquet, in either layout; read back, it gives the same cases.

In CSV, values are written in the fewest digits that give the same float32, a missing one as an empty
cell. The file is written beside its place and renamed when whole. Not covered: an empty id or label,
which could not be read back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from tsattn.data.atomic import whole_file
from tsattn.data.collection import Collection
from tsattn.errors import InputError

GROUP = "group"
"""The column that says which cases must not be torn apart, in a table of cases that have groups."""
_CSV_ROWS = 4096  # at once, so that the text of a large Collection is never whole in memory
_PARQUET_ROWS = 1 << 16


class _Table(NamedTuple):
    """Names of the columns, number of rows, and the columns of the rows start … stop − 1."""

    names: list[str]
    height: int
    rows: Callable[[int, int], list[Any]]


def write_wide_csv(
    collection: Collection,
    path: Path,
    label: str | None = "label",
    id: str | None = "id",  # noqa: A002
) -> None:
    """One row a case, value columns CHANNEL_TIMEPOINT from 0.

    label, id: names of those columns; None leaves one out, as does a Collection without labels. Groups
    are a column GROUP. InputError if two columns would have one name or the place cannot be written.
    """
    _write_csv(_wide(collection, label, id), path)


def write_long_csv(
    collection: Collection,
    path: Path,
    label: str | None = "label",
    id: str = "id",  # noqa: A002
    time: str = "time",
) -> None:
    """One row a timepoint up to each case's last observed one; channels are columns.

    label, id, time: names of those columns; label None leaves it out. Groups are a column GROUP. A case
    in which nothing is observed is one row of empty cells. InputError as `write_wide_csv`, and for an id
    of two cases.
    """
    _write_csv(_long(collection, path, label, id, time), path)


def write_wide_parquet(
    collection: Collection,
    path: Path,
    label: str | None = "label",
    id: str | None = "id",  # noqa: A002
) -> None:
    """As `write_wide_csv`; values are float32 columns with null for what is missing."""
    _write_parquet(_wide(collection, label, id), path)


def write_long_parquet(
    collection: Collection,
    path: Path,
    label: str | None = "label",
    id: str = "id",  # noqa: A002
    time: str = "time",
) -> None:
    """As `write_long_csv`; values are float32 columns with null for what is missing, the time int64."""
    _write_parquet(_long(collection, path, label, id, time), path)


def _wide(collection: Collection, label: str | None, case: str | None) -> _Table:
    points = range(collection.values.shape[2])
    values = [f"{channel}_{point}" for channel in collection.channels for point in points]
    ids = [] if case is None else [case]
    labels = [] if label is None or collection.labels is None else [label]
    groups = [] if collection.groups is None else [GROUP]
    names = [*ids, *values, *groups, *labels]

    def rows(start: int, stop: int) -> list[Any]:
        part = collection.values[start:stop]
        flat = part.reshape(len(part), -1)  # (cases, channels·timepoints)
        return [
            *([pa.array(collection.ids[start:stop], pa.string())] if ids else ()),
            *(_floats(column, alone=len(names) == 1) for column in flat.T),
            *([_text_column(collection.groups, slice(start, stop))] if groups else ()),
            *([_text_column(collection.labels, slice(start, stop))] if labels else ()),
        ]

    return _Table(names, len(collection), rows)


def _long(collection: Collection, path: Path, label: str | None, case: str, time: str) -> _Table:
    if len(set(collection.ids)) < len(collection):
        twice = next(name for i, name in enumerate(collection.ids) if name in collection.ids[:i])
        raise InputError(
            f"{path}: id {twice!r} stands for two cases, whose rows could not be told apart in the long "
            "layout. Write the wide layout."
        )
    labels = [] if label is None or collection.labels is None else [label]
    groups = [] if collection.groups is None else [GROUP]
    lengths = np.maximum(collection.lengths, 1)
    if len(lengths) and lengths.max() == 1:
        lengths[0] = 2  # a table in which each case is one row would be taken for a wide one
    ends = np.cumsum(lengths)

    def rows(start: int, stop: int) -> list[Any]:
        row = np.arange(start, min(stop, int(ends[-1])))
        of = np.searchsorted(ends, row, side="right")
        point = row - (ends - lengths)[of]
        within = point < collection.values.shape[2]
        values = collection.values[of, :, np.where(within, point, 0)]  # (rows, channels)
        values[~within] = np.nan
        return [
            pa.array([collection.ids[i] for i in of], pa.string()),
            pa.array(point),
            *(_floats(column) for column in values.T),
            *([_text_column(collection.groups, of)] if groups else ()),
            *([_text_column(collection.labels, of)] if labels else ()),
        ]

    return _Table([case, time, *collection.channels, *groups, *labels], int(lengths.sum()), rows)


def _floats(column: Any, *, alone: bool = False) -> Any:
    """An Arrow array with a null, written as an empty cell, for NaN; one column alone would then be a
    blank line, so there "nan" is written.
    """
    return pa.array(column, pa.float32(), from_pandas=not alone)


def _text_column(words: tuple[str, ...] | None, cases: Any) -> Any:
    return pa.array(np.asarray(words, dtype=object)[cases], pa.string())


def _write_csv(table: _Table, path: Path) -> None:
    _write(table, path, pa_csv.CSVWriter, _CSV_ROWS)


def _write_parquet(table: _Table, path: Path) -> None:
    from pyarrow.parquet import ParquetWriter

    _write(table, path, ParquetWriter, _PARQUET_ROWS)


def _write(table: _Table, path: Path, open_writer: Callable[[Any, Any], Any], at_once: int) -> None:
    if len(set(table.names)) < len(table.names):
        twice = next(name for i, name in enumerate(table.names) if name in table.names[:i])
        raise InputError(f"{path}: two columns would be called {twice!r}. Type another name for one of them.")
    writer = None
    with whole_file(path) as partial, partial.open("wb") as file:
        for start in range(0, table.height, at_once):
            batch = pa.record_batch(table.rows(start, start + at_once), names=table.names)
            writer = writer or open_writer(file, batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()

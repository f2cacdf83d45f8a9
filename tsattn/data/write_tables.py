"""A Collection as CSV, in either layout; read_table gives the same cases back.

Values are written in the fewest digits that give the same float32, a missing one as an empty cell.
The file is written beside its place and renamed when whole. Not covered: an empty id or label, and
ids that stand for two cases in the long layout, which could not be read back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from tsattn.data.collection import Collection
from tsattn.errors import InputError

_ROWS = 4096  # at once, so that the text of a large Collection is never whole in memory


def write_wide_csv(
    collection: Collection,
    path: Path,
    label: str | None = "label",
    id: str | None = "id",  # noqa: A002
) -> None:
    """One row a case, value columns CHANNEL_TIMEPOINT from 0.

    label, id: names of those columns; None leaves one out, as does a Collection without labels.
    InputError if two columns would have one name or the place cannot be written.
    """
    points = range(collection.values.shape[2])
    values = [f"{channel}_{point}" for channel in collection.channels for point in points]
    ids = [] if id is None else [id]
    labels = [] if label is None or collection.labels is None else [label]
    names = [*ids, *values, *labels]

    def rows(start: int) -> list[Any]:
        part = collection.values[start : start + _ROWS]
        flat = part.reshape(len(part), -1)  # (cases, channels·timepoints)
        return [
            *([pa.array(collection.ids[start : start + _ROWS], pa.string())] if ids else ()),
            *(_floats(column, alone=len(names) == 1) for column in flat.T),
            *([_label_column(collection, slice(start, start + _ROWS))] if labels else ()),
        ]

    _write(path, names, len(collection), rows)


def write_long_csv(
    collection: Collection,
    path: Path,
    label: str | None = "label",
    id: str = "id",  # noqa: A002
    time: str = "time",
) -> None:
    """One row a timepoint up to each case's last observed one; channels are columns.

    label, id, time: names of those columns; label None leaves it out. A case in which nothing is
    observed is one row of empty cells. InputError as `write_wide_csv`, and for an id of two cases.
    """
    if len(set(collection.ids)) < len(collection):
        twice = next(name for i, name in enumerate(collection.ids) if name in collection.ids[:i])
        raise InputError(
            f"{path}: id {twice!r} stands for two cases, whose rows could not be told apart in the long "
            "layout. Write the wide layout."
        )
    labels = [] if label is None or collection.labels is None else [label]
    lengths = np.maximum(collection.lengths, 1)
    if len(lengths) and lengths.max() == 1:
        lengths[0] = 2  # a table in which each case is one row would be taken for a wide one
    ends = np.cumsum(lengths)

    def rows(start: int) -> list[Any]:
        stop = min(start + _ROWS, int(ends[-1]))
        row = np.arange(start, stop)
        case = np.searchsorted(ends, row, side="right")
        point = row - (ends - lengths)[case]
        within = point < collection.values.shape[2]
        values = collection.values[case, :, np.where(within, point, 0)]  # (rows, channels)
        values[~within] = np.nan
        return [
            pa.array([collection.ids[i] for i in case], pa.string()),
            pa.array(point),
            *(_floats(column) for column in values.T),
            *([_label_column(collection, case)] if labels else ()),
        ]

    _write(path, [id, time, *collection.channels, *labels], int(lengths.sum()), rows)


def _floats(column: Any, *, alone: bool = False) -> Any:
    """An Arrow array with a null, written as an empty cell, for NaN; one column alone would then be a
    blank line, so there "nan" is written.
    """
    return pa.array(column, pa.float32(), from_pandas=not alone)


def _label_column(collection: Collection, cases: Any) -> Any:
    assert collection.labels is not None
    return pa.array(np.asarray(collection.labels, dtype=object)[cases], pa.string())


def _write(path: Path, names: list[str], count: int, rows: Callable[[int], list[Any]]) -> None:
    """The table whose rows start … are `rows(start)`, a list of columns, for `count` rows in all."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{path}: two columns would be called {twice!r}. Type another name for one of them.")
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        writer = None
        with partial.open("wb") as file:
            for start in range(0, count, _ROWS):
                batch = pa.record_batch(rows(start), names=names)
                writer = writer or pa_csv.CSVWriter(file, batch.schema)
                writer.write_batch(batch)
            if writer is not None:
                writer.close()
        os.replace(partial, path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}. Type another place for the file."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)

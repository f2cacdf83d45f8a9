"""The time column of a long table, for its sampling period and gaps; the values are not read.

A Collection keeps the order of its timepoints and not their times, so this is a second pass over two
columns of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tsattn.data.arrowcalls import call, cast
from tsattn.data.csvdialect import is_number
from tsattn.data.describe import Sampling, sampling
from tsattn.data.times import TimeReader

if TYPE_CHECKING:
    from tsattn.data.columns import TableRoles
    from tsattn.data.rows import TableHead

_NANOSECONDS = 1e-9


def read_sampling(head: TableHead, roles: TableRoles) -> Sampling | None:
    """Sampling of a table that reads without error; None without a time column or with single rows only."""
    if roles.layout != "long" or roles.time is None or roles.id is None:
        return None
    ids, times = [], []
    for batch in head.batches([], [head.names.index(roles.id)], head.names.index(roles.time)):
        ids.append(batch.columns[0])
        times.append(batch.columns[1])
    names = pa.chunked_array(ids).combine_chunks()
    cells = pa.chunked_array(times).combine_chunks()
    numbers = TimeReader(roles.time).read(cells, head.place)
    unit = _NANOSECONDS if (seconds := _are_stamps(cells)) else 1.0
    changes = np.from_dlpack(cast(call("not_equal", names[1:], names[:-1]), pa.uint8()))
    cases = np.concatenate([np.zeros(1, np.int64), np.cumsum(changes, dtype=np.int64)])
    # From the first time on: nanoseconds since 1970 do not fit a float64.
    return sampling((numbers - numbers[0]) * unit, cases, seconds=seconds)


def _are_stamps(cells: Any) -> bool:
    """Whether a column that was read as times holds timestamps, not numbers."""
    if pa.types.is_timestamp(cells.type):
        return True
    return pa.types.is_string(cells.type) and not is_number(cells[0].as_py())

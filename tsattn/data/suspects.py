"""What a table, once read, shows about how it was understood: ids that repeat, numbers that are no series.

Only where the whole table is in memory; a stream would have to remember all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions, TableRoles, names_timepoints
from tsattn.data.rolenames import TIME_NAMES
from tsattn.data.rows import TableHead
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

_FIRST_CASES = 16


def look_at_ids(head: TableHead, roles: TableRoles, options: TableOptions, ids: Sequence[str]) -> None:
    """Remarks on an id that two rows of a wide table share, with both.

    InputError where neither the user nor the model said that the table is wide and it looks like a long
    one, its cases torn apart: it has a column of times, or none called CHANNEL_TIMEPOINT.
    """
    if roles.id is None or len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    again = next(row for row, name in enumerate(ids) if first.setdefault(name, row) != row)
    name, both = ids[again], f"{head.place(first[ids[again]])} and {head.place(again)}"
    timed = any(column.lower() in TIME_NAMES for column in head.names)
    told = options.layout is not None or options.columns is not None
    if not told and (timed or not names_timepoints(head)):
        raise InputError(
            f"{head.place(again)}: case {name!r} comes back after another case, first at "
            f"{head.place(first[name])}. If a row is a timepoint, rows of one case have to stand together: "
            f"sort the file by {roles.id!r}. If a row is a whole case, type --layout wide."
        )
    logger.warning(
        "%s: %r in column %r is the id of more than one row, first of %s; each row is a case of its own.",
        head.path,
        name,
        roles.id,
        both,
    )


def look_at_channels(head: TableHead, cases: Collection) -> None:
    """Remarks on channels of a long table that may say something of the case: a subject, a session.

    These are whole numbers that never change within a case, and are not the same in all cases.
    """
    for channel, name in enumerate(cases.channels):
        values = cases.values[:, channel]
        # A few cases show what most channels are, without a pass over all of them.
        if _never_changes(values[:_FIRST_CASES]) and _never_changes(values) and _differs(values):
            logger.warning(
                "%s: column %r never changes within a case; it is used as a channel. If it says which "
                "cases belong together, type --group %s; if it is their class, --label %s.",
                head.path, name, name, name,
            )  # fmt: skip


def _never_changes(values: NDArray[np.float32]) -> bool:
    """Whether each row of (cases, timepoints) repeats one whole number, one row of them at least twice."""
    seen = ~np.isnan(values)
    least = np.where(seen, values, np.inf).min(axis=1)
    most = np.where(seen, values, -np.inf).max(axis=1)
    known = least <= most
    once = bool((least == most)[known].all()) and bool((np.floor(least) == least)[known].all())
    return once and bool((seen.sum(axis=1) > 1).any())


def _differs(values: NDArray[np.float32]) -> bool:
    """Whether two values of (cases, timepoints) differ."""
    return bool(np.nanmin(values) < np.nanmax(values))

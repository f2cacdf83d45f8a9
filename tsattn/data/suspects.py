"""What a table, once read, shows about how it was understood: ids that repeat, numbers that are no series.

Only where the whole table is in memory; a stream would have to remember all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tsattn.data.columns import TableOptions, TableRoles, names_timepoints
from tsattn.data.rolenames import TIME_NAMES
from tsattn.data.rows import TableHead
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


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

"""Words that stand in every row of a long table: a case's group, a label that changes within a case.

They travel as one more channel of numbers, so that whatever orders, gathers and pads the values does
the same to them, and are taken off again when the cases are whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tsattn.data.arrowcalls import call, cast
from tsattn.data.rows import TableHead, as_numpy, read_rows
from tsattn.errors import InputError

if TYPE_CHECKING:
    from tsattn.data.columns import TableRoles

MOST_WORDS = 1 << 24
"""Beyond this a float32 no longer tells two numbers apart."""


class RowWords:
    """The distinct words of a column, in the order in which they came."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.words: dict[str, int] = {}

    def channel(self, cells: Any) -> NDArray[np.float32]:
        """(rows,) the place of each cell's word among all; NaN for an empty cell."""
        coded = call("dictionary_encode", cells)
        places = np.empty(len(coded.dictionary), np.float32)
        for at, word in enumerate(coded.dictionary.to_pylist()):
            places[at] = self.words.setdefault(word, len(self.words)) if word else np.nan
        if len(self.words) > MOST_WORDS:
            raise InputError(f"column {self.column!r} has more than {MOST_WORDS:,} different words.")
        return places[as_numpy(cast(coded.indices, pa.int64()))]

    def of_cases(
        self, channel: NDArray[np.float32], ids: list[str], head: TableHead, roles: TableRoles
    ) -> tuple[str, ...]:
        """The one word of each case from (cases, timepoints).

        InputError, naming the case and a row of it, where it has none or two.
        """
        seen = ~np.isnan(channel)
        least = np.where(seen, channel, np.inf).min(axis=1)
        most = np.where(seen, channel, -np.inf).max(axis=1)
        words = list(self.words)
        odd = np.flatnonzero(least != most)
        if odd.size:
            case = int(odd[0])
            word, found = "", "is empty in"
            if seen[case].any():
                word = words[int(most[case])]
                found = f"changes from {words[int(least[case])]!r} to {word!r} within"
            where = _place(head, roles, ids[case], word)
            raise InputError(
                f"{where}: column {self.column!r} {found} case {ids[case]!r}. A case belongs to one group."
            )
        return tuple(words[int(place)] for place in least)


def _place(head: TableHead, roles: TableRoles, case: str, group: str) -> str:
    """Where the first row of the case with this group stands; the table is read once more for it."""
    for rows in read_rows(head, roles):
        groups = rows.groups.to_pylist()
        ids = [case] * len(groups) if rows.ids is None else rows.ids.to_pylist()
        for at, pair in enumerate(zip(ids, groups, strict=True)):
            if pair == (case, group):
                return head.place(rows.first + at)
    return str(head.path)

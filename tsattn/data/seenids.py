"""Which ids have been met, in eight bytes an id.

Two different ids are taken for one with a chance of n²/2⁶⁵ for n ids: 3·10⁻⁸ for a million.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class SeenIds:
    """Remembers hashes in sorted runs, of which equal ones are merged as in a binary counter."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []
        self.count = 0

    def meet(self, names: Sequence[str]) -> int | None:
        """Remembers `names`; the place of the first that was there before, also among them, or None."""
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        run, first = np.unique(hashes, return_index=True)
        known = np.zeros(len(hashes), bool)
        if len(run) < len(hashes):
            known[:] = True
            known[first] = False
        for older in self._runs:
            at = np.minimum(np.searchsorted(older, hashes), len(older) - 1)
            known |= older[at] == hashes
        if known.any():
            return int(np.argmax(known))
        self.count += len(names)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)
        return None

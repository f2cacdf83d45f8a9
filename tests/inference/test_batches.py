"""How neighbouring cases are divided into batches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tsattn.inference.batching import Size


def test_a_batch_holds_as_many_cases_as_asked_for() -> None:
    assert Size(4).cuts(np.full(10, 1000)) == [0, 4, 8, 10]
    assert Size(4).cuts(np.full(8, 1)) == [0, 4, 8]
    assert Size(4).cuts(np.empty(0, np.int64)) == [0, 0]
    assert Size(4, 100).cuts(np.empty(0, np.int64)) == [0, 0]


def test_batches_of_long_cases_are_small() -> None:
    size = Size(8, 400)
    lengths = np.sort(np.random.default_rng(0).integers(0, 40, 200))
    cuts = size.cuts(lengths)
    assert (cuts[0], cuts[-1]) == (0, 200)
    counts = [stop - start for start, stop in pairwise(cuts)]
    for start, count in zip(cuts, counts, strict=False):
        assert count == 1 or count * lengths[start + count - 1] ** 2 <= 400
    assert counts[0] == 8  # short ones fill a batch
    assert counts[-1] == 1  # a case of more timepoints than there may be is alone
    assert len(set(counts)) > 2

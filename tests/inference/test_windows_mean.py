"""The answer for a recording is the mean of its windows' answers."""

from __future__ import annotations

import numpy as np

from tsattn.data.caseblocks import CaseBlock, RowFacts
from tsattn.inference.batching import Size, Window


def test_a_recording_answers_with_the_mean_of_its_windows() -> None:
    block = CaseBlock(
        values=np.zeros((4, 1, 2), np.float32),
        lengths=np.full(4, 2, np.int64),
        rows=RowFacts(ids=["a", "b", "c"], count=3, faults={1: "no window"}),
        owner=np.array([0, 0, 0, 2], np.int64),
    )
    window = Window([block], 2)
    (batch,) = window.batches(Size(8))
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.25, 0.75]], np.float32)
    assert window.answer(batch, shares)
    (answers,) = window.rows()
    np.testing.assert_array_equal(answers.probabilities[[0, 2]], [[0.5, 0.5], [0.25, 0.75]])

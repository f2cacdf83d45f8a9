"""A training takes as many threads as its steps are worth."""

from __future__ import annotations

import pytest

from tsattn.training import threads
from tsattn.training.threads import threads_for


@pytest.mark.parametrize(
    ("cases", "timepoints", "width", "expected"),
    [(16, 15, 96, 1), (16, 1000, 96, 16), (64, 40, 96, 3), (1, 1, 8, 1)],
)
def test_threads(
    cases: int, timepoints: int, width: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_most", lambda: 16)
    assert threads_for(cases, timepoints, width) == expected
    monkeypatch.setattr(threads, "_most", lambda: 2)
    assert threads_for(cases, timepoints, width) == min(expected, 2)

"""The two gates of an export by their figures: what must not pass does not, NaN least of all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tsattn.export.asked import Asked
from tsattn.export.making import _failure
from tsattn.export.measure import Figures, Measured
from tsattn.export.parity import TOLERANCE, Comparison, Parity

SAME = Comparison(what="longest", cases=4, length=9, difference=0.0, changed=0)
NAN = float("nan")


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"difference": TOLERANCE}, True),
        ({"difference": 2 * TOLERANCE}, False),
        ({"changed": 1}, False),
        ({"difference": NAN}, False),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_one_comparison_that_fails_is_enough(changes: dict[str, float], holds: bool, first: bool) -> None:
    other = replace(SAME, **changes)  # type: ignore[arg-type]
    assert Parity(comparisons=(other, SAME) if first else (SAME, other)).holds is holds


def measured(before: float | None, after: float | None, changed: int = 0) -> Measured:
    forms = tuple(
        Figures(what=what, size=None, accuracy=accuracy, calibration_error=None, cases_per_second=1.0)
        for what, accuracy in (("run, torch", 1.0), ("fp32", before), ("int8", after))
    )
    return Measured(origin="t", cases=8, trained_on=False, forms=forms, difference=0.0, changed=changed)


@pytest.mark.parametrize(
    ("figures", "most", "said"),
    [
        (measured(0.75, 0.75), 0.0, ""),
        (measured(0.75, 0.875, 3), 0.0, ""),  # better, with other classes
        (measured(0.75, 0.625), 12.5, ""),
        (measured(0.75, 0.625), 12.0, "accuracy falls from 75.00 % to 62.50 %"),
        (measured(None, None, 1), 12.5, ""),
        (measured(None, None, 1), 12.0, "1 of 8 cases without labels change their class"),
    ],
)
def test_what_a_smaller_type_may_cost(figures: Measured, most: float, said: str) -> None:
    failure = _failure(Asked(dtype="int8", max_drop=most), figures)
    assert (said in failure) if said else failure == ""

"""The arithmetic by which a recipe adapts to data: sizes in, a value and the reason for it out.

Nothing here knows a data set by its name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsattn.config import Rules

VALIDATION_SHARE = 0.2
FEWEST_EPOCHS = 3
"""However large a set is; a schedule needs some passes to rise and to fall."""
MOST_DILATIONS = 12
ALIKE = 0.1
"""Deviations that the scale of cases may differ by, in the quadratic mean, and still be that of all."""
TIMEPOINT = 0.25
"""Of a token: what a token stage computes for a timepoint, beside what the blocks compute for a token."""


@dataclass(frozen=True, kw_only=True)
class Ruled:
    """A value and, in words, why it is that."""

    value: int
    why: str


def batch_size(cases: int) -> Ruled:
    """Cases a step of a set of so many training cases."""
    if cases < 1000:
        return Ruled(value=16, why=f"{cases:,} cases, fewer than 1,000")
    if cases < 4000:
        return Ruled(value=32, why=f"{cases:,} cases, 1,000 to 4,000")
    return Ruled(value=64, why=f"{cases:,} cases, 4,000 or more")


def stride(timepoints: int, rules: Rules) -> Ruled:
    """Timepoints a token, a power of two, so that the longest series has at most `tokens_a_case` tokens."""
    found = 1
    while -(-timepoints // found) > rules.tokens_a_case:
        found *= 2
    tokens = -(-timepoints // found)
    bound = f"at most {rules.tokens_a_case:,} are made"
    return Ruled(value=found, why=f"{tokens:,} tokens of {timepoints:,} timepoints, {bound}")


def dilations(timepoints: int) -> Ruled:
    """Of fixed convolutions of 9 timepoints, how many: 1, 2, 4, … while the widest fits into a series."""
    found = 1
    while 8 * 2**found < timepoints and found < MOST_DILATIONS:
        found += 1
    return Ruled(value=found, why=f"up to {2 ** (found - 1)}, {timepoints:,} timepoints")


def differs_in_scale(values: NDArray[np.float32]) -> bool:
    """Whether cases have scales of their own, so that each at its own scale is not the same once more.

    values: (cases, channels, timepoints), NaN where not observed. Means and deviations of cases are measured
    in deviations of all, and may differ from those of all by ALIKE in the quadratic mean.
    """
    seen = ~np.isnan(values)
    wide = np.where(seen, values, 0).astype(np.float64)
    mean, std = _moments(wide, seen, (0, 2))
    own_mean, own_std = _moments(wide, seen, (2,))
    scale = np.divide(1, std, out=np.zeros_like(std), where=std > 0)  # a channel that never changes: alike
    apart = np.square((own_mean - mean) * scale) + np.square((own_std - std) * scale)
    return bool(apart.mean() > ALIKE**2)


def _moments(
    values: NDArray[np.float64], seen: NDArray[np.bool_], axes: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation over what was seen, with those axes gone; 0 where nothing was."""
    count = np.maximum(seen.sum(axis=axes, keepdims=True), 1)
    mean = values.sum(axis=axes, keepdims=True) / count
    square = (np.where(seen, values - mean, 0) ** 2).sum(axis=axes, keepdims=True) / count
    return mean.squeeze(axes), np.sqrt(square).squeeze(axes)


def epochs(cases: int, timepoints: float, stride: int, batch: int, rules: Rules) -> Ruled:
    """Passes over so many cases of so many timepoints on average, a token every `stride`, in such batches."""
    steps = max(1, -(-cases // batch))
    enough = -(-rules.fewest_steps // steps)
    a_case = max(1.0, timepoints / stride + TIMEPOINT * timepoints)
    most = max(FEWEST_EPOCHS, int(rules.most_tokens / (cases * a_case)))
    wanted = max(rules.passes, enough)
    if wanted > most:
        each = f"{cases:,} cases count {a_case:,.0f} tokens each"
        return Ruled(value=most, why=f"{each}, and {rules.most_tokens:,} are about the most in all")
    if enough > rules.passes:
        return Ruled(
            value=enough, why=f"{steps:,} steps an epoch, and at least {rules.fewest_steps:,} are made"
        )
    return Ruled(value=rules.passes, why=f"the usual number; {steps:,} steps an epoch")

"""The arithmetic by which a recipe adapts to data: sizes in, a value and the reason for it out.

Nothing here knows a data set by its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from tsattn.config import Rules

VALIDATION_SHARE = 0.2
FEWEST_EPOCHS = 3
"""However large a set is; a schedule needs some passes to rise and to fall."""
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

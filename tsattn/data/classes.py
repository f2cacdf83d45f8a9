"""The order of classes that the source does not declare."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def sorted_classes(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels: in order of number if all are numbers, else of text."""
    distinct = set(labels)
    try:
        numbers = {label: float(label) for label in distinct}
    except ValueError:
        return tuple(sorted(distinct))
    if not all(np.isfinite(number) for number in numbers.values()):
        return tuple(sorted(distinct))
    return tuple(sorted(distinct, key=lambda label: (numbers[label], label)))

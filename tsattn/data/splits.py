"""A validation part of TRAIN: when TRAIN can spare one, and which cases it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tsattn.errors import InputError

SPARING_CASES = 500
SPARING_CASES_A_CLASS = 25


def spares_validation(labels: Sequence[str]) -> bool:
    """True if TRAIN has at least 500 cases and on average at least 25 a class.

    A fifth of them is then at least 100 cases, which tell an accuracy to about three points; with
    fewer, the cases are worth more in training than what they would tell.
    """
    cases, classes = len(labels), len(set(labels))
    return cases >= SPARING_CASES and cases >= SPARING_CASES_A_CLASS * classes


def validation_split(
    labels: Sequence[str], fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices (training,) and (validation,), each ascending: `fraction` of every class is held out.

    A class of two or more has at least one case on each side, a class of one stays in training, so
    the validation part is empty if every class has one. The same labels, fraction and seed give the
    same split. InputError for a fraction that is not between 0 and 1.
    """
    if not 0 < fraction < 1:
        raise InputError(f"A validation part of {fraction} is not possible: it has to lie between 0 and 1.")
    members: dict[str, list[int]] = defaultdict(list)
    for index, label in enumerate(labels):
        members[label].append(index)
    generator = np.random.default_rng(seed)
    held_out: list[int] = []
    for label in sorted(members):
        count = len(members[label])
        share = min(max(round(count * fraction), 1), count - 1)
        held_out += generator.permutation(members[label])[:share].tolist()
    validation = np.array(sorted(held_out), dtype=np.int64)
    training = np.setdiff1d(np.arange(len(labels), dtype=np.int64), validation)
    return training, validation

"""A validation part of TRAIN: when TRAIN can spare one, and which cases it is."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tsattn.errors import InputError

SPARING_CASES = 500
SPARING_CASES_A_CLASS = 25
SPARING_GROUPS = 10


def spares_validation(labels: Sequence[str], groups: Sequence[str] | None = None) -> bool:
    """True if TRAIN has at least 500 cases and on average at least 25 a class.

    A fifth of them is then at least 100 cases, which tell an accuracy to about three points; with
    fewer, the cases are worth more in training than what they would tell. Where they belong to
    groups that stay whole, a fifth of fewer than ten of those would tell of one or two groups only.
    """
    cases, classes = len(labels), len(set(labels))
    if groups is not None and len(set(groups)) < SPARING_GROUPS:
        return False
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


def grouped_split(
    labels: Sequence[str], groups: Sequence[str], fraction: float, seed: int, *, recordings: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As `validation_split`, but every group (a subject, a machine, a recording) is on one side whole.

    About `fraction` of the cases is held out, classes shared out as evenly as whole groups allow.
    recordings: the groups are those that windows were cut from, which nobody named.
    InputError where no choice of groups leaves every class something to be trained on.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    if not 0 < fraction < 1:
        raise InputError(f"A validation part of {fraction} is not possible: it has to lie between 0 and 1.")
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    parts = min(max(round(1 / fraction), 2), len(set(groups)), int(np.bincount(codes).max()))
    if parts >= 2:
        folds = StratifiedGroupKFold(parts, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # classes of fewer cases than folds are fine here
            found = list(folds.split(codes, codes, np.asarray(groups)))
        for training, validation in found:
            if len(validation) and len(np.unique(codes[training])) == len(classes):
                return training.astype(np.int64), validation.astype(np.int64)
    count = len(set(groups))
    what, other = ("group", "name other groups")
    if recordings:
        what, other = "recording", "hold out the last windows with --time-ordered"
    raise InputError(
        f"The {count} {what}{'' if count == 1 else 's'} cannot be divided so that each of the {len(classes)} "
        f"classes keeps cases to train on. Train on all of them with --val-fraction 0, or {other}."
    )


def folds(
    labels: Sequence[str], parts: int, seed: int, groups: Sequence[str] | None = None
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """`parts` pairs of indices (training,) and (held out,); every case is held out once, groups whole.

    Classes are shared out as evenly as that allows. InputError where a part would be empty, and where a
    class would have nothing to be trained on.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    units = len(labels) if groups is None else len(set(groups))
    if parts > units:
        what = "cases" if groups is None else "groups"
        raise InputError(f"{units} {what} cannot be shared out to {parts} parts: give kfold less of them.")
    of = np.arange(len(labels)) if groups is None else np.asarray(groups)
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes of fewer cases than parts are fine here
        try:
            found = list(kind(parts, shuffle=True, random_state=seed).split(codes, codes, of))
        except ValueError:  # all classes have fewer cases than there are parts
            raise InputError(
                f"No class has {parts} cases, so {parts} parts cannot be made: give kfold a smaller number."
            ) from None
    for training, held_out in found:
        missing = sorted(set(range(len(classes))) - set(codes[training]))
        if missing or not len(held_out):
            why = f"leave class {str(classes[missing[0]])!r} nothing to learn from" if missing else "be empty"
            raise InputError(f"One of {parts} parts would {why}: give kfold another number.")
    return [(training.astype(np.int64), held_out.astype(np.int64)) for training, held_out in found]


def dealt(
    labels: Sequence[str], parts: int, seed: int, groups: Sequence[str] | None = None
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """As `folds`, but for any cases: what cannot be held out never is, and parts may be empty.

    Cases are dealt out class after class, so that classes are shared out evenly however few cases they have.
    Groups stay whole and count as of one of their classes; what alone has a class is always trained on.
    """
    codes = np.unique(np.asarray(labels), return_inverse=True)[1]
    of = np.arange(len(labels)) if groups is None else np.asarray(groups)
    first, units = np.unique(of, return_index=True, return_inverse=True)[1:]
    shuffled = np.random.default_rng(seed).permutation(len(first))
    in_order = shuffled[np.argsort(codes[first[shuffled]], kind="stable")]
    part_of = np.empty(len(first), np.int64)
    part_of[in_order] = np.arange(len(first)) % parts
    found = []
    for part in range(parts):
        held_out = part_of[units] == part
        alone = units[held_out & ~np.isin(codes, codes[~held_out])]
        held_out &= ~np.isin(units, alone)
        found.append((np.flatnonzero(~held_out), np.flatnonzero(held_out)))
    return found


def latest_split(labels: Sequence[str], fraction: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The last `fraction` of the cases, in the order of the source, is held out.

    InputError where a class then has nothing to be trained on, or either side is empty.
    """
    count = len(labels)
    first = count - round(count * fraction)
    if not 0 < first < count:
        raise InputError(f"A validation part of {fraction} of {count} cases leaves one side empty.")
    missing = sorted(set(labels) - set(labels[:first]))
    if missing:
        raise InputError(
            f"The first {first} of {count} cases hold no case of class {missing[0]!r}, so --time-ordered "
            "leaves nothing to learn it from. Give a smaller --val-fraction, or leave out --time-ordered."
        )
    return np.arange(first, dtype=np.int64), np.arange(first, count, dtype=np.int64)

"""Which training cases are held out to choose the epoch, so that nothing leaks from one side to the other."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.describe import shared_cases
from tsattn.data.preparation import Preparation, PreparedCases, prepare_cases
from tsattn.data.sources import LoadedSplit
from tsattn.data.splits import dealt, folds, grouped_split, latest_split, validation_split
from tsattn.data.whole import load_whole
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Holding:
    """How the held-out cases are chosen, beside their share.

    latest: the last of the source instead of a stratified choice. file: cases from another file.
    test: the source's own TEST. fold: the part of how many that is held out, counted from 0.
    together: of a member of an ensemble, the seed with which TRAIN is divided for all of them; None for
    another run, whose own seed divides.
    """

    latest: bool = False
    file: Path | None = None
    test: bool = False
    fold: tuple[int, int] | None = None
    together: int | None = None

    def __post_init__(self) -> None:
        if self.latest and self.file is not None:
            raise InputError("--time-ordered and --val-file both say what is held out: type one of them.")


BY_SHARE = Holding()


@dataclass(frozen=True, kw_only=True)
class Divided:
    """Training and held-out cases.

    split: their places among the source's cases. how: in words, '' if none is held out.
    """

    train: Collection
    validation: Collection | None
    split: dict[str, list[int]]
    how: str


def groups_of(cut: PreparedCases) -> tuple[str, ...] | None:
    """What may not be torn apart: the cases' own groups, else recordings cut into several windows."""
    if cut.cases.groups is not None:
        return cut.cases.groups
    if len(np.unique(cut.recording)) < len(cut.recording):
        return tuple(map(str, cut.recording))
    return None


def divide(cut: PreparedCases, share: float, seed: int, holding: Holding, window: int | None) -> Divided:
    """Holds out about `share` of the cases; none where it is 0.

    Groups stay whole. Of the latest cases held out, windows that reach into them are not trained on.
    InputError for the latest of cases that have groups, and where a class has nothing to be trained on.
    """
    cases = cut.cases
    assert cases.labels is not None
    if holding.fold is not None:
        return _fold(cut, *holding.fold, seed=seed, together=holding.together)
    if share == 0:
        return Divided(train=cases, validation=None, split=_split(np.arange(len(cases))), how="")
    groups = groups_of(cut)
    if holding.latest and cases.groups is not None:
        raise InputError(
            "--time-ordered and groups (--group): the last cases would tear groups apart. "
            "Leave one of the two away."
        )
    if holding.latest:
        training, held_out = latest_split(cases.labels, share)
        apart, how = _apart(cut, training, held_out, window), "the last of the source"
        _check_classes(cases, training, apart)
        training = apart
    elif groups is not None:
        training, held_out = grouped_split(cases.labels, groups, share, seed, recordings=cases.groups is None)
        how = f"whole groups, {len({groups[i] for i in held_out})} of {len(set(groups))}"
    else:
        (training, held_out), how = validation_split(cases.labels, share, seed), "stratified"
    if not len(held_out):
        return Divided(train=cases, validation=None, split=_split(training), how="")
    return Divided(
        train=cases.take(training), validation=cases.take(held_out), split=_split(training, held_out), how=how
    )


def with_file(cut: PreparedCases, file: Path, table: TableOptions, preparation: Preparation) -> Divided:
    """All cases are trained on; those of `file` (or folder), prepared in the same way, are held out.

    InputError where the file has no labels, other channels, a class that is not trained on, or training
    cases only; where its cases are of a group that is trained on, and where it does not say their groups.
    """
    cases, held_out = cut.cases, prepare_cases(load_whole(file, table), preparation).cases
    if held_out.labels is None:
        raise InputError(f"{file}: its cases have no labels, so they cannot tell which epoch is the best.")
    if held_out.channels != cases.channels:
        raise InputError(
            f"{file}: its channels are {', '.join(held_out.channels)}; those of the training cases are "
            f"{', '.join(cases.channels)}."
        )
    unknown = sorted(set(held_out.labels) - set(cases.classes))
    if unknown:
        raise InputError(
            f"{file}: class {unknown[0]!r} is not among those trained on: {', '.join(cases.classes)}."
        )
    _check_groups(cases, held_out, file)
    _check_cases(cases, held_out, file)
    return Divided(train=cases, validation=held_out, split=_split(np.arange(len(cases))), how=str(file))


def with_test(cut: PreparedCases, test: LoadedSplit, preparation: Preparation) -> Divided:
    """All of TRAIN is trained on and TEST held out, which makes figures on TEST no estimate of anything.

    InputError where the source has no TEST, and where TEST has a class that TRAIN has not.
    """
    if test.undivided:
        raise InputError(f"{test.origin}: it has no TEST part, so no epoch can be the best on it.")
    cases, held_out = cut.cases, prepare_cases(test.collection, preparation).cases
    if unknown := sorted(set(held_out.labels or ()) - set(cases.classes)):
        raise InputError(f"{test.origin}: class {unknown[0]!r} is not in TRAIN, so nothing learns it.")
    return Divided(train=cases, validation=held_out, split=_split(np.arange(len(cases))), how="TEST")


def _fold(cut: PreparedCases, place: int, parts: int, *, seed: int, together: int | None) -> Divided:
    """Part `place` of `parts` is held out, classes shared out evenly and groups whole."""
    cases, groups = cut.cases, groups_of(cut)
    labels = cases.labels or ()
    if together is None:
        training, held_out = folds(labels, parts, seed, groups)[place]
    else:
        training, held_out = dealt(labels, parts, together, groups)[place]
    if not len(held_out):
        return Divided(train=cases, validation=None, split=_split(training), how="")
    return Divided(
        train=cases.take(training),
        validation=cases.take(held_out),
        split=_split(training, held_out),
        how=f"part {place + 1} of {parts}",
    )


def _check_groups(cases: Collection, held_out: Collection, file: Path) -> None:
    if cases.groups is None:
        return
    if held_out.groups is None:
        raise InputError(
            f"{file}: it names no groups, as the training cases do, so its cases may be of groups that are "
            "trained on. Give a file that names them (a table with the column of --group, or .npz with "
            "groups), or train without groups."
        )
    if torn := sorted(set(cases.groups) & set(held_out.groups)):
        raise InputError(
            f"{file}: its cases are to be held out, but the training cases too have the group {torn[0]!r}"
            f"{f' and {len(torn) - 1} more of its groups' if len(torn) > 1 else ''}. "
            "Take those cases out of one of the two, or leave --group away."
        )


def _check_cases(cases: Collection, held_out: Collection, file: Path) -> None:
    """Says how many of the held-out cases are training cases. InputError if all are."""
    shared = len(shared_cases(cases, held_out))
    if shared and shared == len(held_out):
        raise InputError(
            f"{file}: each of its {shared} cases is a training case too, so none would be held out. "
            "Type a file of other cases, or --val-fraction SHARE instead of --val-file."
        )
    if shared:
        logger.warning(
            "%s: %d of its %d cases are training cases too, so what is held out looks better than it is. "
            "Take them out of one of the two.", file, shared, len(held_out),
        )  # fmt: skip


def _check_classes(cases: Collection, before: NDArray[np.int64], kept: NDArray[np.int64]) -> None:
    """InputError where the windows taken out were all that a class could be learnt from."""
    assert cases.labels is not None
    labels = cases.labels
    missing = sorted({labels[i] for i in before} - {labels[i] for i in kept})
    if missing:
        raise InputError(
            f"Of the {len(before)} windows before the held-out ones {len(kept)} share no timepoint with "
            f"them, and none of these is of class {missing[0]!r}, so --time-ordered leaves nothing to learn "
            "it from. Give a smaller --window or --val-fraction, or hold out other cases with --val-file "
            "instead of --time-ordered."
        )


def _apart(
    cut: PreparedCases, training: NDArray[np.int64], held_out: NDArray[np.int64], window: int | None
) -> NDArray[np.int64]:
    """Training windows without those that share timepoints with the first held-out one of their recording."""
    if window is None:
        return training
    first = held_out[0]
    reaches = (cut.recording[training] == cut.recording[first]) & (
        cut.start[training] + window > cut.start[first]
    )
    return training[~reaches]


def _split(training: NDArray[np.int64], held_out: NDArray[np.int64] | None = None) -> dict[str, list[int]]:
    return {
        "train": training.tolist(),
        "validation": [] if held_out is None else held_out.tolist(),
    }

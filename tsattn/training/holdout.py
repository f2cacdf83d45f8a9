"""Which training cases are held out to choose the epoch, so that nothing leaks from one side to the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.preparation import Preparation, PreparedCases, prepare_cases
from tsattn.data.sources import load_file
from tsattn.data.splits import grouped_split, latest_split, validation_split
from tsattn.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Holding:
    """How the held-out cases are chosen, beside their share.

    latest: the last of the source instead of a stratified choice. file: cases from another file.
    """

    latest: bool = False
    file: Path | None = None

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
    InputError for the latest of cases that have groups.
    """
    cases = cut.cases
    assert cases.labels is not None
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
        training, how = _apart(cut, training, held_out, window), "the last of the source"
    elif groups is not None:
        training, held_out = grouped_split(cases.labels, groups, share, seed)
        how = f"whole groups, {len({groups[i] for i in held_out})} of {len(set(groups))}"
    else:
        (training, held_out), how = validation_split(cases.labels, share, seed), "stratified"
    if not len(held_out):
        return Divided(train=cases, validation=None, split=_split(training), how="")
    return Divided(
        train=cases.take(training), validation=cases.take(held_out), split=_split(training, held_out), how=how
    )


def with_file(cut: PreparedCases, file: Path, table: TableOptions, preparation: Preparation) -> Divided:
    """All cases are trained on; those of `file`, prepared in the same way, are held out.

    InputError where the file has no labels, other channels, a class that is not trained on, or cases of a
    group that is trained on.
    """
    cases, held_out = cut.cases, prepare_cases(load_file(file, table).collection, preparation).cases
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
    if torn := sorted(set(cases.groups or ()) & set(held_out.groups or ())):
        raise InputError(
            f"{file}: its cases are to be held out, but the training cases too have the group {torn[0]!r}"
            f"{f' and {len(torn) - 1} more of its groups' if len(torn) > 1 else ''}. "
            "Take those cases out of one of the two, or leave --group away."
        )
    return Divided(train=cases, validation=held_out, split=_split(np.arange(len(cases))), how=str(file))


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

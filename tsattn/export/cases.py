"""The real cases on which a model file is proved, measured and calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tsattn.config import TEST
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.describe import shared_cases
from tsattn.data.heads import is_table
from tsattn.data.preparation import Preparation, prepare_cases
from tsattn.data.sources import load_file, load_split
from tsattn.data.whole import load_whole
from tsattn.errors import InputError
from tsattn.inference.cases import match_channels
from tsattn.inference.pipeline import roles_of
from tsattn.runs import Run, read_split_places
from tsattn.runs.files import SPLIT


@dataclass(frozen=True, kw_only=True)
class RealCases:
    """Cases with where they came from. trained_on: the model's weights were fitted to them."""

    cases: Collection
    origin: str
    trained_on: bool = False


def proving_cases(run: Run, data: str | None) -> Collection:
    """What the two engines are compared on: the run's own training cases, or those of `data`.

    A file needs no labels for that, and its columns may be called as in training.
    """
    if data is not None:
        return _as_trained(run, _named(run, data))
    try:
        train = load_split(run.config.source, "train", _options(run), _registry(run))
    except InputError as error:
        raise InputError(
            f"{error} The run's training cases are what the model file is proved on; name other series "
            "of the same channels with --data SOURCE."
        ) from None
    return _prepared(run, train.collection)


def measuring_cases(run: Run, data: str | None) -> RealCases:
    """Cases that the weights were not fitted to: of `data`, else TEST, else those held out.

    Where there are none of them, the training cases.
    """
    if data is not None:
        return RealCases(cases=_as_trained(run, _named(run, data, "test")), origin=data)
    try:
        test = load_split(run.config.source, "test", _options(run), _registry(run))
    except InputError:  # a source without TEST
        test = None
    if test is not None and not test.undivided:
        return RealCases(cases=_as_trained(run, test.collection), origin=test.origin)
    held_out = held_out_cases(run)
    if held_out is not None:
        return held_out
    return RealCases(cases=proving_cases(run, None), origin=run.config.source, trained_on=True)


def held_out_cases(run: Run) -> RealCases | None:
    """What the run held out of its training cases to choose the epoch; None if it did not, or by TEST."""
    held_out = run.config.held_out
    if held_out == TEST:
        return None
    if held_out:
        return RealCases(
            cases=_as_trained(run, load_whole(Path(held_out), _options(run))), origin=f"held out: {held_out}"
        )
    if not (run.path / SPLIT).is_file():  # an ensemble, whose members may have held out different ones
        return None
    places = np.array(read_split_places(run.path).get("validation", []), np.int64)
    if not len(places):
        return None
    cases = proving_cases(run, None)
    if places.max() >= len(cases):
        raise InputError(
            f"{run.config.source}: has {len(cases)} cases, less than the run was trained with. "
            "Put the data back as they were, or name other cases with --data SOURCE."
        )
    return RealCases(cases=cases.take(places), origin=f"{len(places)} cases held out of {run.config.source}")


def calibration_cases(run: Run, source: str) -> RealCases:
    """The cases of --calibrate; of a named set those of TRAIN."""
    cases = _as_trained(run, _named(run, source))
    same = source == run.config.source  # members and runs with held-out cases were trained on a part of it
    known = same or cases.fingerprint() == run.card.fingerprint or _stand_in_train(run, cases)
    return RealCases(cases=cases, origin=source, trained_on=known)


def _stand_in_train(run: Run, cases: Collection) -> bool:
    """Whether all of the cases do, whatever they are called; False where TRAIN is not there any more."""
    try:
        train = proving_cases(run, None)
    except InputError:
        return False
    return len(shared_cases(train, cases)) == len(cases)


def _named(run: Run, source: str, split: str = "train") -> Collection:
    """All cases of a file, or a part of another SOURCE."""
    path = Path(source)
    if not path.is_file():
        return load_split(source, "test" if split == "test" else "train", TableOptions()).collection
    known = roles_of(path, TableOptions(), run.card) if is_table(path) else TableOptions()
    return load_file(path, replace(known, label_of=_options(run).label_of)).collection


def _as_trained(run: Run, recordings: Collection) -> Collection:
    return _prepared(run, match_channels(recordings, run.card))


def _prepared(run: Run, recordings: Collection) -> Collection:
    return prepare_cases(recordings, Preparation.from_dict(run.config.preparation)).cases


def _options(run: Run) -> TableOptions:
    """The columns of training; of windows the label may change within a recording."""
    windows = Preparation.from_dict(run.config.preparation).window is not None
    return replace(TableOptions.of(run.config.table), label_of="timepoint" if windows else None)


def _registry(run: Run) -> Path | None:
    return Path(run.config.registry) if run.config.registry else None

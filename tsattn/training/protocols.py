"""How the weights that count are chosen: what is held out, and which epoch is kept."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tsattn.card import BEST_ON_TEST
from tsattn.errors import InputError
from tsattn.presets.reading import load_preset
from tsattn.training.holdout import Holding
from tsattn.training.rules import VALIDATION_SHARE

WORDS = {
    "auto": "as the recipe says, else holdout where TRAIN can spare a validation part, else last",
    "holdout": "a part of TRAIN is held out, the epoch that is best on it is kept",
    "last": "all of TRAIN, a fixed schedule, its last epoch",
    "refit": "holdout to find the number of epochs, then all of TRAIN for as many",
    "kfold": "kfold:K holds out each of K parts of TRAIN in turn, and keeps the last epoch",
    BEST_ON_TEST: "the epoch that is best on TEST, to compare with published tables and for nothing else",
}
MOST_FOLDS = 1000


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A protocol as typed. folds: of kfold, 0 otherwise."""

    name: str
    folds: int = 0


def parse_protocol(text: str) -> Protocol:
    """Reads one of WORDS. InputError with the near word for another."""
    name, colon, option = text.partition(":")
    if name not in WORDS:
        near = difflib.get_close_matches(name, WORDS, n=1, cutoff=0.4)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise InputError(f"--protocol {text}: there is no such one.{hint} There are: {', '.join(WORDS)}.")
    if name == "kfold":
        if not option.isdecimal() or not 2 <= int(option) <= MOST_FOLDS:
            raise InputError(f"--protocol {text}: expected a number of parts, at least 2, as in kfold:5.")
        return Protocol(name=name, folds=int(option))
    if colon:
        raise InputError(f"--protocol {text}: '{name}' takes no option, write '{name}'.")
    return Protocol(name=name)


def refuse_parts_of_several(protocol: Protocol, preset: str) -> None:
    """InputError for kfold with a preset that makes one model of several.

    A training divides TRAIN by its seed, and members have seeds of their own: one would have been trained on
    what another is judged on.
    """
    if protocol.folds and load_preset(preset).ensemble.get("members", 1) > 1:
        raise InputError(
            f"--protocol kfold:{protocol.folds} judges single models, and preset '{preset}' makes one of "
            "several. Judge what its members are, e.g. --preset base with --tokens."
        )


def settle(
    protocol: Protocol, asked: Mapping[str, Any], holding: Holding
) -> tuple[Mapping[str, Any], Holding]:
    """What a protocol means for one run: the choices and what is held out, completed.

    A run of kfold comes with its fold in `holding`; refit is two runs, of holdout and of last.
    InputError where the options of holding out say something else than the protocol.
    """
    share = asked.get("validation")
    said = [
        option
        for option, given in (
            ("--val-fraction", share is not None),
            ("--val-file", holding.file is not None),
            ("--time-ordered", holding.latest),
        )
        if given
    ]
    if protocol.name in ("last", BEST_ON_TEST, "kfold") and said:
        raise InputError(
            f"--protocol {protocol.name} and {said[0]} both say what is held out: type one of them."
        )
    if protocol.name == "last":
        return {**asked, "validation": 0.0}, holding
    if protocol.name == BEST_ON_TEST:
        return {**asked, "validation": 0.0}, replace(holding, test=True)
    if holding.fold is not None:
        settled_later = {} if holding.together is None else {"trial": 0.0}
        return {**asked, "validation": 0.0, "keep_epoch": "last", **settled_later}, holding
    if holding.file is not None:
        if share is not None:
            raise InputError("--val-fraction and --val-file both say what is held out: type one of them.")
        return {**asked, "validation": 0.0}, holding
    if protocol.name == "holdout" and share == 0:
        raise InputError("--protocol holdout holds cases out: give --val-fraction more than 0.")
    if share is None and (holding.latest or protocol.name == "holdout"):
        return {**asked, "validation": VALIDATION_SHARE}, holding
    return asked, holding

"""Folders of several runs: one a seed or a part of a cross-validation, or all together one model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from tsattn.errors import InputError
from tsattn.models.classifier import TransformerClassifier
from tsattn.runs.files import MEMBERS

SMALLEST = 1e-30
"""Of a probability before its logarithm."""
MOST = 1e6
"""That transformers can count, and of a temperature; far outside of what cases settle."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What an ensemble takes from cases of TRAIN, each held out from one of its members.

    say: what the transformers count beside what is beside them, from 0. temperature: what every member's
    logits are divided by, from 1 / MOST; both up to MOST. cases: that said so; loss (nats) and accuracy in
    [0, 1]: of the one member that was trained without the case, not of the ensemble.
    """

    say: float
    temperature: float
    cases: int
    loss: float
    accuracy: float

    def __post_init__(self) -> None:
        if not (0 <= self.say <= MOST and 1 / MOST <= self.temperature <= MOST):
            raise ValueError(f"say {self.say} and temperature {self.temperature} cannot be")


@dataclass(frozen=True, kw_only=True)
class Members:
    """The runs of a folder.

    names: of the run folders, in order. ensemble: whether the means of their probabilities are one model.
    settled: what held-out cases said of that model, None where none did.
    """

    names: tuple[str, ...]
    ensemble: bool
    settled: Settled | None = None


class Ensemble(nn.Module):
    """Several classifiers as one, whose probabilities are the means of theirs.

    settled: how sure the members are made before that, and how much of what they say is their transformers'.
    """

    def __init__(self, members: list[TransformerClassifier], settled: Settled | None = None) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.temperature = 1.0
        if settled is not None:
            self.temperature = settled.temperature
            for beside in (member.beside for member in members if member.beside is not None):
                beside.say.fill_(settled.say)

    def forward(self, values: Tensor, complete: bool = False) -> Tensor:
        """As `TransformerClassifier.forward`; the logits are logarithms of the mean probabilities."""
        logits = [member(values, complete).float() / self.temperature for member in self.members]
        each = [torch.softmax(one, dim=1) for one in logits]
        return torch.stack(each).mean(0).clamp(min=SMALLEST).log()


def read_members(path: Path) -> Members | None:
    """What a folder of several runs says of them, None for another. InputError where it cannot be read."""
    place = path / MEMBERS
    if not place.is_file():
        return None
    try:
        content = json.loads(place.read_text("utf-8"))
        names = tuple(str(name) for name in content["members"])
        ensemble = bool(content["ensemble"])
        settled = None if content.get("settled") is None else Settled(**content["settled"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{place}: not a list of runs ({error}). Type the training again to mend it."
        ) from None
    if not names or any(Path(name).name != name for name in names):
        raise InputError(f"{place}: it names no runs beside it. Type the training again to mend it.")
    if missing := [name for name in names if not (path / name).is_dir()]:
        raise InputError(
            f"{place}: names {missing[0]}, which is not there. Put it back, or type the training again, "
            "which trains what is missing."
        )
    return Members(names=names, ensemble=ensemble, settled=settled)

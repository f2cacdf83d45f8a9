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


@dataclass(frozen=True, kw_only=True)
class Members:
    """The runs of a folder.

    names: of the run folders, in order. ensemble: whether the means of their probabilities are one model.
    """

    names: tuple[str, ...]
    ensemble: bool


class Ensemble(nn.Module):
    """Several classifiers as one, whose probabilities are the means of theirs."""

    def __init__(self, members: list[TransformerClassifier]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, values: Tensor, complete: bool = False) -> Tensor:
        """As `TransformerClassifier.forward`; the logits are logarithms of the mean probabilities."""
        each = [torch.softmax(member(values, complete).float(), dim=1) for member in self.members]
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
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{place}: not a list of runs ({error}). Type the training again to mend it."
        ) from None
    if not names or any(Path(name).name != name for name in names):
        raise InputError(f"{place}: it names no runs beside it. Type the training again to mend it.")
    return Members(names=names, ensemble=ensemble)

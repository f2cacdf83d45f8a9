"""A short training without a quarter of the cases, to learn how much a transformer's word is worth.

A transformer knows its few training cases by heart. How much it is to count beside a ridge regression, of
which it is known what it says of cases left out, only cases tell that it never saw.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from tsattn.data.splits import dealt
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.closed_form import Fitted, said, weigh_honestly
from tsattn.training.loop import fit
from tsattn.training.preparing import Prepared
from tsattn.training.pretrained import begin_with
from tsattn.training.resident import ResidentCases, placed

PARTS = 4
"""Of the training cases, one of which the trial does not see."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weighed:
    """What a transformer is to count, in [0, 1], and how many cases said so."""

    say: float
    cases: int


def weigh_by_trial(
    prepared: Prepared,
    cases: ResidentCases,
    fitted: Fitted,
    asked_to_stop: Callable[[], bool],
    at_once: int,
) -> Weighed | None:
    """Trains a second model for a share of the epochs; None where no case can be held out.

    cases: of training, on the device. fitted: what the convolutions say of those left out. at_once: how many
    go through the model together. Interrupted when asked to stop.
    """
    config = prepared.config
    assert prepared.train.labels is not None
    training, held_out = dealt(prepared.train.labels, PARTS, config.training.seed, prepared.groups)[0]
    known = np.flatnonzero(np.isin(fitted.places, held_out))
    if not len(known):
        return None
    device = cases.device
    torch.manual_seed(config.training.seed)
    model = TransformerClassifier(dataclasses.replace(config.model, convolutions=0))
    model.standardise.load_state_dict(prepared.model.standardise.state_dict())
    if config.training.pretrained:
        begin_with(model, Path(config.training.pretrained))
    model = model.to(device)
    classes = prepared.train.classes
    epochs = max(1, round(config.training.trial * config.training.epochs))
    short = dataclasses.replace(config.training, epochs=epochs, compile=False, track="")
    fit(
        model,
        placed(prepared.train.take(training), classes, device),
        None,
        short,
        lambda epoch: None,
        asked_to_stop=asked_to_stop,
        micro_batch=at_once,
    )
    own, targets = said(model, cases, fitted.places[known], at_once)
    beside = torch.log_softmax(fitted.ridge.left_out[torch.from_numpy(known)], dim=1).to(own)
    return Weighed(say=weigh_honestly(own, beside, targets), cases=len(known))

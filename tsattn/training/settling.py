"""What an ensemble learns from cases that were each held out from one of its members.

A transformer knows its few training cases by heart, so only others tell how much of its word to take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tsattn.models.classifier import TRUST, TransformerClassifier
from tsattn.runs import read_run
from tsattn.runs.members import Settled
from tsattn.training.preparing import prepare_again
from tsattn.training.resident import ResidentCases, placed

SAYS = tuple(step / 20 for step in range(31))
TEMPERATURES = tuple(float(one) for one in np.geomspace(0.1, 5, 60))
AT_ONCE = 16


def settle(folder: Path, names: Sequence[str], *, allow_code: bool = False) -> Settled | None:
    """What members' held-out cases say together of an ensemble; None where no member held any out.

    names: of the members' run folders in `folder`. InputError where their data are not there any more.
    """
    found = list(_said(folder, names, allow_code))
    if not found:
        return None
    own, beside, targets = (torch.cat(parts) for parts in zip(*found, strict=True))
    return settled(own, beside, targets)


def settled(own: Tensor, beside: Tensor, targets: Tensor) -> Settled:
    """The mean of SAYS by how likely each makes the classes, and the temperature that suits it best.

    So few cases lead to a middling say and many to the best one.

    own, beside (cases, classes): log-probabilities of the transformers and of what is beside them, or zeros
    where nothing is; targets (cases,). A share of 1 / (cases + 1) of a target counts as spread over all
    classes: few cases that were all right are no reason to be sure.
    """
    alone = not beside.any()
    says = np.array([1.0] if alone else SAYS)
    losses = np.array([_losses(_logits(own, beside, say, alone), targets) for say in says])
    likely = np.exp(len(targets) * (losses.min() - losses)).sum(axis=1)
    say = float(likely @ says / likely.sum())
    logits = _logits(own, beside, say, alone)
    of_say = _losses(logits, targets)
    return Settled(
        say=say,
        temperature=TEMPERATURES[int(np.argmin(of_say))],
        cases=len(targets),
        loss=min(of_say),
        accuracy=(logits.argmax(dim=1) == targets).double().mean().item(),
    )


def _logits(own: Tensor, beside: Tensor, say: float, alone: bool) -> Tensor:
    """As a member has them whose transformer counts so much."""
    return own if alone else TRUST * (say * own + beside)


def _losses(logits: Tensor, targets: Tensor) -> list[float]:
    """Mean cross-entropy at each of TEMPERATURES."""
    doubt = 1 / (len(targets) + 1)
    return [F.cross_entropy(logits / each, targets, label_smoothing=doubt).item() for each in TEMPERATURES]


def _said(folder: Path, names: Sequence[str], allow_code: bool) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Of every member that held cases out: what it says of them, and their classes."""
    for name in names:
        prepared = prepare_again(folder / name, out=folder, allow_code=allow_code)
        if prepared.validation is None:
            continue
        device = torch.device(prepared.config.device)
        model = read_run(folder / name, allow_code=allow_code).single().to(device)
        cases = placed(prepared.validation, prepared.train.classes, device)
        yield _both(model, cases)


def _both(model: TransformerClassifier, cases: ResidentCases) -> tuple[Tensor, Tensor, Tensor]:
    own, beside, targets = [], [], []
    with torch.inference_mode():
        for batch in cases.by_length(AT_ONCE):
            observed = None if batch.complete else ~batch.values.isnan().all(dim=1)
            said = torch.log_softmax(model.transformer(batch.values, observed).float(), dim=1)
            own.append(said)
            beside.append(
                torch.zeros_like(said) if model.beside is None else model.beside(batch.values, observed)
            )
            targets.append(batch.targets)
    return torch.cat(own).cpu(), torch.cat(beside).cpu(), torch.cat(targets).cpu()

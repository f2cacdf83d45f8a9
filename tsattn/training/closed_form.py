"""Fits what of a model has a solution in closed form: the ridge regression over fixed features.

No epochs and no held-out cases: how strongly to shrink, how sure to be and whether each case's own scale
helps are decided by what the regression says of every training case when that case is left out, which is
known exactly from one decomposition. (RidgeCV of scikit-learn knows it too, but chooses by squared error,
and wants all features in float64 at once.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from tsattn.models.beside import RidgeClassifier
from tsattn.models.classifier import TRUST, TransformerClassifier
from tsattn.training.resident import Batch, ResidentCases

MOST_CASES = 4096
"""That are fitted on; the decomposition takes the cube of their number."""
CASES_FOR_THRESHOLDS = 64
AT_ONCE = 1 << 18
"""Responses computed at once, which the processor's caches hold."""
SHRINKAGE = tuple(float(one) for one in np.geomspace(1e-3, 10, 9))
"""Candidates, of the number of features, each counted as often as it is emphasised."""
SURENESS = tuple(float(one) for one in np.geomspace(0.02, 3, 40))
"""Candidates of what scores are divided by before they count as logits."""
SAYS = tuple(step / 20 for step in reversed(range(21)))
"""Candidates of what the transformer counts."""
LEAST_DEVIATION = 1e-3
"""Of a feature over the training cases; one that varies less says nothing."""


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """A ridge regression on ±1 a class, made a classifier.

    weight (classes, F), bias (classes,): of its logits. left_out (cases, classes): logits of training cases,
    each as if it had been left out; loss and accuracy are of these.
    """

    weight: Tensor
    bias: Tensor
    left_out: Tensor
    loss: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What stands beside a transformer now. places: of the training cases, in the order of ridge.left_out."""

    ridge: Ridge
    places: NDArray[np.int64]


def fit_beside(model: TransformerClassifier, train: ResidentCases, seed: int, at_once: int = 64) -> Fitted:
    """Fits in place what is beside the trained transformer, and how much that has to say beside it.

    On all training cases, or MOST_CASES of them drawn with `seed`. at_once: the most that go through the
    transformer together.
    """
    assert model.beside is not None
    drawn = np.random.default_rng(seed).permutation(len(train))[:MOST_CASES]
    ridge = _fit_ridge(model.beside, train, drawn)
    places = _by_length(train, drawn)
    seen, targets = said(model, train, places, at_once)
    model.beside.say.fill_(_weigh(seen, ridge.left_out.to(seen), targets))
    return Fitted(ridge=ridge, places=places)


def said(
    model: TransformerClassifier, cases: ResidentCases, places: NDArray[np.int64], at_once: int
) -> tuple[Tensor, Tensor]:
    """The transformer's own log-probabilities (N, classes) of the N cases at `places`, and their classes."""
    model.eval()
    with torch.inference_mode():
        batches = [cases.batch(some) for some in _parts(places, min(64, at_once))]
        logits = torch.cat([model.transformer(one.values, _observed(one)).float() for one in batches])
        return torch.log_softmax(logits, dim=1), torch.cat([batch.targets for batch in batches])


def weigh_honestly(own: Tensor, beside: Tensor, targets: Tensor) -> float:
    """What the transformer's log-probabilities count beside others, from cases that neither was fitted on.

    The mean of SAYS, each as likely as it makes the classes of the cases: of few cases nearly the middle.
    own, beside (cases, classes): log-probabilities; targets (cases,).
    """
    losses = [F.cross_entropy(TRUST * (say * own + beside), targets, reduction="sum").item() for say in SAYS]
    likely = np.exp(min(losses) - np.array(losses))
    return float(np.dot(likely, SAYS) / likely.sum())


def _weigh(seen: Tensor, left_out: Tensor, targets: Tensor) -> float:
    """What the transformer's log-probabilities count beside the ridge's, between 0 and 1.

    seen: of cases that it was trained on, of which it says more than it could of others. That they should
    count less is sure where they should even so; that they should count more is not, so 1 is the most.
    """
    losses = [F.cross_entropy(left_out + say * seen, targets).item() for say in SAYS]
    return SAYS[int(np.argmin(losses))]


def _fit_ridge(model: RidgeClassifier, train: ResidentCases, drawn: NDArray[np.int64]) -> Ridge:
    """Each case's own scale is used where the loss with it is the lower."""
    by_length = _by_length(train, drawn)
    classes, common = len(train.class_counts), len(model.emphasis) // 2
    with torch.no_grad():
        seen = drawn[(train.lengths[drawn] > 1) | train.complete[drawn]]  # in others nothing is observed
        _place_thresholds(model, train.batch(seen[:CASES_FOR_THRESHOLDS]).values)
        longest = int(train.lengths[drawn].max())
        at_once = max(1, AT_ONCE // model.common.largest(longest))
        batches = [train.batch(some) for some in _parts(by_length, at_once)]
        features = torch.cat([model.features(batch.values, _observed(batch)) for batch in batches])
        targets = torch.cat([batch.targets for batch in batches])
        plain = fit_ridge(features[:, :common], targets, classes, model.emphasis[:common])
        both = fit_ridge(features, targets, classes, model.emphasis)
        best = both if both.loss < plain.loss else plain
        model.weight.zero_()
        model.weight[:, : best.weight.shape[1]] = best.weight
        model.bias.copy_(best.bias)
    return best


class _Choice(NamedTuple):
    loss: float
    accuracy: float
    shrinkage: float
    sureness: float
    left_out: Tensor


def fit_ridge(features: Tensor, targets: Tensor, classes: int, emphasis: Tensor | None = None) -> Ridge:
    """The regression on standardised features that predicts left-out cases with the least cross-entropy.

    A share of 1 / (cases + 1) of a target counts as spread over all classes: that every case was right does
    not say that the next one will be.

    features (cases, F); targets (cases,) of classes; emphasis (F,): what a standardised feature is multiplied
    with, 1 if None. Computed over pairs of cases, in float64.
    """
    cases = len(features)
    mean, std = features.mean(dim=0), features.std(dim=0, correction=0)
    emphasis = torch.ones_like(mean) if emphasis is None else emphasis
    scale = torch.where(std > LEAST_DEVIATION, emphasis / std.clamp(min=LEAST_DEVIATION), 0.0)
    size = emphasis.double().square().sum().item()
    products = torch.zeros(cases, cases, dtype=torch.float64, device=features.device)
    for part in _columns(features.shape[1]):
        standard = ((features[:, part] - mean[part]) * scale[part]).double()
        products.addmm_(standard, standard.T)
    wanted = 2.0 * F.one_hot(targets, classes).double() - 1
    base = wanted.mean(dim=0)
    values, vectors = torch.linalg.eigh(products)
    values = values.clamp(min=0)
    turned = vectors.T @ (wanted - base)
    doubt = 1 / (cases + 1)
    best = _Choice(math.inf, 0.0, 1.0, 1.0, wanted)
    for shrinkage in SHRINKAGE:
        shrunk = values + shrinkage * size
        kept = values / shrunk
        fitted = vectors @ (kept[:, None] * turned)
        own = (vectors.square() @ kept + 1 / cases)[:, None]  # how much a case decides about itself
        left_out = base + (fitted - own * (wanted - base)) / (1 - own).clamp(min=1e-9)
        right = int((left_out.argmax(dim=1) == targets).sum()) / cases
        for sureness in SURENESS:
            loss = F.cross_entropy(left_out / sureness, targets, label_smoothing=doubt).item()
            if loss < best.loss:
                best = _Choice(loss, right, shrinkage, sureness, left_out / sureness)
    shrinkage, sureness = best.shrinkage, best.sureness
    dual = vectors @ (turned / (values + shrinkage * size)[:, None])  # (cases, classes)
    weight = torch.zeros(classes, features.shape[1], dtype=torch.float64, device=features.device)
    for part in _columns(features.shape[1]):
        standard = ((features[:, part] - mean[part]) * scale[part]).double()
        weight[:, part] = dual.T @ standard * scale[part]
    bias = base - weight @ mean.double()
    return Ridge(
        weight=(weight / sureness).to(features.dtype),
        bias=(bias / sureness).to(features.dtype),
        left_out=best.left_out,
        loss=best.loss,
        accuracy=best.accuracy,
    )


def _by_length(train: ResidentCases, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    return drawn[np.argsort(train.lengths[drawn], kind="stable")]


def _parts(places: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [places[start : start + size] for start in range(0, len(places), size)]


def _place_thresholds(model: RidgeClassifier, values: Tensor) -> None:
    observed = ~values.isnan().all(dim=1)
    common, own = model.scaled(values)
    model.common.place_thresholds(common, observed)
    model.own.place_thresholds(own, observed)


def _observed(batch: Batch) -> Tensor | None:
    return None if batch.complete else ~batch.values.isnan().all(dim=1)


def _columns(features: int) -> list[slice]:
    """A few thousand features at a time: in float64 all of them would take twice their own memory."""
    return [slice(start, start + 2048) for start in range(0, features, 2048)]

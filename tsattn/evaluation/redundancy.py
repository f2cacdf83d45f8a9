"""How alike the heads of a layer are, measured on real cases.

o_h(t) in R^D is what head h gives at token t, before heads are joined. All means run over the observed
tokens of all cases, so a long case counts for more than a short one.

distance           mean of |o_g(t) − o_h(t)| over pairs of heads
relative distance  the same, divided by the mean of |o_h(t)|, so that attentions of different output
                   scale compare: 0 for heads that are the same, √2 for orthogonal ones of one length
CKA                linear centred kernel alignment |O_gᵀ O_h|² / (|O_gᵀ O_g| |O_hᵀ O_h|), O_h (tokens, D)
                   centred over tokens and |·| Frobenius's norm; mean over pairs. 1 for heads that are the
                   same up to rotation, shift and scale, which distances would call different although
                   the projection after them can undo it (Kornblith et al. 2019). Of n tokens, heads that
                   have nothing in common still give about D / n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.evaluation.heads import Attended, as_trained, forward, listening
from tsattn.inference.cases import batches
from tsattn.runs import Run

TOKENS_AT_ONCE = 16_384
# Share of a head's squares that float32 rounding can leave where it gives the same at every token.
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class LayerRedundancy:
    """One layer, counted from 0; the figures as the module's docstring says, over `tokens` tokens.

    cka: None where no two heads vary over the tokens.
    """

    layer: int
    distance: float
    relative_distance: float
    cka: float | None
    tokens: int


def redundancy(run: Run, cases: Collection, batch_size: int = 64) -> list[LayerRedundancy]:
    """How alike the heads of each layer are on `cases`, which are as they came from their file.

    Memory grows with neither cases nor the square of their length. InputError for a model of one head,
    for another number of channels than the model's, and where nothing is observed in any case.
    """
    shape = run.config.model
    if shape.heads < 2:
        raise InputError(
            f"{run.path}: its layers have one head each, and one head has none to differ from. Judge it "
            "without --heads."
        )
    prepared = as_trained(run, cases)
    if not prepared.lengths.any():
        raise InputError("Nothing is observed in any of the cases, so no head sees anything.")
    sums = [HeadSums(shape.heads, shape.width // shape.heads) for _ in range(shape.layers)]

    def hear(layer: int, attended: Attended) -> None:
        sums[layer].add(attended.outputs.transpose(1, 2)[attended.observed])

    with listening(run.single(), hear):
        for _, values in batches(prepared, batch_size):
            forward(run.single(), values)
    return [one.result(layer) for layer, one in enumerate(sums)]


class HeadSums:
    """Running sums over tokens from which a layer's figures follow, in float64."""

    def __init__(self, heads: int, dim: int) -> None:
        self._shape = (heads, dim)
        self._tokens = 0
        self._distances = 0.0  # over tokens and ordered pairs
        self._norms = 0.0  # over tokens and heads
        self._mean = torch.zeros(heads * dim, dtype=torch.float64)
        self._products = torch.zeros(heads * dim, heads * dim, dtype=torch.float64)  # centred

    def add(self, outputs: Tensor) -> None:
        """Takes (tokens, H, D) into the sums."""
        for part in outputs.split(TOKENS_AT_ONCE):
            if len(part):
                self._add(part.cpu().double())

    def _add(self, outputs: Tensor) -> None:
        exact = "donot_use_mm_for_euclid_dist"  # the other way leaves rounding where heads are the same
        self._distances += float(torch.cdist(outputs, outputs, compute_mode=exact).sum())
        self._norms += float(outputs.norm(dim=2).sum())

        flat = outputs.flatten(1)  # (tokens, H·D)
        mean, count = flat.mean(0), len(flat)
        total = self._tokens + count
        # Two centred sums make one; centring at the end would cancel digits (Chan et al. 1979).
        apart = mean - self._mean
        self._products += (flat - mean).T @ (flat - mean)
        self._products += torch.outer(apart, apart) * (self._tokens * count / total)
        self._mean += apart * (count / total)
        self._tokens = total

    def result(self, layer: int) -> LayerRedundancy:
        """The figures of what was added."""
        heads, _ = self._shape
        distance = self._distances / (self._tokens * heads * (heads - 1))
        norm = self._norms / (self._tokens * heads)
        return LayerRedundancy(
            layer=layer,
            distance=distance,
            relative_distance=distance / norm if norm else 0.0,
            cka=self._cka(),
            tokens=self._tokens,
        )

    def _cka(self) -> float | None:
        heads, dim = self._shape
        products = self._products.view(heads, dim, heads, dim).numpy()
        alike: NDArray[np.float64] = np.square(products).sum(axis=(1, 3))  # (H, H)
        spread = self._products.diagonal().view(heads, dim).sum(1).numpy()
        squares = spread + self._tokens * self._mean.view(heads, dim).square().sum(1).numpy()
        varies = spread > ROUNDING * squares
        first, second = np.triu_indices(heads, 1)
        both = varies[first] & varies[second]
        if not both.any():
            return None
        first, second = first[both], second[both]
        scale = np.sqrt(alike[first, first] * alike[second, second])
        return float((alike[first, second] / scale).mean())

"""Attention-BN: batch normalisation inside attention. Letters as in contract.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tsattn.models.attention.contract import BuildInner, Heads, Mechanism, at_least_float32
from tsattn.models.attention.registry import wrapper

VARIANCE_FLOOR = 1e-5
LEARNED = "learn"
LARGEST_BETA = 1e3


@wrapper(
    "bn",
    summary="Attention-BN: keys and queries normalised by the keys' mean and variance over time",
    cost="unchanged",
    source="Nguyen et al. 2023, Attention-BN",
    option="beta|learn",
)
class BatchNormalised(Mechanism):
    """inner((q − β·μ) ⊙ s⁻¹, (k − β·μ) ⊙ s⁻¹, v), μ and s² from the observed keys, s² = σ² + 1e-5.

    Statistics are per case, head and feature; there are no running averages, so training and
    inference are the same. Under a softmax of q·k the centring of keys cancels and their scaling
    may be moved onto the queries: inner((q − β·μ) ⊙ s⁻², k, v) is the same and leaves keys alone.
    β is 1 unless given; `learn` makes it a parameter of each head, at first 1.
    """

    def __init__(self, heads: Heads, inner: BuildInner, option: str | None = None) -> None:
        super().__init__()
        self.inner = inner(heads)
        if option == LEARNED:
            self.beta: Tensor | float = nn.Parameter(torch.ones(heads.count, 1, 1))
        else:
            self.beta = 1.0 if option is None else _beta(option)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        share = _share(k, observed)
        if self.inner.ignores_key_shift:
            return self.inner(_normalise_queries(q, k, share, self.beta), k, v, observed)
        mean, variance = _moments(k, share)
        scale = (variance + VARIANCE_FLOOR).rsqrt()
        shift = -self.beta * mean * scale
        return self.inner(_affine(q, scale, shift), _affine(k, scale, shift), v, observed)


def _normalise_queries(q: Tensor, k: Tensor, share: Tensor | float, beta: Tensor | float) -> Tensor:
    """(q − β·μ) ⊙ s⁻², which is all that softmax needs (B, H, L, D)."""
    if torch.compiler.is_compiling():
        mean, variance = _moments(k, share)
        scale = (variance + VARIANCE_FLOOR).reciprocal()
        return _affine(q, scale, -beta * mean * scale)
    if torch.is_grad_enabled():
        normalised: Tensor = _NormaliseQueries.apply(q, k, share, beta)  # type: ignore[no-untyped-call]
        return normalised
    return _in_few_places(q, k, share, beta)[0]


def _in_few_places(
    q: Tensor, k: Tensor, share: Tensor | float, beta: Tensor | float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised queries, μ and −s⁻², without gradients: one tensor as large as k serves every step.

    Passes over memory are all that this costs, new memory is what makes them slow, and beside a short
    series each operation more is felt: s⁻² is negative because that takes one less.
    """
    wide = at_least_float32(k)
    mean = _mean(wide, share)
    place = wide - mean
    minus_scale = torch.rsub(_mean(place.square_(), share), -VARIANCE_FLOOR).reciprocal_()
    shift = _times(mean * minus_scale, beta)
    if place.dtype == q.dtype and place.shape == q.shape:
        return torch.addcmul(shift, q, minus_scale, value=-1, out=place), mean, minus_scale
    return torch.addcmul(shift.to(q.dtype), q, minus_scale.to(q.dtype), value=-1), mean, minus_scale


class _NormaliseQueries(torch.autograd.Function):
    """`_normalise_queries` with its derivative written out, which takes fewer passes over q and k.

    With r = s⁻², G what comes back, and w the share of a key in its mean (1/n, or 0 where not observed):
    dq = r G,  dr = Σ_t (q − β μ) G,  dμ = −β r Σ_t G,  dk_j = w_j (dμ − 2 r² dr (k_j − μ)).
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, share: Tensor | float, beta: Tensor | float) -> Tensor:
        normalised, mean, minus_scale = _in_few_places(q, k, share, beta)
        ctx.save_for_backward(q, k, mean, minus_scale)
        ctx.share, ctx.beta = share, beta
        return normalised

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, Tensor | None]:
        q, k, mean, minus_scale = ctx.saved_tensors
        beta, share, wide = ctx.beta, ctx.share, at_least_float32(grad)
        place = wide * q
        summed = wide.sum(2, keepdim=True)  # (B, H, 1, D), as all the rest of one letter a head
        shifted = _times(summed, beta)
        to_scale = torch.addcmul(place.sum(2, keepdim=True), mean, shifted, value=-1)
        weight = minus_scale * share if isinstance(share, float) else minus_scale
        slope = minus_scale * weight * to_scale
        to_k = torch.addcmul(
            torch.addcmul(weight * shifted, slope, mean, value=2),
            at_least_float32(k),
            slope,
            value=-2,
            out=place if place.shape == k.shape else torch.empty_like(k, dtype=wide.dtype),
        )
        if isinstance(share, Tensor):
            to_k *= share
        to_beta = None
        if isinstance(beta, Tensor):
            to_beta = (mean * minus_scale * summed).sum((0, 3)).unsqueeze(2)
        return (wide * -minus_scale).to(q.dtype), to_k.to(k.dtype), None, to_beta


def _times(x: Tensor, beta: Tensor | float) -> Tensor:
    return x if isinstance(beta, float) and beta == 1 else x * beta


def _share(k: Tensor, observed: Tensor | None) -> Tensor | float:
    """What each key counts for in a mean over the observed ones: 1/S, or (B, 1, S, 1)."""
    if observed is None:
        return 1.0 / k.shape[2]
    seen = observed[:, None, :, None].to(at_least_float32(k).dtype)
    return seen / seen.sum(2, keepdim=True)


def _moments(k: Tensor, share: Tensor | float) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of the observed keys over time, both (B, H, 1, D) float32."""
    # torch.var_mean takes several times as long over a dimension that is not the last.
    k = at_least_float32(k)
    mean = _mean(k, share)
    return mean, _mean((k - mean).square(), share)


def _mean(x: Tensor, share: Tensor | float) -> Tensor:
    """(B, H, 1, D) over the observed timepoints."""
    if isinstance(share, Tensor):
        return (x * share).sum(2, keepdim=True)
    return x.mean(2, keepdim=True)


def _affine(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Scale ⊙ x + shift in one pass over x."""
    return torch.addcmul(shift.to(x.dtype), x, scale.to(x.dtype))


def _beta(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) <= LARGEST_BETA:
        raise ValueError(f"beta must be a number of at most {LARGEST_BETA:g} or {LEARNED}, not '{text}'")
    return number

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
    if torch.is_grad_enabled() and not torch.compiler.is_exporting():
        normalised: Tensor = _NormaliseQueries.apply(q, k, share, beta)  # type: ignore[no-untyped-call]
        return normalised
    mean, variance = _moments(k, share)
    scale = (variance + VARIANCE_FLOOR).reciprocal()
    return _affine(q, scale, -beta * mean * scale)


class _NormaliseQueries(torch.autograd.Function):
    """`_normalise_queries` with its derivative written out, which takes fewer passes over q and k.

    With r = s⁻², G what comes back, and w the share of a key in its mean (1/n, or 0 where not observed):
    dq = r G,  dr = Σ_t (q − β μ) G,  dμ = −β r Σ_t G,  dk_j = w_j (dμ − 2 r² dr (k_j − μ)).
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, share: Tensor | float, beta: Tensor | float) -> Tensor:
        mean, variance = _moments(k, share)
        scale = (variance + VARIANCE_FLOOR).reciprocal()
        ctx.save_for_backward(q, k, mean, scale)
        ctx.share, ctx.beta = share, beta
        return _affine(q, scale, -beta * mean * scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, Tensor | None]:
        q, k, mean, scale = ctx.saved_tensors
        beta, share, wide = ctx.beta, ctx.share, at_least_float32(grad)
        summed = wide.sum(2, keepdim=True)  # (B, H, 1, D), as all the rest of one letter a head
        to_scale = (wide * q).sum(2, keepdim=True) - beta * mean * summed
        to_variance = -2 * scale.square() * to_scale
        to_mean = -beta * scale * summed
        if isinstance(share, float):
            to_variance, to_mean = share * to_variance, share * to_mean
        to_k = torch.addcmul(to_mean - to_variance * mean, at_least_float32(k), to_variance)
        if isinstance(share, Tensor):
            to_k = to_k * share
        to_beta = (-mean * scale * summed).sum((0, 3)).unsqueeze(2) if isinstance(beta, Tensor) else None
        return (wide * scale).to(q.dtype), to_k.to(k.dtype), None, to_beta


def _share(k: Tensor, observed: Tensor | None) -> Tensor | float:
    """What each key counts for in a mean over the observed ones: 1/S, or (B, 1, S, 1)."""
    if observed is None:
        return 1.0 / k.shape[2]
    seen = observed[:, None, :, None].to(at_least_float32(k).dtype)
    return seen / seen.sum(2, keepdim=True)


def _moments(k: Tensor, share: Tensor | float) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of the observed keys over time, both (B, H, 1, D) float32."""
    k = at_least_float32(k)
    if isinstance(share, Tensor):
        mean = (k * share).sum(2, keepdim=True)
        return mean, ((k - mean).square() * share).sum(2, keepdim=True)
    # torch.var_mean takes several times as long over a dimension that is not the last.
    mean = k.mean(2, keepdim=True)
    return mean, (k - mean).square().mean(2, keepdim=True)


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

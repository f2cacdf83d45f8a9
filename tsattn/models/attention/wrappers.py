"""Wrappers that change queries, keys or values at full length. Letters as in contract.py."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

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
        mean, variance = _moments(k, observed)  # (B, H, 1, D), float32
        centre = (self.beta * mean).to(q.dtype)
        if self.inner.ignores_key_shift:
            squared = (variance + VARIANCE_FLOOR).reciprocal().to(q.dtype)
            return self.inner((q - centre) * squared, k, v, observed)
        scale = (variance + VARIANCE_FLOOR).rsqrt().to(q.dtype)
        return self.inner((q - centre) * scale, (k - centre) * scale, v, observed)


@wrapper(
    "conv",
    summary="depthwise convolution over time on queries and keys (default kernel 3)",
    cost="unchanged",
    source="convolution in the primal, Nguyen et al. 2023",
    option="kernel",
    needs_all_keys=True,
)
class Convolved(Mechanism):
    """inner(conv(q), conv(k), v): a depthwise convolution over time, at first the identity.

    What is not observed enters the convolution as zero, as does what lies outside the series.
    """

    def __init__(self, heads: Heads, inner: BuildInner, option: str | None = None) -> None:
        super().__init__()
        kernel = 3 if option is None else int(option) if option.isdecimal() else 0
        if kernel % 2 == 0:
            raise ValueError(f"the kernel must be an odd number of timepoints, not '{option}'")
        self.inner = inner(heads)
        features = heads.count * heads.dim
        self.q_conv = nn.Conv1d(features, features, kernel, padding=kernel // 2, groups=features)
        self.k_conv = nn.Conv1d(features, features, kernel, padding=kernel // 2, groups=features)
        for conv in (self.q_conv, self.k_conv):
            nn.init.dirac_(conv.weight, groups=features)
            nn.init.zeros_(conv.bias)  # type: ignore[arg-type]

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        if observed is not None:
            seen = observed[:, None, :, None]
            q, k = q * seen, k * seen
        return self.inner(_over_time(self.q_conv, q), _over_time(self.k_conv, k), v, observed)


@wrapper(
    "twice",
    summary="applies what it wraps once more and takes (2A − A²) v, which keeps finer detail",
    cost="times 2",
    source="Abdullaev, Nguyen 2025 (twicing attention)",
    needs_all_keys=True,
)
class Twice(Mechanism):
    """2 A v − A (A v), A being what is wrapped; queries and keys have to be the same timepoints."""

    def __init__(self, heads: Heads, inner: BuildInner) -> None:
        super().__init__()
        self.inner = inner(heads)
        self.ignores_key_shift = self.inner.ignores_key_shift

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        once = self.inner(q, k, v, observed)
        return 2 * once - self.inner(q, k, once, observed)


def _moments(k: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of the observed keys over time, both (B, H, 1, D) float32."""
    k = at_least_float32(k)
    if observed is None:
        variance, mean = torch.var_mean(k, dim=2, correction=0, keepdim=True)
        return mean, variance
    seen = observed[:, None, :, None].to(k.dtype)
    count = seen.sum(2, keepdim=True)
    mean = (k * seen).sum(2, keepdim=True) / count
    return mean, ((k - mean).square() * seen).sum(2, keepdim=True) / count


def _over_time(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """Applies a convolution over all heads' features to (B, H, S, D)."""
    batch, heads, length, dim = x.shape
    features = x.transpose(2, 3).reshape(batch, heads * dim, length)
    return conv(features).reshape(batch, heads, dim, length).transpose(2, 3)


def _beta(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) <= LARGEST_BETA:
        raise ValueError(f"beta must be a number of at most {LARGEST_BETA:g} or {LEARNED}, not '{text}'")
    return number

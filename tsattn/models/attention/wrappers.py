"""Wrappers: what changes the queries, keys and values that a mechanism sees. Letters as in contract.py."""

from __future__ import annotations

import math
from itertools import groupby

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.attention.contract import BuildInner, Heads, Mechanism
from tsattn.models.attention.registry import wrapper

VARIANCE_FLOOR = 1e-5


@wrapper(
    "bn",
    summary="Attention-BN: keys and queries normalised by the keys' mean and variance over time",
    cost="unchanged",
    source="Nguyen et al. 2023, Attention-BN",
    option="beta",
)
class BatchNormalised(Mechanism):
    """inner((q − β·μ) ⊙ s⁻¹, (k − β·μ) ⊙ s⁻¹, v), μ and s² from the observed keys, s² = σ² + 1e-5.

    Statistics are per case, head and feature; there are no running averages, so training and
    inference are the same. Under a softmax of q·k the centring of keys cancels and their scaling
    may be moved onto the queries: inner((q − β·μ) ⊙ s⁻², k, v) is the same and leaves keys alone.
    """

    def __init__(self, heads: Heads, inner: BuildInner, option: str | None = None) -> None:
        super().__init__()
        self.inner = inner(heads)
        self.beta = 1.0 if option is None else _number(option, "beta")

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        mean, variance = _moments(k, observed)  # (B, H, 1, D), float32
        centre = (self.beta * mean).to(q.dtype)
        if self.inner.ignores_key_shift:
            return self.inner(
                (q - centre) * (variance + VARIANCE_FLOOR).reciprocal().to(q.dtype), k, v, observed
            )
        scale = (variance + VARIANCE_FLOOR).rsqrt().to(q.dtype)
        return self.inner((q - centre) * scale, (k - centre) * scale, v, observed)


@wrapper(
    "sh",
    summary="Attention-SH: each head sees keys and values average-pooled to its own scale",
    cost="times the mean of 1/scale",
    source="Nguyen et al. 2023, Attention-SH (scaled heads)",
    option="scale,scale,…",
    pools_keys=True,
)
class ScaledHeads(Mechanism):
    """Head h attends to keys and values pooled over windows of scale_h timepoints.

    Without an option scales double after every two heads: 1,1,2,2,4,4,8,8 for eight. A list
    shorter than the number of heads is spread over them evenly. Only observed timepoints are
    averaged; the last window may be short. Heads of one scale are computed together.
    """

    def __init__(self, heads: Heads, inner: BuildInner, option: str | None = None) -> None:
        super().__init__()
        scales = [2 ** (head // 2) for head in range(heads.count)]
        if option is not None:
            scales = _spread(option, heads.count)
        groups = [(scale, len(list(same))) for scale, same in groupby(scales)]
        self.scales = [scale for scale, _ in groups]
        self.counts = [count for _, count in groups]
        self.inner = nn.ModuleList(
            inner(Heads(count, heads.dim, heads.stride * scale)) for scale, count in groups
        )
        self.ignores_key_shift = all(part.ignores_key_shift for part in self.inner)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        mixed = []
        shares = zip(self.inner, self.scales, *(x.split(self.counts, dim=1) for x in (q, k, v)), strict=True)
        for inner, scale, q_group, k_group, v_group in shares:
            if scale == 1:
                mixed.append(inner(q_group, k_group, v_group, observed))
            else:
                k_pooled, v_pooled, seen = _pool(k_group, v_group, observed, scale)
                mixed.append(inner(q_group, k_pooled, v_pooled, seen))
        return torch.cat(mixed, dim=1)


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


def _moments(k: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of the observed keys over time, both (B, H, 1, D) float32."""
    k = k.float()
    if observed is None:
        variance, mean = torch.var_mean(k, dim=2, correction=0, keepdim=True)
        return mean, variance
    seen = observed[:, None, :, None].float()
    count = seen.sum(2, keepdim=True)
    mean = (k * seen).sum(2, keepdim=True) / count
    return mean, ((k - mean).square() * seen).sum(2, keepdim=True) / count


def _pool(k: Tensor, v: Tensor, observed: Tensor | None, window: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Averages of k and v (B, H, S, D) over windows of `window` timepoints, and which hold anything."""
    length = k.shape[2]
    pooled = (length + window - 1) // window
    missing = pooled * window - length
    # Without gaps only the last window can be short; counting timepoints covers both cases.
    seen = k.new_ones(1, length) if observed is None else observed.to(k.dtype)
    count = F.pad(seen, (0, missing)).reshape(-1, pooled, window).sum(2)  # (B or 1, pooled)
    share = count.clamp(min=1).reciprocal()[:, None, :, None]

    def average(x: Tensor) -> Tensor:
        x = x if observed is None else x * seen[:, None, :, None]
        x = F.pad(x, (0, 0, 0, missing)).reshape(x.shape[0], x.shape[1], pooled, window, x.shape[3])
        return x.sum(3) * share

    return average(k), average(v), None if observed is None else count > 0


def _over_time(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """Applies a convolution over all heads' features to (B, H, S, D)."""
    batch, heads, length, dim = x.shape
    features = x.transpose(2, 3).reshape(batch, heads * dim, length)
    return conv(features).reshape(batch, heads, dim, length).transpose(2, 3)


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a number, not '{text}'")
    return number


def _spread(option: str, heads: int) -> list[int]:
    scales = [int(word) if word.strip().isdecimal() else 0 for word in option.split(",")]
    if min(scales) < 1:
        raise ValueError(f"scales must be whole numbers of timepoints, at least 1, not '{option}'")
    if heads % len(scales):
        raise ValueError(f"{len(scales)} scales cannot be spread evenly over {heads} heads")
    return [scale for scale in scales for _ in range(heads // len(scales))]

"""Attention-SH: heads that see the series at their own scale. Letters as in contract.py."""

from __future__ import annotations

from itertools import groupby

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.attention.contract import BuildInner, Heads, Mechanism
from tsattn.models.attention.registry import wrapper

LEARNED = "conv"
GREATEST_SCALE = 4096


@wrapper(
    "sh",
    summary="Attention-SH: each head sees keys and values pooled to its own scale; `conv` learns the pooling",
    cost="times the mean of 1/scale",
    source="Nguyen et al. 2023, Attention-SH (scaled heads)",
    option="[conv,]scale,…",
    pools_keys=True,
)
class ScaledHeads(Mechanism):
    """Head h attends to keys and values averaged over windows of scale_h timepoints.

    Without an option scales double after every two heads: 1,1,2,2,4,4,8,8 for eight. A list
    shorter than the number of heads is spread over them evenly. Only observed timepoints are
    averaged; the last window may be short. Heads of one scale are computed together. `conv` gives
    every head weights of its own over a window, at first all equal.
    """

    def __init__(self, heads: Heads, inner: BuildInner, option: str | None = None) -> None:
        super().__init__()
        words = [] if option is None else option.split(",")
        learned = words[:1] == [LEARNED]
        scales = _spread(words[learned:], heads.count) if words[learned:] else _doubling(heads.count)
        groups = [(scale, len(list(same))) for scale, same in groupby(scales)]
        self.counts = [count for _, count in groups]
        self.pools = nn.ModuleList(_Pool(scale, count if learned else 0) for scale, count in groups)
        self.inner = nn.ModuleList(
            inner(Heads(count, heads.dim, heads.stride * scale)) for scale, count in groups
        )
        self.averages = not learned
        self.ignores_key_shift = not learned and all(part.ignores_key_shift for part in self.inner)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        mixed = []
        groups = zip(self.inner, self.pools, *(x.split(self.counts, dim=1) for x in (q, k, v)), strict=True)
        for inner, pool, q_group, k_group, v_group in groups:
            keys, values, seen = pool(k_group, v_group, observed)
            mixed.append(inner(q_group, keys, values, seen))
        return torch.cat(mixed, dim=1)


class _Pool(nn.Module):
    """Averages keys and values over windows of `window` timepoints, with learned weights if heads > 0."""

    def __init__(self, window: int, heads: int) -> None:
        super().__init__()
        self.window = window
        # A window of one timepoint has nothing to weigh.
        self.weight = nn.Parameter(torch.ones(heads, window)) if heads and window > 1 else None

    def forward(self, k: Tensor, v: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Pooled k and v (B, H, P, D), and `seen` (B, P): True where a window holds anything."""
        if self.window == 1:
            return k, v, observed
        length, window = k.shape[2], self.window
        plain = observed is None and self.weight is None and not torch.compiler.is_compiling()
        if plain and length % window == 0:  # the usual case, without all that follows
            return _average(k, window), _average(v, window), None
        pooled = (length + window - 1) // window
        missing = pooled * window - length
        # Without gaps only the last window can be short; counting timepoints covers both cases.
        seen = k.new_ones(1, length) if observed is None else observed.to(k.dtype)
        count = F.pad(seen, (0, missing)).reshape(-1, pooled, window).sum(2)  # (B or 1, P)
        share = count.clamp(min=1).reciprocal()[:, None, :, None]

        def average(x: Tensor) -> Tensor:
            x = x if observed is None else x * seen[:, None, :, None]
            x = F.pad(x, (0, 0, 0, missing)).reshape(x.shape[0], x.shape[1], pooled, window, x.shape[3])
            x = x if self.weight is None else x * self.weight[:, None, :, None]
            return x.sum(3) * share

        return average(k), average(v), None if observed is None else count > 0


def _average(x: Tensor, window: int) -> Tensor:
    """(B, H, S / window, D) means over whole windows."""
    return x.unflatten(2, (-1, window)).mean(3)


def _doubling(heads: int) -> list[int]:
    return [2 ** (head // 2) for head in range(heads)]


def _spread(words: list[str], heads: int) -> list[int]:
    scales = [int(word) if word.strip().isdecimal() else 0 for word in words]
    if not 1 <= min(scales) <= max(scales) <= GREATEST_SCALE:
        raise ValueError(
            f"scales must be whole numbers of timepoints, 1 to {GREATEST_SCALE}, not '{','.join(words)}'"
        )
    if heads % len(scales):
        raise ValueError(f"{len(scales)} scales cannot be spread evenly over {heads} heads")
    return [scale for scale in scales for _ in range(heads // len(scales))]

"""Wrappers that change queries, keys or values at full length. Letters as in contract.py."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.attention.contract import BuildInner, Heads, Mechanism
from tsattn.models.attention.registry import wrapper

GREATEST_KERNEL = 255  # it is as many passes over queries and keys


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
        if kernel > GREATEST_KERNEL:
            raise ValueError(f"the kernel must be at most {GREATEST_KERNEL} timepoints, not '{option}'")
        self.inner = inner(heads)
        self.q_conv, self.k_conv = _OverTime(heads, kernel), _OverTime(heads, kernel)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        if observed is not None:
            seen = observed[:, None, :, None]
            q, k = q * seen, k * seen
        return self.inner(self.q_conv(q), self.k_conv(k), v, observed)


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


class _OverTime(nn.Module):
    """A depthwise convolution over time, at first the identity, as a sum of shifted series.

    torch's own Conv1d takes time and memory that grow with N² here (torch 2.13 on a CPU).
    """

    def __init__(self, heads: Heads, kernel: int) -> None:
        super().__init__()
        self.taps = nn.Parameter(torch.zeros(kernel, heads.count, 1, heads.dim))
        self.bias = nn.Parameter(torch.zeros(heads.count, 1, heads.dim))
        nn.init.ones_(self.taps[kernel // 2])

    def forward(self, x: Tensor) -> Tensor:
        reach, length = len(self.taps) // 2, x.shape[2]
        padded = F.pad(x, (0, 0, reach, reach))
        mixed: Tensor = self.bias
        for place, tap in enumerate(self.taps):
            mixed = torch.addcmul(mixed, padded[:, :, place : place + length], tap)
        return mixed

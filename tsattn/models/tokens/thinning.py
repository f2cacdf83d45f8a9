"""Fewer tokens than timepoints: the mean of what is observed in each stretch of a series."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LONGEST_STRIDE = 4096
"""Timepoints."""


def read_stride(option: str | None) -> int:
    """Timepoints a token, 1 if nothing is said. ValueError for what is no such number."""
    if option is None:
        return 1
    if not option.strip().isdecimal() or not 1 <= int(option) <= LONGEST_STRIDE:
        raise ValueError(f"expected timepoints a token, from 1 to {LONGEST_STRIDE}, e.g. 4")
    return int(option)


class Thinned(nn.Module):
    """The mean over every `stride` timepoints, of those that are observed; N = ceil(T / stride).

    The last stretch may reach beyond the series. One without any observed timepoint is zero and not observed.
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(B, F, N) and (B, N) or None, from (B, F, T) and (B, T) or None."""
        if self.stride == 1:
            return x, observed
        there = x.new_ones(x.shape[0], 1, x.shape[2]) if observed is None else observed[:, None].to(x.dtype)
        # Sum and number go through one pooling: the exporter then knows that there are as many of both.
        both = F.pad(torch.cat([x * there, there], dim=1), (0, self.stride - 1))
        means = F.avg_pool1d(both, self.stride, self.stride)
        share = means[:, -1:]
        tokens = means[:, :-1] / share.clamp(min=0.5 / self.stride)
        return tokens, None if observed is None else share[:, 0] > 0

"""What training leaves out by chance: single numbers, or a whole branch of a block for a case."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.packing import Padded

LEVELS = 1 << 16
"""A chance is rounded to this fraction on a CPU."""


class Dropout(nn.Module):
    """In training, zero for a `share` of the numbers and more for the others, so that the mean stays.

    share: in [0, 1). What torch's own does, whose drawing of masks is a large part of a step on a CPU: here
    one draw of 64 bits decides over four numbers.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """A tensor of the shape of `x`."""
        if not self.training or not self.share:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.share)
        return x * _mask(x, round(self.share * LEVELS))

    def extra_repr(self) -> str:
        """What stands in brackets where torch lists the model."""
        return f"share={self.share}"


class StochasticDepth(nn.Module):
    """In training, zero for a `share` of the cases and more for the others, so that the mean stays.

    share: in [0, 1). Source: Huang et al. 2016, as vision transformers use it.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor, layout: Padded) -> Tensor:
        """Tokens of the layout from the same: what a branch of a block adds."""
        if not self.training or not self.share:
            return x
        kept = torch.rand(layout.cases, device=x.device) >= self.share
        return x * layout.of_tokens((kept / (1 - self.share)).to(x.dtype))

    def extra_repr(self) -> str:
        """What stands in brackets where torch lists the model."""
        return f"share={self.share}"


def _mask(x: Tensor, dropped: int) -> Tensor:
    """Like x: zero with the chance dropped / LEVELS, else what keeps the mean."""
    *rows, last = x.shape
    drawn = torch.empty((*rows, -(-last // 4)), dtype=torch.int64).random_(-(1 << 63), None)
    drawn = drawn.view(torch.int16)[..., :last]
    kept = torch.ge(drawn, dropped - LEVELS // 2, out=torch.empty(x.shape, dtype=x.dtype))
    return kept.mul_(LEVELS / (LEVELS - dropped))

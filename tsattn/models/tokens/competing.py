"""Tokens of fixed random kernels that compete, in the manner of Hydra (Dempster, Schmidt, Webb 2023)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.tokens.contract import TokenStage
from tsattn.models.tokens.registry import token_stage
from tsattn.models.tokens.thinning import Thinned, read_stride

DILATIONS = (1, 2, 4, 8, 16, 32)
TAPS = 9
GROUPS, KERNELS = 8, 8
"""Groups a dilation, and kernels that compete in each."""
MOST_CHANNELS = 8
"""That a group looks at."""
SHARPNESS = 4.0
"""Of the competition: how much a response is worth that is larger by one training deviation."""


@token_stage(
    "hydra", summary="a token a timepoint, or every S, from fixed random kernels that compete", option="[S]"
)
class CompetingTokens(TokenStage):
    """In each group of random kernels a soft vote for the one that responds most, then a linear map.

    Half of the groups see the series, half its first differences; each sees up to 8 channels, added up with
    random signs, at one of six dilations. Kernels are drawn once, with mean zero and length one, and are
    not trained: what is learnt is only what their votes mean, so that few cases suffice. Hydra's vote is a
    hard one; a soft vote has no jumps, and rounding cannot change a class.
    """

    mix: Tensor
    kernels: Tensor

    def __init__(self, channels: int, width: int, option: str | None = None) -> None:
        super().__init__()
        self.stride = read_stride(option)
        self.thin = Thinned(self.stride)
        scales = len(DILATIONS)
        mix = torch.stack([torch.block_diag(_signs(channels), _signs(channels)) for _ in range(scales)])
        kernels = torch.randn(scales, 2 * GROUPS * KERNELS, 1, TAPS)
        kernels = kernels - kernels.mean(3, keepdim=True)
        self.register_buffer("mix", mix)  # (scales, 2 GROUPS, 2 channels)
        self.register_buffer("kernels", kernels / kernels.norm(dim=3, keepdim=True))
        self.project = nn.Linear(scales * 2 * GROUPS * KERNELS, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        both = torch.cat([x, first_differences(x, observed)], dim=1)  # (B, 2C, T)
        found = [self.thin(self._votes(both, scale), observed) for scale in range(len(DILATIONS))]
        votes = torch.cat([vote for vote, _ in found], dim=1).transpose(1, 2)  # (B, N, all kernels)
        return F.gelu(self.norm(self.project(votes))), found[0][1]

    def _votes(self, both: Tensor, scale: int) -> Tensor:
        """(B, 2 GROUPS · KERNELS, T): the share of a kernel's votes in its group, 0 where all are alike."""
        dilation = DILATIONS[scale]
        signals = self.mix[scale] @ both
        responses = F.conv1d(
            signals,
            self.kernels[scale],
            padding=TAPS // 2 * dilation,
            dilation=dilation,
            groups=2 * GROUPS,
        )
        shares = torch.softmax(SHARPNESS * responses.unflatten(1, (2 * GROUPS, KERNELS)), dim=2)
        return (shares * KERNELS - 1).flatten(1, 2)


def first_differences(x: Tensor, observed: Tensor | None) -> Tensor:
    """x_t − x_{t−1}, (B, C, T); zero at the first timepoint and where either was not observed."""
    steps = F.pad(x[:, :, 1:] - x[:, :, :-1], (1, 0))
    if observed is None:
        return steps
    both = observed & F.pad(observed, (1, 0), value=False)[:, :-1]
    return steps * both[:, None]


def _signs(channels: int) -> Tensor:
    """(GROUPS, channels): ±1/√n for the n channels that a group looks at, 0 for the others."""
    looked_at = min(MOST_CHANNELS, channels)
    chosen = torch.rand(GROUPS, channels).argsort(1) < looked_at
    signs = torch.randint(0, 2, (GROUPS, channels)) * 2.0 - 1.0
    return torch.where(chosen, signs, 0.0) / looked_at**0.5

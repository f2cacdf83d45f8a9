"""Stages of convolutions over time that are trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.tokens.contract import TokenStage
from tsattn.models.tokens.registry import token_stage
from tsattn.models.tokens.thinning import Thinned, read_stride


@token_stage("conv", summary="a token a timepoint, from three convolutions over time")
class ConvTokens(TokenStage):
    """Convolutions of 7, 5 and 3 timepoints, each followed by normalisation per timepoint and GELU."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        widths = (channels, width, width, width)
        self.layers = nn.ModuleList(
            _ConvLayer(inside, outside, kernel)
            for inside, outside, kernel in zip(widths, widths[1:], (7, 5, 3), strict=False)
        )

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        tokens = x.transpose(1, 2)
        for layer in self.layers:
            tokens = layer(tokens, observed)
        return tokens, observed


@token_stage(
    "multiscale",
    summary="a token a timepoint, or every S, from parallel dilated convolutions over time",
    option="[S]",
)
class MultiscaleTokens(TokenStage):
    """Convolutions of 9 timepoints, dilated by 1, 2, 4, 8 side by side, then one that mixes them.

    Their fields of view are 9, 17, 33 and 65 timepoints; each gives a quarter of the width. Between the two,
    every S timepoints become their mean.
    """

    dilations = (1, 2, 4, 8)

    def __init__(self, channels: int, width: int, option: str | None = None) -> None:
        super().__init__()
        if width % len(self.dilations):
            raise ValueError(f"the width must be a multiple of {len(self.dilations)}, not {width}")
        share = width // len(self.dilations)
        self.stride = read_stride(option)
        self.views = nn.ModuleList(
            nn.Conv1d(channels, share, 9, padding=4 * dilation, dilation=dilation)
            for dilation in self.dilations
        )
        self.norm = nn.LayerNorm(width)
        self.thin = Thinned(self.stride)
        self.mix = _ConvLayer(width, width, 5)

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        views = torch.cat([view(x) for view in self.views], dim=1).transpose(1, 2)  # (B, T, width)
        tokens, seen = self.thin(F.gelu(self.norm(views)).transpose(1, 2), observed)
        return self.mix(tokens.transpose(1, 2), seen), seen


class _ConvLayer(nn.Module):
    """(B, T, inside) → (B, T, outside): convolution over time, normalisation of each timepoint, GELU."""

    def __init__(self, inside: int, outside: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inside, outside, kernel, padding=kernel // 2)
        self.norm = nn.LayerNorm(outside)

    def forward(self, x: Tensor, observed: Tensor | None) -> Tensor:
        if observed is not None:
            x = x * observed[:, :, None]
        return F.gelu(self.norm(self.conv(x.transpose(1, 2)).transpose(1, 2)))

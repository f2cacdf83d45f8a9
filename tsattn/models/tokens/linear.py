"""Stages of one linear map: of a timepoint, or of a patch of timepoints."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.tokens.contract import TokenStage
from tsattn.models.tokens.registry import token_stage

LONGEST_PATCH = 4096
"""Timepoints; a patch has a weight a timepoint, channel and feature."""


@token_stage("linear", summary="a token a timepoint, a linear map of the channels")
class LinearTokens(TokenStage):
    """token_t = W x_t + b."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(channels, width)

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return self.project(x.transpose(1, 2)), observed  # (B, T, width)


@token_stage(
    "patch", summary="a token a patch of P timepoints, every `stride` (default P)", option="P[,stride]"
)
class PatchTokens(TokenStage):
    """token_n = W x[n·stride … n·stride + P − 1] + b; N = ceil(T / stride).

    The last patch may reach beyond the series; a patch counts as observed if any timepoint in it is.
    """

    def __init__(self, channels: int, width: int, option: str | None = None) -> None:
        super().__init__()
        numbers = [int(word) if word.strip().isdecimal() else 0 for word in (option or "").split(",")]
        if len(numbers) > 2 or not 1 <= min(numbers) <= max(numbers) <= LONGEST_PATCH:
            raise ValueError(
                "patch needs its length in timepoints and may have a stride, e.g. patch:16 or patch:16,8"
            )
        self.length, self.stride = numbers[0], numbers[-1]
        if self.stride > self.length:
            raise ValueError(f"stride {self.stride} would skip timepoints between patches of {self.length}")
        self.project = nn.Conv1d(channels, width, self.length, self.stride)

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        beyond = (0, self.length - 1)
        tokens = self.project(F.pad(x, beyond)).transpose(1, 2)  # (B, N, width)
        if observed is None:
            return tokens, None
        # Counted by a convolution and not by pooling: the exporter then knows that N is the same.
        ones = x.new_ones(1, 1, self.length)
        count = F.conv1d(F.pad(observed.to(x.dtype), beyond)[:, None], ones, stride=self.stride)
        return tokens, count[:, 0] > 0.5  # (B, N)

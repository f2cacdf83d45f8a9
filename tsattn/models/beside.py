"""A classifier beside the transformer: a ridge regression over features of which nothing is trained.

Of each case at the scale of the training cases and at its own scale: how often convolutions are high, and how
far from zero. `tsattn.training.closed_form` fits it. Letters: B batch, C channels, T timepoints, F features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.convolutions import KERNELS, Convolutions
from tsattn.models.layers import Standardise, own_scale

HEIGHTS = 0.5
"""What all heights weigh beside all shares, which are several times as many; docs/log.md has the tries."""


class RidgeClassifier(nn.Module):
    """Log-probabilities from fixed features at the scale of the training cases and at each case's own scale.

    emphasis (F,): what each feature, standardised, is multiplied with where the regression is fitted.
    say: in [0, 1], what the transformer's log-probabilities count beside these.
    """

    emphasis: Tensor
    weight: Tensor
    bias: Tensor
    say: Tensor

    def __init__(self, channels: int, classes: int, shares: int, dilations: int) -> None:
        """shares: about how many; as many thresholds a response are taken as come nearest, at least one."""
        super().__init__()
        thresholds = max(1, round(shares / (2 * 2 * KERNELS * dilations)))
        self.standardise = Standardise(channels)
        # A generator of its own: the transformer's weights are the same with and without this.
        draw = torch.Generator().manual_seed(torch.initial_seed())
        self.common = Convolutions(channels, dilations, thresholds, draw)
        self.own = Convolutions(channels, dilations, thresholds, draw)
        of_one = torch.ones(self.common.shares + self.common.heights)
        of_one[self.common.shares :] = (HEIGHTS * self.common.shares / self.common.heights) ** 0.5
        self.register_buffer("emphasis", of_one.repeat(2), persistent=False)
        self.register_buffer("weight", torch.zeros(classes, len(self.emphasis)))
        self.register_buffer("bias", torch.zeros(classes))
        self.register_buffer("say", torch.ones(()))

    def forward(self, values: Tensor, observed: Tensor | None) -> Tensor:
        """(B, classes) from (B, C, T), NaN where not observed, and (B, T) or None."""
        return F.log_softmax(F.linear(self.features(values, observed), self.weight, self.bias), dim=1)

    def features(self, values: Tensor, observed: Tensor | None) -> Tensor:
        """(B, F): shares and heights at the common scale, then at each case's own."""
        x, own = self.scaled(values)
        return torch.cat([*self.common(x, observed), *self.own(own, observed)], dim=1)

    def scaled(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The series at both scales, (B, C, T) each, zero where not observed."""
        return self.standardise(values), own_scale(values)

"""A classifier beside the transformer: how often fixed convolutions are high, weighed by a ridge regression.

In the manner of MiniRocket (Dempster, Schmidt, Webb, "MiniRocket", KDD 2021): convolutions that are not
trained, of each the share of the series for which it exceeds a threshold, and a linear classifier of these
shares. Here thresholds have a ramp instead of a jump, so that rounding cannot change a class; differences
are looked at beside the series, and each case at its own scale beside the scale of the training cases.
`tsattn.training.closed_form` fits it. Letters: B batch, C channels, T timepoints, F features.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.layers import Standardise, own_scale
from tsattn.models.tokens.competing import first_differences

TAPS = 9
MOST_CHANNELS = 9
"""That a convolution adds up."""
SOFT, LEAST_SOFT = 0.02, 1e-4
"""Width of a threshold's ramp: as a share of the threshold, and at least of the response's deviation."""


def all_kernels() -> Tensor:
    """(84, 9): every kernel of three weights 2 and six weights −1; the sum is zero."""
    kernels = torch.full((math.comb(TAPS, 3), TAPS), -1.0)
    for kernel, places in zip(kernels, itertools.combinations(range(TAPS), 3), strict=True):
        kernel[list(places)] = 2.0
    return kernels


KERNELS = math.comb(TAPS, 3)


class Shares(nn.Module):
    """The share of a series' timepoints at which each response is above each of its thresholds.

    dilations: 1, 2, 4, … so many; thresholds: of each response. Of every dilation there are 84 responses
    of the series and 84 of its first differences, each of a sum of up to 9 channels drawn at random.
    """

    channels: Tensor
    kernels: Tensor
    thresholds: Tensor
    slopes: Tensor

    def __init__(self, channels: int, dilations: int, thresholds: int) -> None:
        super().__init__()
        responses = 2 * KERNELS
        self.count = dilations * responses * thresholds
        self.at_once = max(1, 64 >> dilations)  # thresholds: few dilations are of short series
        # A generator of its own: the transformer's weights are the same with and without this.
        draw = torch.Generator().manual_seed(torch.initial_seed())
        drawn = [torch.stack([_drawn(channels, draw) for _ in range(responses)]) for _ in range(dilations)]
        self.register_buffer("channels", torch.stack(drawn))  # (dilations, responses, C)
        self.register_buffer("kernels", all_kernels().repeat(2, 1)[:, None])  # (responses, 1, TAPS)
        self.register_buffer("thresholds", torch.zeros(dilations, thresholds, responses))
        self.register_buffer("slopes", torch.ones(dilations, thresholds, responses))

    def forward(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """(B, F) in [0, 1] from (B, C, T), zero where not observed, and (B, T) or None."""
        weights = None
        if observed is not None:
            here = observed.to(x.dtype)
            weights = (here / here.sum(dim=1, keepdim=True).clamp(min=1))[:, None, :, None]  # (B, 1, T, 1)
        offsets = 0.5 - self.thresholds * self.slopes
        both = (x, first_differences(x, observed))
        found = []
        for dilation in range(len(self.channels)):
            responses = self.responses(both, dilation)
            for start in range(0, self.thresholds.shape[1], self.at_once):
                part = slice(start, start + self.at_once)
                slope, offset = (of[dilation, part, :, None] for of in (self.slopes, offsets))
                above = (responses[:, None] * slope + offset).clamp(0, 1)  # (B, thresholds, responses, T)
                share = above.mean(dim=3) if weights is None else (above @ weights)[..., 0]
                found.append(share.flatten(1))
        return torch.cat(found, dim=1)

    def largest(self, timepoints: int) -> int:
        """Numbers of what is largest on the way, for a case."""
        return self.at_once * len(self.kernels) * timepoints

    def responses(self, both: tuple[Tensor, Tensor], dilation: int) -> Tensor:
        """(B, responses, T) at the dilation of that place, of the series and of its differences."""
        of_series, of_differences = self.channels[dilation].split(KERNELS)
        signals = torch.cat([of_series @ both[0], of_differences @ both[1]], dim=1)
        step = 2**dilation
        return F.conv1d(
            signals,
            self.kernels,
            padding=TAPS // 2 * step,
            dilation=step,
            groups=len(self.kernels),
        )

    def place_thresholds(self, x: Tensor, observed: Tensor) -> None:
        """Puts the thresholds at quantiles of the responses to these cases, spread by the golden ratio."""
        both = (x, first_differences(x, observed))
        _, many, responses = self.thresholds.shape
        golden = (math.sqrt(5) + 1) / 2
        share = (torch.arange(responses * many, device=x.device) * golden % 1).reshape(responses, many)
        for dilation in range(len(self.channels)):
            seen = self.responses(both, dilation).transpose(0, 1)[:, observed]  # (responses, timepoints)
            ordered = seen.sort(dim=1).values
            found = ordered.gather(1, (share * (ordered.shape[1] - 1)).long())
            deviation = seen.std(dim=1, keepdim=True, correction=0).clamp(min=torch.finfo(x.dtype).tiny)
            ramp = SOFT * found.abs() + LEAST_SOFT * deviation
            self.thresholds[dilation] = found.T
            self.slopes[dilation] = (1 / ramp).clamp(max=1e30).T


class ConvolutionClassifier(nn.Module):
    """Log-probabilities from shares at the scale of the training cases and at each case's own scale.

    say: in [0, 1], what the transformer's log-probabilities count beside these.
    """

    weight: Tensor
    bias: Tensor
    say: Tensor

    def __init__(self, channels: int, classes: int, features: int, dilations: int) -> None:
        """features: about how many; as many thresholds a response are taken as come nearest, at least one."""
        super().__init__()
        thresholds = max(1, round(features / (2 * 2 * KERNELS * dilations)))
        self.standardise = Standardise(channels)
        self.common = Shares(channels, dilations, thresholds)
        self.own = Shares(channels, dilations, thresholds)
        self.register_buffer("weight", torch.zeros(classes, self.common.count + self.own.count))
        self.register_buffer("bias", torch.zeros(classes))
        self.register_buffer("say", torch.ones(()))

    def forward(self, values: Tensor, observed: Tensor | None) -> Tensor:
        """(B, classes) from (B, C, T), NaN where not observed, and (B, T) or None."""
        return F.log_softmax(F.linear(self.shares(values, observed), self.weight, self.bias), dim=1)

    def shares(self, values: Tensor, observed: Tensor | None) -> Tensor:
        """(B, F): shares at the common scale, then at each case's own."""
        x, own = self.scaled(values)
        return torch.cat([self.common(x, observed), self.own(own, observed)], dim=1)

    def scaled(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The series at both scales, (B, C, T) each, zero where not observed."""
        return self.standardise(values), own_scale(values)


def _drawn(channels: int, draw: torch.Generator) -> Tensor:
    """(C,): 1 for up to nine channels drawn at random, few more often than many."""
    most = math.log2(min(MOST_CHANNELS, channels) + 1)
    wanted = int(2 ** (most * torch.rand((), generator=draw).item()))
    chosen = torch.zeros(channels)
    chosen[torch.randperm(channels, generator=draw)[:wanted]] = 1.0
    return chosen

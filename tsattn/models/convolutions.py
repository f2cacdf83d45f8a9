"""Convolutions that are not trained, and of each how often and how far it is from zero.

In the manner of MiniRocket (Dempster, Schmidt, Webb, "MiniRocket", KDD 2021): of every convolution the share
of the series for which it exceeds a threshold. Here thresholds have a ramp instead of a jump, so that
rounding cannot change a class, and differences are looked at beside the series. The logarithm of the mean
size of a response is what studies of the brain call the power of a band.
Letters: B batch, C channels, T timepoints, F features.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.tokens.competing import first_differences

TAPS = 9
MOST_CHANNELS = 9
"""That a convolution adds up."""
SOFT, LEAST_SOFT = 0.02, 1e-4
"""Width of a threshold's ramp: as a share of the threshold, and at least of the response's deviation."""
LEAST_HEIGHT, MOST_HEIGHT = 1e-3, 1e30
MOST_TIMEPOINTS = 1 << 18
"""That thresholds are placed by."""
MOST_NUMBERS = 1 << 24
"""Of responses that are there at once while thresholds are placed."""


def all_kernels() -> Tensor:
    """(84, 9): every kernel of three weights 2 and six weights −1; the sum is zero."""
    kernels = torch.full((math.comb(TAPS, 3), TAPS), -1.0)
    for kernel, places in zip(kernels, itertools.combinations(range(TAPS), 3), strict=True):
        kernel[list(places)] = 2.0
    return kernels


KERNELS = math.comb(TAPS, 3)


class Convolutions(nn.Module):
    """How often each response is above each of its thresholds, and how far it is from zero.

    dilations: 1, 2, 4, … so many; thresholds: of each response. Of every dilation there are 84 responses
    of the series and 84 of its first differences, each of a sum of up to 9 channels drawn at random.
    draw: of the channels, and of where thresholds begin to be spread: no two models have the same.
    """

    channels: Tensor
    kernels: Tensor
    thresholds: Tensor
    slopes: Tensor

    def __init__(self, channels: int, dilations: int, thresholds: int, draw: torch.Generator) -> None:
        super().__init__()
        responses = 2 * KERNELS
        self.heights = dilations * responses
        self.shares = self.heights * thresholds
        self.at_once = max(1, 64 >> dilations)  # thresholds: few dilations are of short series
        self.phase = torch.rand((), generator=draw).item()
        drawn = [torch.stack([_drawn(channels, draw) for _ in range(responses)]) for _ in range(dilations)]
        self.register_buffer("channels", torch.stack(drawn))  # (dilations, responses, C)
        self.register_buffer("kernels", all_kernels().repeat(2, 1)[:, None])  # (responses, 1, TAPS)
        self.register_buffer("thresholds", torch.zeros(dilations, thresholds, responses))
        self.register_buffer("slopes", torch.ones(dilations, thresholds, responses))

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor]:
        """Shares (B, dilations · thresholds · responses) in [0, 1], and heights (B, dilations · responses).

        Of (B, C, T), zero where not observed, and (B, T) or None. A share is of the timepoints observed; a
        height is the logarithm of a response's mean size over them, which is at least LEAST_HEIGHT.
        """
        weights = None
        if observed is not None:
            here = observed.to(x.dtype)
            weights = (here / here.sum(dim=1, keepdim=True).clamp(min=1))[:, None, :, None]  # (B, 1, T, 1)
        offsets = 0.5 - self.thresholds * self.slopes
        both = (x, first_differences(x, observed))
        shares, heights = [], []
        for dilation in range(len(self.channels)):
            responses = self.responses(both, dilation)
            heights.append(_mean(responses.abs()[:, None], weights).clamp(LEAST_HEIGHT, MOST_HEIGHT).log())
            for start in range(0, self.thresholds.shape[1], self.at_once):
                part = slice(start, start + self.at_once)
                slope, offset = (of[dilation, part, :, None] for of in (self.slopes, offsets))
                above = (responses[:, None] * slope + offset).clamp(0, 1)  # (B, thresholds, responses, T)
                shares.append(_mean(above, weights))
        return torch.cat(shares, dim=1), torch.cat(heights, dim=1)

    def largest(self, timepoints: int) -> int:
        """Numbers of what is largest on the way, for a case."""
        return self.at_once * len(self.kernels) * timepoints

    def responses(self, both: tuple[Tensor, Tensor], dilation: int) -> Tensor:
        """(B, responses, T) at the dilation of that place, of the series and of its differences."""
        of_series, of_differences = self.channels[dilation, :KERNELS], self.channels[dilation, KERNELS:]
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
        """Puts the thresholds at quantiles of the responses to these cases, spread by the golden ratio.

        By up to MOST_TIMEPOINTS of those observed, spread evenly; where there are none they stay as they are.
        """
        both = (x, first_differences(x, observed))
        _, many, responses = self.thresholds.shape
        chosen = _spread(observed)
        parts = torch.arange(len(x)).split(max(1, MOST_NUMBERS // (responses * x.shape[2])))
        if not chosen.any():
            return
        golden = (math.sqrt(5) + 1) / 2
        places = self.phase + torch.arange(responses * many, device=x.device) * golden
        share = (places % 1).reshape(responses, many)
        for dilation in range(len(self.channels)):
            each = [
                self.responses((both[0][part], both[1][part]), dilation).transpose(0, 1)[:, chosen[part]]
                for part in parts
            ]
            seen = torch.cat(each, dim=1)  # (responses, timepoints)
            ordered = seen.sort(dim=1).values
            found = ordered.gather(1, (share * (ordered.shape[1] - 1)).long())
            deviation = seen.std(dim=1, keepdim=True, correction=0).clamp(min=torch.finfo(x.dtype).tiny)
            ramp = SOFT * found.abs() + LEAST_SOFT * deviation
            self.thresholds[dilation] = found.T
            self.slopes[dilation] = (1 / ramp).clamp(max=1e30).T


def _spread(observed: Tensor) -> Tensor:
    """(B, T): up to MOST_TIMEPOINTS of the places that are True."""
    places = observed.flatten().nonzero()[:, 0]
    step = max(1.0, len(places) / MOST_TIMEPOINTS)
    taken = (torch.arange(int(len(places) / step), device=places.device, dtype=torch.float64) * step).long()
    chosen = torch.zeros_like(observed.flatten())
    chosen[places[taken]] = True
    return chosen.reshape(observed.shape)


def _mean(of: Tensor, weights: Tensor | None) -> Tensor:
    """(B, N) from (B, thresholds, responses, T): means over time, or sums where timepoints have weights."""
    return (of.mean(dim=3) if weights is None else (of @ weights)[..., 0]).flatten(1)


def _drawn(channels: int, draw: torch.Generator) -> Tensor:
    """(C,): 1 for up to nine channels drawn at random, few more often than many."""
    most = math.log2(min(MOST_CHANNELS, channels) + 1)
    wanted = int(2 ** (most * torch.rand((), generator=draw).item()))
    chosen = torch.zeros(channels)
    chosen[torch.randperm(channels, generator=draw)[:wanted]] = 1.0
    return chosen

"""What a transformer is made of beside attention. Letters: B batch, C channels, T timepoints, N tokens.

Blocks take tokens as their layout has them: (B, N, width), or (M, width) without those that nobody sees.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.models.attention import Heads, build
from tsattn.models.dropout import Dropout, StochasticDepth
from tsattn.models.packing import Padded

FARTHEST = 1e4
"""Standard deviations from the training mean; far outside of all that is measured."""
LEAST_OWN = 1e-4
LARGEST = 1e37
"""Beyond which a value counts as that, so that it can be divided by."""


class Standardise(nn.Module):
    """(x − mean) / std per channel with the training cases' statistics; what is missing becomes zero.

    A value missing in an observed timepoint so becomes its channel's training mean, and a
    timepoint at which nothing was observed becomes zero in every channel. What lies farther from the
    mean than FARTHEST deviations counts as that far, so that no finite value can overflow inside.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("std", torch.ones(channels))

    def forward(self, values: Tensor) -> Tensor:
        """(B, C, T) without NaN from (B, C, T) with NaN where not observed."""
        missing = values.isnan()
        filled = torch.where(missing, self.mean[:, None], values)
        standard = (filled - self.mean[:, None]) / self.std[:, None]
        return standard.clamp(-FARTHEST, FARTHEST)


class Scales(nn.Module):
    """Channels as the training cases scale them, as each case scales itself, or both side by side.

    by: one of `tsattn.config.NORMALISE`. A case's own scale shows shapes alike however large they are, and
    hides how large they are.
    """

    def __init__(self, by: str) -> None:
        super().__init__()
        self.by = by
        self.copies = 2 if by == "both" else 1

    def forward(self, values: Tensor, standard: Tensor) -> Tensor:
        """(B, copies · C, T), zero where not observed, from values with NaN there and these standardised."""
        if self.by == "set":
            return standard
        own = own_scale(values).to(standard.dtype)
        return own if self.by == "case" else torch.cat([standard, own], dim=1)


def own_scale(values: Tensor) -> Tensor:
    """(x − mean) / std of each case's channel over what is observed of it, (B, C, T); zero elsewhere.

    From values with NaN where not observed, because cases may differ in size by more digits than float32
    keeps beside a common mean. A std below LEAST_OWN of the channel's largest value is rounding, and
    counts as that much. What is left of the mean is taken out once more: of a channel far from zero, the
    rounding of one large sum would be seen beside its deviation, and another order of adding would change it.
    """
    missing = values.isnan()
    filled = torch.where(missing, 0.0, values).clamp(-LARGEST, LARGEST)
    unit = filled / filled.abs().amax(dim=2, keepdim=True).clamp(min=1 / LARGEST)  # whose squares are finite
    count = (~missing).sum(dim=2, keepdim=True).clamp(min=1)
    centred = torch.where(missing, 0.0, unit - unit.sum(dim=2, keepdim=True) / count)
    centred = torch.where(missing, 0.0, centred - centred.sum(dim=2, keepdim=True) / count)
    return centred / (centred.square().sum(dim=2, keepdim=True) / count).sqrt().clamp(min=LEAST_OWN)


class SinusoidalPosition(nn.Module):
    """Adds sines and cosines of the token's place, for any number of tokens (Vaswani et al. 2017).

    A learned gain lets training decide how much place matters; it starts small.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.gain = nn.Parameter(torch.tensor(0.1))

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N, width) from (B, N, width)."""
        place = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)
        half = (self.width + 1) // 2
        rate = torch.exp(torch.arange(half, device=tokens.device) * (-math.log(10_000.0) / half))
        angle = place[:, None] * rate[None, :]  # (N, half)
        waves = torch.cat([angle.sin(), angle.cos()], dim=1)[:, : self.width]
        return tokens + (self.gain * waves).to(tokens.dtype)


class MultiHeadAttention(nn.Module):
    """Projections around whatever mechanism the spec names; it never asks which."""

    def __init__(self, width: int, heads: int, spec: str) -> None:
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width)
        self.mechanism = build(spec, Heads(heads, width // heads))
        self.project_out = nn.Linear(width, width)

    def forward(self, x: Tensor, layout: Padded) -> Tensor:
        """Mixed tokens of the layout from tokens of the layout."""
        q, k, v = self._apart(x, layout) if torch.compiler.is_exporting() else self._together(x, layout)
        mixed = self.mechanism(q, k, v, layout.visible)  # (B, H, N, D)
        return self.project_out(layout.pack(mixed.transpose(1, 2).flatten(2)))

    def _together(self, x: Tensor, layout: Padded) -> tuple[Tensor, ...]:
        projected = layout.unpack(self.project_in(x)).unflatten(2, (3, self.heads, -1))
        return projected.permute(2, 0, 3, 1, 4).unbind()

    def _apart(self, x: Tensor, layout: Padded) -> tuple[Tensor, ...]:
        """Three products: ONNX Runtime would copy the parts of one, which takes longer than it saves."""
        weight, bias, width = self.project_in.weight, self.project_in.bias, self.project_out.in_features
        rows = (slice(at * width, (at + 1) * width) for at in range(3))
        return tuple(layout.heads(F.linear(x, weight[part], bias[part]), self.heads) for part in rows)


class FeedForward(nn.Sequential):
    """Two linear maps with GELU between, `ratio` times as wide inside."""

    def __init__(self, width: int, ratio: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(width, ratio * width), nn.GELU(), Dropout(dropout), nn.Linear(ratio * width, width)
        )


class Block(nn.Module):
    """Pre-norm transformer block: attention, then feed-forward, each added to what came in.

    left_out: the share of cases for which, in training, either of the two adds nothing.
    """

    def __init__(
        self, width: int, heads: int, spec: str, ratio: int, dropout: float, left_out: float = 0.0
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = MultiHeadAttention(width, heads, spec)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width, ratio, dropout)
        self.dropout = Dropout(dropout)
        self.depth = StochasticDepth(left_out)

    def forward(self, x: Tensor, layout: Padded) -> Tensor:
        """Tokens of the layout from tokens of the layout."""
        x = x + self.depth(self.dropout(self.attention(self.attention_norm(x), layout)), layout)
        return x + self.depth(self.dropout(self.feed_forward(self.feed_forward_norm(x))), layout)


class MaskedPooling(nn.Module):
    """Mean and maximum over the observed tokens; zeros where a case has none."""

    def forward(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """(B, 2·width) from (B, N, width) and observed (B, N) or None."""
        if observed is None:
            return torch.cat([x.mean(1), x.amax(1)], dim=1)
        seen = observed[:, :, None]
        count = seen.sum(1)
        mean = (x * seen).sum(1) / count.clamp(min=1)
        greatest = torch.where(seen, x, torch.finfo(x.dtype).min).amax(1)
        return torch.cat([mean, torch.where(count > 0, greatest, 0.0)], dim=1)

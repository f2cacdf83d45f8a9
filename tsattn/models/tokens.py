"""Token stages: how a standardised series becomes the tokens that attention works on.

A stage maps x (B, C, T), zero where not observed, and `observed` (B, T), True where at least one
channel has a value, or None where every timepoint is, to tokens (B, N, width) and `observed`
(B, N) of the tokens or None. The content and amount of what is not observed never reach an
observed token: it is zero before every convolution, as what lies outside the series is.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.errors import InputError

LONGEST_PATCH = 4096
"""Timepoints; a patch has a weight a timepoint, channel and feature."""


class TokenStage(nn.Module):
    """Base of all token stages; the module's docstring is the contract of `forward`."""

    stride: int = 1
    """Timepoints from the start of a token to that of the next; the first token starts at the first."""

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(B, N, width) and (B, N) or None, from (B, C, T) and (B, T) or None."""
        raise TypeError(f"{type(self).__name__} has no forward")


S = TypeVar("S", bound=TokenStage)


@dataclass(frozen=True, kw_only=True)
class TokenWord:
    """A registered stage. build: (channels, width, option) -> TokenStage; ValueError for a bad option."""

    name: str
    summary: str
    option: str
    build: Callable[[int, int, str | None], TokenStage]


_WORDS: dict[str, TokenWord] = {}


def token_stage(name: str, *, summary: str, option: str = "") -> Callable[[type[S]], type[S]]:
    """Registers a class whose constructor takes (channels, width) or, if it has an option, (…, option)."""

    def register(cls: type[S]) -> type[S]:
        def build(channels: int, width: int, given: str | None) -> TokenStage:
            return cls(channels, width, given) if option else cls(channels, width)

        _WORDS[name] = TokenWord(name=name, summary=summary, option=option, build=build)
        return cls

    return register


def token_words() -> tuple[TokenWord, ...]:
    """All registered stages, in the order of registration."""
    return tuple(_WORDS.values())


def build_tokens(word: str, channels: int, width: int) -> TokenStage:
    """The stage that 'name' or 'name:option' names. InputError for an unknown one or a bad option."""
    name, colon, option = word.partition(":")
    if name not in _WORDS:
        near = difflib.get_close_matches(name, _WORDS, n=1, cutoff=0.5)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        known = ", ".join(_usage(entry) for entry in token_words())
        raise InputError(f"tokens '{word}': there is no token stage '{name}'.{hint} There are: {known}.")
    entry = _WORDS[name]
    if colon and not entry.option:
        raise InputError(f"tokens '{word}': '{name}' takes no option, write '{name}'.")
    try:
        return entry.build(channels, width, option if colon else None)
    except ValueError as error:
        raise InputError(f"tokens '{word}': {error} (usage: {_usage(entry)}).") from None


def _usage(entry: TokenWord) -> str:
    return f"{entry.name}:{entry.option}" if entry.option else entry.name


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


@token_stage("multiscale", summary="a token a timepoint, from parallel dilated convolutions over time")
class MultiscaleTokens(TokenStage):
    """Convolutions of 9 timepoints, dilated by 1, 2, 4, 8 side by side, then one that mixes them.

    Their fields of view are 9, 17, 33 and 65 timepoints; each gives a quarter of the width.
    """

    dilations = (1, 2, 4, 8)

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        if width % len(self.dilations):
            raise ValueError(f"the width must be a multiple of {len(self.dilations)}, not {width}")
        share = width // len(self.dilations)
        self.views = nn.ModuleList(
            nn.Conv1d(channels, share, 9, padding=4 * dilation, dilation=dilation)
            for dilation in self.dilations
        )
        self.norm = nn.LayerNorm(width)
        self.mix = _ConvLayer(width, width, 5)

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        views = torch.cat([view(x) for view in self.views], dim=1).transpose(1, 2)  # (B, T, width)
        return self.mix(F.gelu(self.norm(views)), observed), observed


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

"""The words of augmentation: each a small class, registered by a decorator, that changes a batch.

Letters: B cases, C channels, T timepoints. Values are (B, C, T) in raw units, NaN where not observed;
what follows a case's last observed timepoint is padding. All random numbers are of torch's default
generator of the device, as many whatever the values are, and nothing ever waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class Change:
    """What a word does at a strength; its class's docstring says what the strength means."""

    strength: float

    def __call__(
        self, values: Tensor, targets: Tensor, complete: bool, spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As `Augmentation`; most words leave the targets alone."""
        return self._change(values, complete, spread), targets

    def _change(self, values: Tensor, complete: bool, spread: Tensor) -> Tensor:
        """(B, C, T)."""
        raise TypeError(f"{type(self).__name__} has no _change")


K = TypeVar("K", bound=Change)


@dataclass(frozen=True, kw_only=True)
class AugmentWord:
    """A registered word.

    option: its strength as help shows it, from `least` to `most`; at `idle` it changes nothing.
    """

    name: str
    option: str
    summary: str
    source: str
    least: float
    most: float
    idle: float
    make: type[Change]

    @property
    def usage(self) -> str:
        """E.g. 'jitter:σ'."""
        return f"{self.name}:{self.option}"


_WORDS: dict[str, AugmentWord] = {}


def augment_word(
    name: str, option: str, *, least: float, most: float, idle: float, summary: str, source: str
) -> Callable[[type[K]], type[K]]:
    """Registers a Change; its strength is `least` to `most`, and at `idle` it would change nothing."""

    def register(cls: type[K]) -> type[K]:
        _WORDS[name] = AugmentWord(
            name=name,
            option=option,
            summary=summary,
            source=source,
            least=least,
            most=most,
            idle=idle,
            make=cls,
        )
        return cls

    return register


def augment_words() -> tuple[AugmentWord, ...]:
    """All registered words, in the order of registration."""
    return tuple(_WORDS.values())


@augment_word(
    "jitter",
    "σ",
    least=0.0,
    most=1.0,
    idle=0.0,
    summary="adds noise of σ training deviations to every value",
    source="Um et al. 2017",
)
class Jitter(Change):
    """x + σ·spread·n, n normal for every value."""

    def _change(self, values: Tensor, complete: bool, spread: Tensor) -> Tensor:
        return torch.addcmul(values, torch.randn_like(values), spread[:, None], value=self.strength)


@augment_word(
    "shift",
    "σ",
    least=0.0,
    most=1.0,
    idle=0.0,
    summary="moves each channel of a case up or down by about σ training deviations",
    source="Mohsenvand et al. 2020",
)
class Shift(Change):
    """x + σ·spread·n, n normal for each case and channel."""

    def _change(self, values: Tensor, complete: bool, spread: Tensor) -> Tensor:
        return torch.addcmul(values, _normal(values), spread[:, None], value=self.strength)


@augment_word(
    "scale",
    "σ",
    least=0.0,
    most=1.0,
    idle=0.0,
    summary="stretches each channel of a case by 1 + σ·normal around its mean",
    source="Um et al. 2017",
)
class Scale(Change):
    """m + (1 + σ·n)(x − m), n normal and m the mean for each case and channel.

    Not x·(1 + σ·n): raw zero is wherever the unit has put it, and a channel far from it, such as a
    pressure in pascal, would move by many deviations, which for a model that sees (x − mean) / std is
    a shift and hardly a change of amplitude. Around its own mean a channel keeps its level (`shift` is the
    word for that), and the effect is the same in every unit.
    """

    def _change(self, values: Tensor, complete: bool, spread: Tensor) -> Tensor:
        return torch.addcmul(values, _normal(values), values - _mean(values, complete), value=self.strength)


@augment_word(
    "crop",
    "share",
    least=0.1,
    most=1.0,
    idle=1.0,
    summary="takes a window of at least that share of a case and stretches it to the case's length",
    source="Le Guennec et al. 2016",
)
class Crop(Change):
    """x at start + w·t by linear interpolation; w uniform in [share, 1], start in [0, (1 − w)(length − 1)].

    Padding stays padding. A timepoint becomes NaN in a channel where a neighbour that it would be
    computed from is NaN: nothing is made up across a gap, so one grows by up to a timepoint at both
    ends, and a channel measured at every second timepoint only is lost.
    """

    def _change(self, values: Tensor, complete: bool, spread: Tensor) -> Tensor:
        batch, channels, timepoints = values.shape
        time = torch.arange(timepoints, device=values.device, dtype=values.dtype)
        last = _lengths(values, complete) - 1  # (B, 1)
        share = self.strength + (1 - self.strength) * _uniform(values)
        start = _uniform(values) * (1 - share) * last
        place = torch.minimum(torch.addcmul(start, share, time), last)  # (B, T)
        if not complete:
            place = torch.where(time > last, time, place)
        left = place.long()
        right = (left + 1).clamp(max=timepoints - 1)
        weight = (place - left)[:, None]  # (B, 1, T), of the right neighbour
        before = values.gather(2, left[:, None].expand(batch, channels, timepoints))
        after = values.gather(2, right[:, None].expand(batch, channels, timepoints))
        between = torch.lerp(before, after, weight)
        return between if complete else torch.where(weight > 0, between, before)


@augment_word(
    "mask",
    "share",
    least=0.0,
    most=0.9,
    idle=0.0,
    summary="hides a stretch of up to that share of a case behind each channel's mean",
    source="Park et al. 2019",
)
class Mask(Change):
    """m, the mean of the case and channel, for x in a stretch anywhere in the case.

    The stretch has 0 to share·length timepoints, each number equally likely. The mean and not NaN, so
    that a batch without gaps keeps the fast path; a gap stays a gap.
    """

    def _change(self, values: Tensor, complete: bool, spread: Tensor) -> Tensor:
        time = torch.arange(values.shape[2], device=values.device, dtype=values.dtype)
        length = _lengths(values, complete)  # (B, 1)
        hidden = (_uniform(values) * ((self.strength * length).floor() + 1)).floor()
        start = (_uniform(values) * (length - hidden + 1)).floor()
        inside = ((time >= start) & (time < start + hidden))[:, None]  # (B, 1, T)
        if not complete:
            inside = inside & ~values.isnan()
        return torch.where(inside, _mean(values, complete), values)


@augment_word(
    "mixup",
    "α",
    least=0.0,
    most=10.0,
    idle=0.0,
    summary="mixes each case and its target with another of the batch, by Beta(α, α)",
    source="Zhang et al. 2018",
)
class Mixup(Change):
    """(1 − w)·x + w·x′, x′ another case of the batch; b ~ Beta(α, α) for each case, w = min(b, 1 − b).

    A pair is mixed alike whichever of both comes first, so the smaller of b and 1 − b goes to the other
    case: it then stays itself, with w = 0, where x′ is not observed. Targets are mixed by w times the
    share of the case's observed values that were mixed.
    """

    def __call__(
        self, values: Tensor, targets: Tensor, complete: bool, spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As `Augmentation`."""
        batch = values.shape[0]
        if batch == 1:
            return values, targets
        steps = torch.randint(1, batch, (batch,), device=values.device)
        other = (torch.arange(batch, device=values.device) + steps) % batch
        weight = self._weight(values)  # (B, 1)
        mixed = torch.lerp(values, values.index_select(0, other), weight[:, :, None])
        if not complete:
            both = ~mixed.isnan()
            mixed = torch.where(both, mixed, values)
            of_all = both.sum((1, 2)) / (~values.isnan()).sum((1, 2)).clamp(min=1)
            weight = weight * of_all[:, None]
        return mixed, torch.lerp(targets, targets.index_select(0, other), weight)

    def _weight(self, values: Tensor) -> Tensor:
        """(B, 1): min(b, 1 − b), b ~ Beta(α, α), from two uniform numbers each (Devroye 1996).

        Without rejection, so on every device alike, and right where a small α would make gamma underflow.
        """
        odds = (_uniform(values) ** (-1 / self.strength) - 1) * torch.cos(torch.pi * _uniform(values)) ** 2
        return 0.5 - 0.5 * (1 + 1 / odds).rsqrt()


def _uniform(values: Tensor) -> Tensor:
    """(B, 1) in [0, 1)."""
    return torch.rand(values.shape[0], 1, device=values.device, dtype=values.dtype)


def _normal(values: Tensor) -> Tensor:
    """(B, C, 1)."""
    return torch.randn(*values.shape[:2], 1, device=values.device, dtype=values.dtype)


def _mean(values: Tensor, complete: bool) -> Tensor:
    """(B, C, 1) over the observed values, NaN where there are none."""
    if complete:
        return values.mean(2, keepdim=True)
    return values.nansum(2, keepdim=True) / (~values.isnan()).sum(2, keepdim=True)


def _lengths(values: Tensor, complete: bool) -> Tensor:
    """(B, 1): timepoints up to the last at which any channel is observed, as floats."""
    batch, _, timepoints = values.shape
    if complete:
        return values.new_full((batch, 1), timepoints)
    number = torch.arange(1, timepoints + 1, device=values.device, dtype=values.dtype)
    return torch.where(values.isnan().all(1), 0.0, number).amax(1, keepdim=True)

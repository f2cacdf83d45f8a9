"""What of a training fits into memory, decided before it begins: how many cases at once, or what would."""

from __future__ import annotations

import bisect
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch

from tsattn.config import ModelConfig
from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.memory_free import free_bytes
from tsattn.training.memory_need import CANNOT_BE_COUNTED, MOMENTS, bytes_of_a_step
from tsattn.training.resident import ResidentCases

T = TypeVar("T")

logger = logging.getLogger(__name__)

LARGEST_BATCH = 64
FEWEST_STEPS_AN_EPOCH = 4
LONGEST_PATCH = 256
"""Timepoints; of a longer one little is left to attend to."""
BYTES = 4
"""Of a number that is trained."""
FRUGAL = ("linear", "local:32")
"""Attentions whose memory grows with the number of tokens and no faster, whatever the mask."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """The longest series of a set, as memory sees it. complete: no batch of the set needs a mask."""

    channels: int
    timepoints: int
    complete: bool


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """What could be typed so that a single case fits. needs: bytes of a step on it."""

    typed: str
    needs: int


def micro_batch(
    model: TransformerClassifier, config: ModelConfig, batch_size: int, cases: ResidentCases
) -> int:
    """How many cases of a batch can go through the model at once: all, or what halving them leads to.

    Fewer than all train the same, and a remark says so. InputError where not one fits, with what would.
    """
    device = cases.device
    free = free_bytes(device)
    equal = int(cases.lengths.min()) == int(cases.lengths.max())
    series = Series(
        channels=cases.values.shape[1],
        timepoints=int(cases.lengths.max()),
        complete=equal and bool(cases.complete.all()),
    )
    whole = min(batch_size, len(cases))
    needed = None if free is None else _needs(model, whole, series, device)
    if free is None or needed is None or needed <= free:
        return batch_size
    at_once = _first_that_fits(_halves(whole), lambda few: _needs(model, few, series, device), free)
    if at_once is None:
        raise InputError(_refusal(model, config, series, device, free))
    part, needs = at_once
    logger.warning(
        "A step on %d cases of up to %s timepoints would need about %s of memory, and %s are free; beginning "
        "with %d at once (%s) and gradients summed, which trains the same.",
        whole,
        f"{series.timepoints:,}",
        in_words(needed),
        in_words(free),
        part,
        in_words(needs),
    )
    return part


def refuse_too_large(config: ModelConfig, device: torch.device) -> None:
    """InputError for a model whose weights, gradients and moments alone are more than what is free.

    Before it is built, because building it would take that memory from everything else.
    """
    free, weights = free_bytes(device), _weights_of(config)
    if free is not None and weights is not None and (2 + MOMENTS) * BYTES * weights > free:
        raise InputError(
            f"A model of {config.layers} layers of width {config.width} has {weights:,} weights. To train "
            f"them takes {in_words((2 + MOMENTS) * BYTES * weights)} of memory before any case is seen, and "
            f"{in_words(free)} are free. Make less of it: --width or --layers."
        )


def _weights_of(config: ModelConfig) -> int | None:
    """Numbers that are trained, from the first two layers; None for an attention that needs values."""

    def counted(layers: int) -> int:
        with torch.device("meta"):
            model = TransformerClassifier(replace(config, layers=layers, convolutions=0))
        return sum(p.numel() for p in model.parameters())

    try:
        one = counted(1)
        return one if config.layers == 1 else one + (config.layers - 1) * (counted(2) - one)
    except CANNOT_BE_COUNTED:
        return None


def alternatives(
    config: ModelConfig, series: Series, device: torch.device, free: int, stride: int = 1
) -> Iterator[Alternative]:
    """What would let one case fit: a longer patch, another attention, or else both.

    stride: timepoints from token to token as things are. Each with its own estimate.
    """
    longest = min(LONGEST_PATCH, series.timepoints // 4)
    patches = [f"patch:{2**power}" for power in range(1, 9) if 2 * stride <= 2**power <= longest]

    def needs(tokens: str = config.tokens, attention: str = config.attention) -> int | None:
        return needs_of(replace(config, tokens=tokens, attention=attention), 1, series, device)

    found = _first_that_fits(patches, needs, free)
    if found is not None:
        yield Alternative(typed=f"--tokens {found[0]}", needs=found[1])
    for spec in FRUGAL:
        alone = needs(attention=spec) if spec != config.attention else None
        if alone is not None and alone <= free:
            yield Alternative(typed=f"--attention {spec}", needs=alone)
        elif found is None:
            both = _first_that_fits(patches, partial(needs, attention=spec), free)
            if both is not None:
                yield Alternative(typed=f"--attention {spec} --tokens {both[0]}", needs=both[1])


def largest_batch(config: ModelConfig, cases: Collection, device: torch.device) -> int | None:
    """The largest power of two up to 64 and a quarter of the cases of which a step fits half of what is free.

    1 if none does. None where that cannot be known.
    """
    free = free_bytes(device)
    lengths = cases.lengths
    series = Series(
        channels=len(cases.channels),
        timepoints=max(1, int(lengths.max())),
        complete=bool((cases.observed.sum(axis=1) == lengths.max()).all()),
    )
    if free is None or needs_of(config, 1, series, device) is None:
        return None
    most = min(LARGEST_BATCH, max(1, len(cases) // FEWEST_STEPS_AN_EPOCH))
    sizes = [2**power for power in reversed(range(most.bit_length()))]
    found = _first_that_fits(sizes, lambda size: needs_of(config, size, series, device), free // 2)
    return 1 if found is None else found[0]


def needs_of(config: ModelConfig, cases: int, series: Series, device: torch.device) -> int | None:
    """`bytes_of_a_step` of a model that is not there yet."""
    with torch.device("meta"):
        model = TransformerClassifier(replace(config, convolutions=0))  # which no step goes through
    return _needs(model, cases, series, device)


def in_words(size: int) -> str:
    """Bytes as MB or GB."""
    return f"{size / 1e6:,.0f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"


def _needs(model: TransformerClassifier, cases: int, series: Series, device: torch.device) -> int | None:
    return bytes_of_a_step(model, cases, series.channels, series.timepoints, series.complete, device)


def _first_that_fits(
    choices: Sequence[T], needs: Callable[[T], int | None], free: int
) -> tuple[T, int] | None:
    """The first of choices of falling need that fits, and its need; None where not even the last does."""

    found: dict[T, int] = {}

    def fits(choice: T) -> bool:
        needed = needs(choice)
        if needed is None or needed > free:
            return False
        found[choice] = needed
        return True

    place = bisect.bisect_left(choices, True, key=fits)
    return None if place == len(choices) else (choices[place], found[choices[place]])


def _halves(cases: int) -> list[int]:
    """As `Training` halves them when memory runs out."""
    found = []
    while cases > 1:
        cases = -(-cases // 2)
        found.append(cases)
    return found


def _refusal(
    model: TransformerClassifier, config: ModelConfig, series: Series, device: torch.device, free: int
) -> str:
    needed = _needs(model, 1, series, device)
    assert needed is not None
    found = [
        f"{one.typed} (needs {in_words(one.needs)})"
        for one in alternatives(config, series, device, free, model.tokens.stride)
    ]
    would = f"This would fit: {'; '.join(found)}; or" if found else "To make less of it"
    return (
        f"A training step on one case of {series.timepoints:,} timepoints would need about "
        f"{in_words(needed)} of memory with --attention {config.attention} --tokens {config.tokens}, and "
        f"{in_words(free)} are free. {would} cut recordings with --window or --resample."
    )

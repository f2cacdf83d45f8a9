"""Looking at what the heads of a trained model do, without a change to how it computes.

Letters: B cases of a batch, H heads, N tokens, D head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsattn.data.collection import Collection
from tsattn.data.preparation import Preparation, prepare_cases
from tsattn.errors import InputError
from tsattn.inference.cases import match_channels
from tsattn.models.attention import Mechanism
from tsattn.models.classifier import TransformerClassifier
from tsattn.models.layers import Block
from tsattn.runs import Run

MOST_MEMORY = 2**30
"""Bytes that the weights of a case may take; computing them takes up to a few times as much."""


@dataclass(frozen=True, eq=False)
class Attended:
    """What the attention of one layer was given and gave.

    q, k, outputs: (B, H, N, D), outputs as they are before heads are joined. visible: (B, N), the keys
    that may be seen, or None. observed: (B, N), the tokens that stand for anything.
    """

    mechanism: Mechanism
    q: Tensor
    k: Tensor
    visible: Tensor | None
    observed: Tensor
    outputs: Tensor

    def weights(self) -> Tensor:
        """(B, H, N, N); see `Mechanism.weights`."""
        return self.mechanism.weights(self.q, self.k, self.visible)


@dataclass(frozen=True, eq=False)
class CaseHeads:
    """What the heads did on one case.

    observed: (N,). starts: (N,) the first timepoint of each token. outputs: a layer (H, N, D).
    weights: a layer (H, N, N), row i the query; empty where they were not asked for.
    """

    id: str
    observed: NDArray[np.bool_]
    starts: NDArray[np.int64]
    outputs: tuple[NDArray[np.float32], ...]
    weights: tuple[NDArray[np.float32], ...]


@contextmanager
def listening(model: TransformerClassifier, hear: Callable[[int, Attended], None]) -> Iterator[None]:
    """Within it every forward pass calls hear(layer, what its attention did), first layer first."""
    observed: Tensor | None = None

    def note_tokens(stage: object, given: object, output: tuple[Tensor, Tensor | None]) -> None:
        nonlocal observed
        observed = output[1]

    def note_layer(layer: int) -> Callable[[Mechanism, tuple[Any, ...], Tensor], None]:
        def note(mechanism: Mechanism, given: tuple[Any, ...], outputs: Tensor) -> None:
            q, k, _, visible = given
            seen = q.new_ones(q.shape[0], q.shape[2], dtype=torch.bool) if observed is None else observed
            hear(layer, Attended(mechanism, q, k, visible, seen, outputs))

        return note

    hooks = [model.tokens.register_forward_hook(note_tokens)]
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        hooks.append(block.attention.mechanism.register_forward_hook(note_layer(layer)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def as_trained(run: Run, cases: Collection) -> Collection:
    """The cases as the run's model takes them: channels in its order, resampled or cut as in training.

    InputError if their number of channels is another than the model's.
    """
    how = Preparation.from_dict(run.card.preparation)
    return prepare_cases(match_channels(cases, run.card), how).cases


def heads_of_case(run: Run, case: Collection, *, weights: bool = False) -> CaseHeads:
    """What the heads do on a Collection of one case, which is as `as_trained` gives it.

    InputError where nothing is observed in it, and where its weights would take more than MOST_MEMORY.
    """
    (name,), (length,) = case.ids, case.lengths.tolist()
    if length == 0:
        raise InputError(f"case '{name}': nothing is observed in it, so no head sees anything.")
    stride = run.single().tokens.stride
    if weights:
        _check_memory(run, name, -(-length // stride))
    heard: list[tuple[Tensor, ...]] = []

    def hear(layer: int, attended: Attended) -> None:
        found = (attended.outputs, attended.weights()) if weights else (attended.outputs,)
        heard.append(tuple(x[0].cpu() for x in (attended.observed, *found)))

    with listening(run.single(), hear):
        forward(run.single(), np.ascontiguousarray(case.values[:, :, :length]))
    observed = heard[0][0].numpy()
    return CaseHeads(
        id=name,
        observed=observed,
        starts=stride * np.arange(len(observed)),
        outputs=tuple(layer[1].numpy() for layer in heard),
        weights=tuple(layer[2].numpy() for layer in heard) if weights else (),
    )


def forward(model: TransformerClassifier, values: NDArray[np.float32]) -> None:
    """One pass over (cases, channels, timepoints), NaN where not observed, for those who listen."""
    device = next(model.parameters()).device
    with torch.inference_mode():
        model(torch.from_numpy(values).to(device))


def _check_memory(run: Run, name: str, tokens: int) -> None:
    layers, heads = run.config.model.layers, run.config.model.heads
    needed = 4 * layers * heads * tokens**2
    if needed > MOST_MEMORY:
        most = math.isqrt(MOST_MEMORY // (4 * layers * heads))
        patch = math.ceil(tokens * run.single().tokens.stride / most)
        raise InputError(
            f"case '{name}': its weights, {layers} layers × {heads} heads × {tokens:,} × {tokens:,} tokens, "
            f"would take {needed / 2**30:,.1f} GiB; the most is {MOST_MEMORY / 2**30:g} GiB. Choose a case "
            f"of at most {most:,} tokens, or train with --tokens patch:{patch}."
        )

"""What an attention mechanism is: the seam between projections and the rule that mixes values.

Letters: B batch, H heads, L queries, S keys, D head width.

A mechanism maps q (B, H, L, D), k and v (B, H, S, D) and `observed` (B, S) to (B, H, L, D).
`observed` is True where a key may be seen, with at least one True in every case; None says that
all may be seen and is the fast path. L equals S unless keys were pooled (`Heads.stride` > 1),
then S = ceil(L / stride) and key j stands for the timepoints j·stride … (j+1)·stride − 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Heads:
    """What a mechanism is built for.

    count: number of heads. dim: width of a head. stride: timepoints a key stands for.
    """

    count: int
    dim: int
    stride: int = 1


class Mechanism(nn.Module):
    """Base of all mechanisms; the module's docstring is the contract of `forward`."""

    ignores_key_shift = False
    """True where adding one vector to every key of a head changes nothing and logits are products
    q·k, so that a scaling of keys may be moved onto the queries."""

    averages = True
    """True where the weights of a query that sees anything sum to one; of a wrapper, where they still
    do if those of what it wraps do."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        """(B, H, L, D) from q (B, H, L, D), k and v (B, H, S, D), observed (B, S) or None."""
        raise TypeError(f"{type(self).__name__} has no forward")

    def weights(self, q: Tensor, k: Tensor, observed: Tensor | None) -> Tensor:
        """(B, H, L, S): how much of each value goes into each output: weights @ v is what `forward` gives.

        They are over the keys as they come in, also where those are then pooled, cut into blocks or
        attended to twice, and zero at keys that are not observed. As every output is linear in v, they
        are what becomes of the identity, in the type of q, k and the parameters. That takes a few times
        B·H·L·S numbers of memory, whatever the mechanism itself takes: for looking at chosen cases.
        """
        identity = torch.eye(k.shape[2], dtype=k.dtype, device=k.device)
        # Not self(…): who listens to the mechanism hears no passes but the model's own.
        return self.forward(q, k, identity.expand(k.shape[0], k.shape[1], -1, -1), observed)


def at_least_float32(x: Tensor) -> Tensor:
    """The tensor, in float32 if its type is narrower: sums over time lose too much in 16 bits."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


BuildInner = Callable[[Heads], Mechanism]
"""Builds what a wrapper wraps; a factory, because a wrapper may need several, each for some heads."""

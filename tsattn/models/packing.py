"""How the tokens of a batch lie: padded to the longest case, or without those that nobody sees.

All of a block but attention itself treats each token by itself, so a token that no query sees and that is
never pooled is work for nothing: in batches of unequal series as much as half of it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Padded:
    """Tokens (B, N, width) as they are. cases: B. visible: (B, N), True where keys may be seen; None: all."""

    def __init__(self, cases: int, visible: Tensor | None) -> None:
        self.cases, self.visible = cases, visible

    def pack(self, x: Tensor) -> Tensor:
        """`x` itself."""
        return x

    def unpack(self, x: Tensor) -> Tensor:
        """`x` itself."""
        return x

    def heads(self, x: Tensor, heads: int) -> Tensor:
        """(B, H, N, D), the tokens of every head, from tokens of the layout, H·D wide."""
        return self.unpack(x).unflatten(2, (heads, -1)).transpose(1, 2)

    def of_tokens(self, of_cases: Tensor) -> Tensor:
        """(B, 1, 1) from (B,): a number a case, to be multiplied with its tokens."""
        return of_cases[:, None, None]


class Flat(Padded):
    """Tokens (B·N, width): all of them, one behind the other.

    For an exported graph, where a linear map of a matrix is one node with its bias, and of more dimensions
    two, the second of which goes through all numbers once more.
    """

    def __init__(self, x: Tensor, visible: Tensor | None) -> None:
        super().__init__(x.shape[0], visible)
        self.tokens = x.shape[1]

    def pack(self, x: Tensor) -> Tensor:
        """(B·N, width) from (B, N, width)."""
        return x.flatten(0, 1)

    def unpack(self, x: Tensor) -> Tensor:
        """(B, N, width) from (B·N, width)."""
        return x.reshape(self.cases, self.tokens, x.shape[1])

    def heads(self, x: Tensor, heads: int) -> Tensor:
        """(B, H, N, D) from (B·N, H·D)."""
        return x.reshape(self.cases, self.tokens, heads, x.shape[1] // heads).transpose(1, 2)

    def of_tokens(self, of_cases: Tensor) -> Tensor:
        """(B·N, 1) from (B,): a number a case, to be multiplied with its tokens."""
        return of_cases[:, None].expand(-1, self.tokens).reshape(-1, 1)


class Packed(Padded):
    """Tokens (M, width): the M visible ones of a batch, case after case.

    visible: (B, N), at least one True. What is not visible comes back from `unpack` as zero, and gets no
    gradient.
    """

    def __init__(self, visible: Tensor) -> None:
        super().__init__(len(visible), visible)
        self.places = visible.flatten().nonzero()[:, 0]  # (M,) in B·N

    def pack(self, x: Tensor) -> Tensor:
        """(M, width) from (B, N, width)."""
        return _Take.apply(x.flatten(0, 1), self.places)  # type: ignore[no-untyped-call]

    def unpack(self, x: Tensor) -> Tensor:
        """(B, N, width) from (M, width)."""
        assert self.visible is not None
        whole: Tensor = _Put.apply(x, self.places, self.visible.numel())  # type: ignore[no-untyped-call]
        return whole.view(*self.visible.shape, x.shape[1])

    def of_tokens(self, of_cases: Tensor) -> Tensor:
        """(M, 1) from (B,): a number a case, to be multiplied with its tokens."""
        assert self.visible is not None
        return of_cases[self.places // self.visible.shape[1], None]


def lay_out(x: Tensor, seen: Tensor | None, training: bool) -> Padded:
    """How tokens x (B, N, width) of which `seen` (B, N) are observed go through blocks.

    What is observed is visible, and in a case without any all of it, so that attention sees something.
    Flat in an export. Packed where that spares work: in training on a CPU, if not all is visible. A
    prediction is left padded, so that not even its last bit depends on the other cases of its batch; on a
    GPU one would have to wait for the number of visible tokens.
    """
    cases = x.shape[0]  # and not len(x), which would fix the size of a batch in an export
    visible = None if seen is None else seen | ~seen.any(dim=1, keepdim=True)
    if torch.compiler.is_exporting():
        return Flat(x, visible)
    if visible is None:
        return Padded(cases, None)
    if not training or x.device.type != "cpu" or _is_traced(x):
        return Padded(cases, visible)
    return Padded(cases, None) if visible.all() else Packed(visible)


def _is_traced(x: Tensor) -> bool:
    """Whether it has no content that could decide anything."""
    return type(x) is not Tensor or torch.compiler.is_compiling()


class _Take(torch.autograd.Function):
    """Rows of `x` at `places`, none of which comes twice; index_select's own gradient adds row by row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.rows = len(x)
        return x.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return _put(gradient, places, ctx.rows), None


class _Put(torch.autograd.Function):
    """`rows` rows, those of `x` at `places` and else zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, rows: int) -> Tensor:
        ctx.save_for_backward(places)
        return _put(x, places, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


def _put(x: Tensor, places: Tensor, rows: int) -> Tensor:
    return x.new_zeros(rows, x.shape[1]).index_copy_(0, places, x)

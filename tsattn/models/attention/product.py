"""The softmax product that cores share. Letters as in contract.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional as F

_WRITTEN_OUT = ContextVar("written_out", default=False)


@contextmanager
def products_written_out() -> Iterator[None]:
    """Within it `attend` is matrix products and a softmax of their own, for a graph without one node for all.

    What the exporter writes for torch's fused kernel also looks for queries that see nothing, in passes over
    all of (B, H, L, S): a fifth of the time of a small model.
    """
    token = _WRITTEN_OUT.set(True)
    try:
        yield
    finally:
        _WRITTEN_OUT.reset(token)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(q kᵀ / √D) v, by torch's fused kernels.

    mask: True where a key may be seen, to be broadcast to (B, H, L, S); every query sees at least one.
    """
    fuses_itself = torch.compiler.is_compiling() and not torch.compiler.is_exporting()
    if fuses_itself or not _WRITTEN_OUT.get():  # which torch's compiler cannot look up
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + torch.where(mask, q.new_zeros(()), q.new_full((), -math.inf))
    return scores.softmax(-1) @ v

"""Cores that see some keys, computed in blocks so that no N × N matrix arises. Letters as in contract.py."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tsattn.models.attention.contract import Heads, Mechanism
from tsattn.models.attention.product import attend
from tsattn.models.attention.registry import core

DEFAULT_WINDOW = 32
GREATEST_WINDOW = 4096


@core(
    "local",
    summary=f"sliding window: a query sees the keys within W timepoints (default {DEFAULT_WINDOW})",
    cost="N·W",
    source="sparse attention, Nguyen et al. 2023; window as in Beltagy et al. 2020",
    option="W",
)
class Local(Mechanism):
    """Softmax over the keys at most W timepoints away.

    A block of queries sees its own and the two neighbouring blocks of keys. Pooled keys
    (heads.stride > 1) are compared in their own, coarser timepoints. A query with no key to see
    (only possible where nothing is observed around it) gives zero.
    """

    ignores_key_shift = True

    def __init__(self, heads: Heads, option: str | None = None) -> None:
        super().__init__()
        window = DEFAULT_WINDOW if option is None else int(option) if option.isdecimal() else 0
        if not 1 <= window <= GREATEST_WINDOW:
            raise ValueError(
                f"the window must be a whole number of timepoints, 1 to {GREATEST_WINDOW}, not '{option}'"
            )
        self.reach = max(window // heads.stride, 1)  # in keys, to either side
        self.stride = heads.stride

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        if observed is None:
            observed = torch.ones(k.shape[0], k.shape[2], dtype=torch.bool, device=k.device)
        # Blocks need be no longer than the series; in an exported graph its length is not known.
        reach = self.reach if torch.compiler.is_compiling() else min(self.reach, k.shape[2])
        per_block = reach * self.stride
        blocks = (q.shape[2] + per_block - 1) // per_block
        keys, values, visible = self.seen_by_blocks(k, v, observed, blocks, reach)
        return _attend(q, keys, values, visible, per_block)

    def seen_by_blocks(
        self, k: Tensor, v: Tensor, observed: Tensor, blocks: int, reach: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What each block of reach·stride queries sees, K keys each.

        Keys and values (B, blocks, H, K, D) and `visible` (B, blocks, reach·stride, K), True where
        the query may see the key.
        """
        near = _with_neighbours(observed[:, None, :, None].to(k.dtype), blocks, reach)[:, :, 0, None, :, 0]
        query = torch.arange(reach * self.stride, device=k.device) // self.stride + reach
        key = torch.arange(3 * reach, device=k.device)
        band = (query[:, None] - key[None, :]).abs() <= reach  # (reach·stride, 3·reach)
        keys, values = (_with_neighbours(x, blocks, reach) for x in (k, v))
        return keys, values, (near > 0) & band


@core(
    "strided",
    summary=f"the window of `local` and every W-th key of the whole series (default {DEFAULT_WINDOW})",
    cost="N·(W + N/W)",
    source="sparse attention, Nguyen et al. 2023; pattern as in Child et al. 2019",
    option="W",
)
class Strided(Local):
    """Softmax over the keys at most W timepoints away and over keys 0, W, 2W, …, each counted once."""

    def seen_by_blocks(
        self, k: Tensor, v: Tensor, observed: Tensor, blocks: int, reach: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `Local.seen_by_blocks`, and behind the near keys the far ones outside a query's window."""
        keys, values, visible = super().seen_by_blocks(k, v, observed, blocks, reach)
        every = slice(None, None, self.reach)
        far_keys, far_values = (x[:, None, :, every].expand(-1, blocks, -1, -1, -1) for x in (k, v))
        far = torch.arange(far_keys.shape[3], device=k.device) * self.reach
        query = torch.arange(blocks * reach * self.stride, device=k.device) // self.stride
        outside = ((query[:, None] - far[None, :]).abs() > self.reach).view(blocks, reach * self.stride, -1)
        far_visible = observed[:, None, None, every] & outside  # (B, blocks, reach·stride, far)
        return (
            torch.cat([keys, far_keys], dim=3),
            torch.cat([values, far_values], dim=3),
            torch.cat([visible, far_visible], dim=3),
        )


def _attend(q: Tensor, keys: Tensor, values: Tensor, visible: Tensor, per_block: int) -> Tensor:
    """Softmax of each block's queries over the block's own keys; zero for a query that sees none."""
    batch, heads, length, _ = q.shape
    blocks, seen, width = keys.shape[1], keys.shape[3], values.shape[4]
    rest = blocks * per_block - length
    q = F.pad(q, (0, 0, 0, rest)).reshape(batch, heads, blocks, per_block, -1).transpose(1, 2)
    visible = visible.reshape(batch * blocks, 1, per_block, seen)
    blind = ~visible.any(3, keepdim=True)  # (B·blocks, 1, per_block, 1)
    mixed = attend(
        q.reshape(batch * blocks, heads, per_block, -1),
        keys.reshape(batch * blocks, heads, seen, -1),
        values.reshape(batch * blocks, heads, seen, -1),
        visible | blind,
    )
    mixed = mixed.masked_fill(blind, 0.0).reshape(batch, blocks, heads, per_block, width)
    return mixed.transpose(1, 2).reshape(batch, heads, blocks * per_block, width)[:, :, :length]


def _with_neighbours(x: Tensor, blocks: int, size: int) -> Tensor:
    """(B, H, S, D) cut into blocks of `size` keys, each with the block before and after it.

    Returns (B, blocks, H, 3·size, D); what lies outside the series is zero.
    """
    batch, heads, keys, dim = x.shape
    padded = F.pad(x, (0, 0, size, (blocks + 1) * size - keys))
    tiles = padded.reshape(batch, heads, blocks + 2, size, dim)
    tripled = torch.cat([tiles[:, :, :-2], tiles[:, :, 1:-1], tiles[:, :, 2:]], dim=3)
    return tripled.transpose(1, 2)

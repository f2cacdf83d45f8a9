"""Cores: the mechanisms that compute attention. Letters as in contract.py."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tsattn.models.attention.contract import Heads, Mechanism
from tsattn.models.attention.registry import core

# Below this a denominator of linear attention counts as zero; far under any sum of real features.
SMALLEST_NORMALISER = 1e-6


@core(
    "softmax",
    summary="scaled dot product: every query sees every key",
    cost="N²",
    source="Vaswani et al. 2017; support vector regression with an exponential kernel, Nguyen et al. 2023",
)
class Softmax(Mechanism):
    """softmax(q kᵀ / √D) v, by torch's fused kernels."""

    ignores_key_shift = True

    def __init__(self, heads: Heads) -> None:
        super().__init__()

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        mask = None
        if observed is not None:
            # ONNX Runtime fails on a mask that still has to be broadcast over queries.
            mask = observed[:, None, None, :].expand(-1, 1, q.shape[2], -1)  # (B, 1, L, S)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@core(
    "linear",
    summary="feature map elu(x)+1, keys and values summed once for all queries",
    cost="N",
    source="Katharopoulos et al. 2020; support vector regression with finite features, Nguyen et al. 2023",
)
class Linear(Mechanism):
    """φ(q) (Σ_j φ(k_j) v_jᵀ) / (φ(q) · Σ_j φ(k_j)) with φ(x) = elu(x) + 1, sums in float32."""

    def __init__(self, heads: Heads) -> None:
        super().__init__()

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        features_q, features_k = F.elu(q.float()) + 1, F.elu(k.float()) + 1
        if observed is not None:
            features_k = features_k * observed[:, None, :, None]
        summed = features_k.transpose(2, 3) @ v.float()  # (B, H, D, D)
        normaliser = features_q @ features_k.sum(2).unsqueeze(3)  # (B, H, L, 1)
        return ((features_q @ summed) / normaliser.clamp(min=SMALLEST_NORMALISER)).to(v.dtype)


@core(
    "local",
    summary="sliding window: a query sees the keys within W timepoints (default 32)",
    cost="N·W",
    source="sparse attention, Nguyen et al. 2023; window as in Beltagy et al. 2020",
    option="W",
)
class Local(Mechanism):
    """Softmax over the keys at most `window` timepoints away, in blocks of one window.

    A block of queries sees its own and the two neighbouring blocks of keys, so time and memory
    grow with N·W. Pooled keys (heads.stride > 1) are compared in their own, coarser timepoints. A
    query with no key in its window (only possible where nothing is observed) gives zero.
    """

    ignores_key_shift = True

    def __init__(self, heads: Heads, option: str | None = None) -> None:
        super().__init__()
        window = 32 if option is None else _whole_number(option)
        if window < 1:
            raise ValueError(f"the window must be a whole number of timepoints, at least 1, not '{option}'")
        self.reach = max(window // heads.stride, 1)  # in keys, to either side
        self.stride = heads.stride

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        batch, heads, length, dim = q.shape
        keys = k.shape[2]
        if observed is None:
            observed = torch.ones(batch, keys, dtype=torch.bool, device=k.device)
        reach, per_block = self.reach, self.reach * self.stride
        blocks = (length + per_block - 1) // per_block

        q_blocks = F.pad(q, (0, 0, 0, blocks * per_block - length))
        q_blocks = q_blocks.reshape(batch, heads, blocks, per_block, dim)
        k_blocks = _with_neighbours(k, blocks, reach)  # (B, blocks, H, 3·reach, D)
        v_blocks = _with_neighbours(v, blocks, reach)
        seen = _with_neighbours(observed[:, None, :, None].to(k.dtype), blocks, reach)[..., 0] > 0
        visible = seen.reshape(batch * blocks, 1, 1, 3 * reach) & self._band(q.device)
        blind = ~visible.any(3, keepdim=True)  # (B·blocks, 1, per_block, 1)

        mixed = F.scaled_dot_product_attention(
            q_blocks.transpose(1, 2).reshape(batch * blocks, heads, per_block, dim),
            k_blocks.reshape(batch * blocks, heads, 3 * reach, dim),
            v_blocks.reshape(batch * blocks, heads, 3 * reach, dim),
            attn_mask=visible | blind,
        )
        mixed = mixed.masked_fill(blind, 0.0).reshape(batch, blocks, heads, per_block, dim)
        mixed = mixed.transpose(1, 2).reshape(batch, heads, blocks * per_block, dim)
        return mixed[:, :, :length]

    def _band(self, device: torch.device) -> Tensor:
        """(1, 1, per_block, 3·reach): True where a key of the three blocks is within reach."""
        query = torch.arange(self.reach * self.stride, device=device) // self.stride + self.reach
        key = torch.arange(3 * self.reach, device=device)
        return ((query[:, None] - key[None, :]).abs() <= self.reach)[None, None]


def _with_neighbours(x: Tensor, blocks: int, size: int) -> Tensor:
    """(B, H, S, D) cut into blocks of `size` keys, each with the block before and after it.

    Returns (B, blocks, H, 3·size, D); what lies outside the series is zero.
    """
    batch, heads, keys, dim = x.shape
    padded = F.pad(x, (0, 0, size, (blocks + 1) * size - keys))
    tiles = padded.reshape(batch, heads, blocks + 2, size, dim)
    tripled = torch.cat([tiles[:, :, :-2], tiles[:, :, 1:-1], tiles[:, :, 2:]], dim=3)
    return tripled.transpose(1, 2)


def _whole_number(text: str) -> int:
    return int(text) if text.isdecimal() else 0

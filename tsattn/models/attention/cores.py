"""Cores that see every key: softmax, linear, flow. Letters as in contract.py."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tsattn.models.attention.contract import Heads, Mechanism, at_least_float32
from tsattn.models.attention.product import attend
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
            mask = observed[:, None, None, :]  # (B, 1, 1, S)
            if torch.compiler.is_exporting():
                # ONNX Runtime fails on a mask that still has to be broadcast over queries. Elsewhere the
                # broadcast one would be written out: more memory than all else.
                mask = mask.expand(-1, 1, q.shape[2], -1)  # (B, 1, L, S)
        return attend(q, k, v, mask)


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
        features_q, features_k = F.elu(at_least_float32(q)) + 1, F.elu(at_least_float32(k)) + 1
        if observed is not None:
            features_k = features_k * observed[:, None, :, None]
        summed = features_k.transpose(2, 3) @ at_least_float32(v)  # (B, H, D, D)
        normaliser = features_q @ features_k.sum(2).unsqueeze(3)  # (B, H, L, 1)
        return ((features_q @ summed) / normaliser.clamp(min=SMALLEST_NORMALISER)).to(v.dtype)


@core(
    "flow",
    summary="linear attention whose queries and keys share out a conserved flow",
    cost="N",
    source="Wu et al. 2022 (Flowformer)",
    needs_all_keys=True,
)
class Flow(Mechanism):
    """σ(Î) ⊙ φ(q)/I (φ(k)ᵀ (softmax(Ô)·n ⊙ v)), φ the sigmoid, n the number of observed keys.

    I_i = φ(q_i)·Σ_j φ(k_j) flows into query i and O_j = φ(k_j)·Σ_i φ(q_i) out of key j; Î and Ô are
    the same after the other side was normalised to one. Sums over queries count observed timepoints
    only, so queries and keys have to be the same timepoints.
    """

    averages = False  # the flow that a query keeps is less than one

    def __init__(self, heads: Heads) -> None:
        super().__init__()

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        sources, sinks = at_least_float32(k).sigmoid(), at_least_float32(q).sigmoid()
        seen = torch.ones_like(sources[:, :, :, :1], dtype=torch.bool)  # (B, H, S, 1)
        if observed is not None:
            seen = seen & observed[:, None, :, None]
        sources, counted = sources * seen, sinks * seen  # what is not observed sends and takes nothing

        incoming = (sinks @ sources.sum(2).unsqueeze(3)).clamp(min=SMALLEST_NORMALISER)  # (B, H, L, 1)
        outgoing = (sources @ counted.sum(2).unsqueeze(3)).clamp(min=SMALLEST_NORMALISER)  # (B, H, S, 1)
        incoming_kept = sinks @ (sources / outgoing).sum(2).unsqueeze(3)
        outgoing_kept = sources @ (counted / incoming).sum(2).unsqueeze(3)

        keys = seen.sum(2, keepdim=True)
        competition = keys * outgoing_kept.masked_fill(~seen, float("-inf")).softmax(2)
        mixed = (sinks / incoming) @ (sources.transpose(2, 3) @ (competition * at_least_float32(v)))
        return (mixed * incoming_kept.sigmoid()).to(v.dtype)

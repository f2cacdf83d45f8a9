"""A classifier that computes in float16 inside, and in float32 where that would not hold what it computes."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from tsattn.models.classifier import TransformerClassifier
from tsattn.models.layers import Block


def in_half(model: nn.Module, *, wide_attention: bool) -> nn.Module:
    """A copy of `model` with weights and most sums in float16, values and logits in float32.

    Raw values are standardised before they are narrowed, and pooling, whose sums over time have no bound,
    and the head are float32. So are the insides of attention if wide_attention: Attention-BN divides by a
    variance that may be as small as 1e-5, which float16 cannot hold.
    """
    narrow = copy.deepcopy(model)
    for part in list(narrow.modules()):
        if isinstance(part, TransformerClassifier):
            _narrow(part, wide_attention)
    return narrow.eval()


def _narrow(classifier: TransformerClassifier, wide_attention: bool) -> None:
    beside, classifier.beside = classifier.beside, None
    classifier.half()
    classifier.beside = beside  # float32: thresholds are finer than float16 is
    classifier.standardise = _Into(classifier.standardise.float(), torch.float16)  # type: ignore[assignment]
    classifier.pooling = _Into(classifier.pooling, torch.float32)  # type: ignore[assignment]
    classifier.head.float()
    if wide_attention:
        for block in classifier.blocks:
            assert isinstance(block, Block)
            mechanism = block.attention.mechanism.float()
            block.attention.mechanism = _Into(mechanism, torch.float16)  # type: ignore[assignment]


class _Into(nn.Module):
    """A module that computes in float32 and whose result is of `dtype`."""

    def __init__(self, inner: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.inner = inner
        self.dtype = dtype

    def forward(self, *inputs: Tensor | None) -> Tensor:
        result: Tensor = self.inner(*map(_widened, inputs))
        return result.to(self.dtype)


def _widened(x: Tensor | None) -> Tensor | None:
    return x.float() if x is not None and x.dtype == torch.float16 else x

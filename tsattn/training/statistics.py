"""What standardisation needs to know of the training cases."""

from __future__ import annotations

import logging

import numpy as np
import torch

from tsattn.data.collection import Collection
from tsattn.models.classifier import TransformerClassifier

logger = logging.getLogger(__name__)

SMALLEST_SPREAD = 1e-8
"""Of a channel, relative to its mean; below it float32 values are all the same."""


def take_statistics(model: TransformerClassifier, train: Collection) -> None:
    """Mean and deviation of every channel over what was observed in training, in float64."""
    values = train.values.astype(np.float64)
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=(0, 2)), 1)
    mean = np.where(seen, values, 0).sum(axis=(0, 2)) / count
    centred = np.where(seen, values - mean[:, None], 0)
    std = np.sqrt((centred**2).sum(axis=(0, 2)) / count)
    model.standardise.mean.copy_(torch.from_numpy(mean))
    # A channel that never changes says nothing: it becomes zero instead of being divided by zero.
    constant = std <= np.maximum(SMALLEST_SPREAD * np.abs(mean), np.finfo(np.float32).tiny)
    model.standardise.std.copy_(torch.from_numpy(np.where(constant, 1.0, std)))
    if model.beside is not None:
        model.beside.standardise.load_state_dict(model.standardise.state_dict())
    if constant.any():
        names = ", ".join(name for name, same in zip(train.channels, constant, strict=True) if same)
        logger.warning("Channels that never change in the training cases and so say nothing: %s.", names)


def ranges(train: Collection) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Least and greatest value of every channel, 0 for one without any, and the largest share of values
    that a case lacks within its length.
    """
    least = np.full(len(train.channels), np.nan, np.float32)
    greatest, share = least.copy(), 0.0
    lengths = train.lengths
    for case, length in zip(train.values, lengths.tolist(), strict=True):
        seen = case[:, :length]
        if length:
            least = np.fmin(least, np.fmin.reduce(seen, axis=1))
            greatest = np.fmax(greatest, np.fmax.reduce(seen, axis=1))
        share = max(share, float(np.isnan(seen).mean()) if length else 1.0)
    return (
        tuple(np.nan_to_num(least).tolist()),
        tuple(np.nan_to_num(greatest).tolist()),
        share,
    )

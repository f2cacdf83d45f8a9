"""The whole of the training cases on the device, and batches cut to their longest case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsattn.data.collection import Collection


class Batch(NamedTuple):
    """Cases of one step, on the device.

    values: (batch, channels, longest of them), NaN where not observed. targets: (batch,). complete: whether
    every timepoint of every case is observed; without_nan: whether every channel is, too.
    """

    values: Tensor
    targets: Tensor
    complete: bool
    without_nan: bool


class ResidentCases:
    """Cases of one Collection as a single tensor on the device.

    Lengths and gaps are also known on the host, so cutting a batch and deciding whether it needs
    a mask never waits for the device.
    """

    def __init__(self, collection: Collection, classes: Sequence[str], device: torch.device) -> None:
        assert collection.labels is not None
        place = {label: index for index, label in enumerate(classes)}
        targets = torch.tensor([place[label] for label in collection.labels])
        self.values = torch.from_numpy(np.ascontiguousarray(collection.values)).to(device)
        self.targets = targets.to(device)
        self.classes_of_cases: NDArray[np.int64] = targets.numpy()
        self.class_counts: NDArray[np.int64] = np.bincount(self.classes_of_cases, minlength=len(classes))
        self.lengths: NDArray[np.int64] = np.maximum(collection.lengths, 1)
        self.complete: NDArray[np.bool_] = collection.observed.sum(axis=1) == self.lengths
        # At no timepoint of the case a channel is missing, which is more than that one is there.
        known = np.count_nonzero(~np.isnan(collection.values), axis=(1, 2))
        self.without_nan: NDArray[np.bool_] = known == self.lengths * len(collection.channels)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, chosen: NDArray[np.int64]) -> Batch:
        """The chosen cases, maybe none, cut to the longest of them."""
        lengths = self.lengths[chosen]
        longest = int(lengths.max(initial=1))
        equal = bool((lengths == longest).all())
        index = torch.from_numpy(chosen).to(self.values.device, non_blocking=True)
        return Batch(
            values=self.values[:, :, :longest].index_select(0, index),
            targets=self.targets.index_select(0, index),
            complete=equal and bool(self.complete[chosen].all()),
            without_nan=equal and bool(self.without_nan[chosen].all()),
        )

    def spread(self) -> Tensor:
        """(channels,) standard deviations of what is observed, zero for a channel that never changes."""
        mean = self.values.nanmean(dim=(0, 2), keepdim=True)
        return (self.values - mean).square_().nanmean(dim=(0, 2)).nan_to_num_(0.0).sqrt_()

    def order(
        self, generator: np.random.Generator, chances: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64]:
        """Every case once, in a random order; with chances (cases,) as many draws as there are cases."""
        if chances is None:
            return generator.permutation(len(self))
        return generator.choice(len(self), size=len(self), p=chances)

    def by_length(self, batch_size: int) -> Iterator[Batch]:
        """Every case once, cases of similar length together: for measuring, not for learning."""
        order = np.argsort(self.lengths, kind="stable")
        for start in range(0, len(order), batch_size):
            yield self.batch(order[start : start + batch_size])

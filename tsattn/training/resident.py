"""The training cases on the device, or beside it where they are too large; batches end with their longest."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsattn.data.collection import Collection
from tsattn.training.memory_free import free_bytes

logger = logging.getLogger(__name__)


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
        self.device = device
        self.values = self._placed(torch.from_numpy(np.ascontiguousarray(collection.values)))
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
        index = torch.from_numpy(chosen)
        return Batch(
            values=self._taken(index, longest),
            targets=self.targets.index_select(0, index.to(self.device, non_blocking=True)),
            complete=equal and bool(self.complete[chosen].all()),
            without_nan=equal and bool(self.without_nan[chosen].all()),
        )

    def spread(self) -> Tensor:
        """(channels,) standard deviations of what is observed, zero for a channel that never changes."""
        mean = self.values.nanmean(dim=(0, 2), keepdim=True)
        spread = (self.values - mean).square_().nanmean(dim=(0, 2)).nan_to_num_(0.0).sqrt_()
        return spread.to(self.device)

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

    def _placed(self, values: Tensor) -> Tensor:
        """Where all values stay."""
        return values.to(self.device)

    def _taken(self, index: Tensor, longest: int) -> Tensor:
        """Those of the cases at `index` (batch,), on the host, cut to `longest` timepoints, on the device."""
        return self.values[:, :, :longest].index_select(0, index.to(self.device, non_blocking=True))


class StreamedCases(ResidentCases):
    """Cases that stay on the host; each batch goes to the device when it is asked for.

    The host runs ahead of a GPU, so that a batch is gathered and on its way, from memory that is never
    swapped, while the steps before it are computed.
    """

    def _placed(self, values: Tensor) -> Tensor:
        return values

    def _taken(self, index: Tensor, longest: int) -> Tensor:
        batch = self.values[:, :, :longest].index_select(0, index)
        if self.device.type == "cuda":
            batch = batch.pin_memory()
        return batch.to(self.device, non_blocking=True)


def placed(collection: Collection, classes: Sequence[str], device: torch.device) -> ResidentCases:
    """The cases on the device, or streamed to it where they would take over half of what is free there."""
    free = free_bytes(device)
    if device.type == "cpu" or free is None or collection.values.nbytes <= free // 2:
        return ResidentCases(collection, classes, device)
    logger.warning(
        "The cases take %.1f GB and %.1f GB are free on the device: they stay in main memory and go there "
        "batch by batch.",
        collection.values.nbytes / 1e9,
        free / 1e9,
    )
    return StreamedCases(collection, classes, device)

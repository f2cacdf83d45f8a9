"""The whole of the training cases on the device, and batches cut to their longest case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsattn.data.collection import Collection


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

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor, bool]:
        """Values (batch, channels, longest of them), targets (batch,), and whether all is observed."""
        longest = int(self.lengths[chosen].max())
        complete = bool(self.complete[chosen].all()) and int(self.lengths[chosen].min()) == longest
        index = torch.from_numpy(chosen).to(self.values.device, non_blocking=True)
        return (
            self.values[:, :, :longest].index_select(0, index),
            self.targets.index_select(0, index),
            complete,
        )

    def order(
        self, generator: np.random.Generator, chances: NDArray[np.float64] | None = None
    ) -> NDArray[np.int64]:
        """Every case once, in a random order; with chances (cases,) as many draws as there are cases."""
        if chances is None:
            return generator.permutation(len(self))
        return generator.choice(len(self), size=len(self), p=chances)

    def by_length(self, batch_size: int) -> Iterator[tuple[Tensor, Tensor, bool]]:
        """Every case once, cases of similar length together: for measuring, not for learning."""
        order = np.argsort(self.lengths, kind="stable")
        for start in range(0, len(order), batch_size):
            yield self.batch(order[start : start + batch_size])

"""Collection: many cases of one problem, the only form in which data travel outside models.

Axes are (cases, channels, timepoints), float32. NaN means not observed. A case shorter than the
longest is padded at its end with NaN in every channel, so padding and missing values are one
thing and no separate lengths have to travel along.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Collection:
    """Cases with their ids and, where known, their labels.

    values: (cases, channels, timepoints) float32, NaN where not observed.
    ids: one string a case, in the order of the source.
    channels: one name a channel.
    labels: one string a case in its original spelling, or None where unknown.
    classes: the distinct labels in the order of the source's declaration, else of first sorting;
        empty where labels are None.
    groups: one string a case that names what it must not be torn from (a subject, a machine), or None.
    timepoint_labels: (cases, timepoints) places in classes, −1 where there is none, where a label
        holds for a timepoint and not for its case; None elsewhere.
    """

    values: NDArray[np.float32]
    ids: tuple[str, ...]
    channels: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    classes: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    timepoint_labels: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        cases, channels, _ = self.values.shape
        assert self.values.dtype == np.float32, self.values.dtype
        assert len(self.ids) == cases, (len(self.ids), cases)
        assert len(self.channels) == channels, (len(self.channels), channels)
        assert self.labels is None or len(self.labels) == cases, (len(self.labels), cases)
        assert self.groups is None or len(self.groups) == cases, (len(self.groups), cases)
        assert self.labels is None or set(self.labels) <= set(self.classes)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """(cases, timepoints): True where at least one channel has a value."""
        seen: NDArray[np.bool_] = np.logical_not(np.isnan(self.values).all(axis=1))
        return seen

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(cases,): timepoints up to the last observed one; 0 where nothing is observed."""
        observed = self.observed
        last = observed.shape[1] - np.argmax(observed[:, ::-1], axis=1)
        return np.where(observed.any(axis=1), last, 0).astype(np.int64)

    def take(self, indices: NDArray[np.int64]) -> Collection:
        """The cases at `indices`, in that order; classes and padded length stay."""

        def chosen(words: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if words is None else tuple(words[i] for i in indices)

        return replace(
            self,
            values=self.values[indices],
            ids=tuple(self.ids[i] for i in indices),
            labels=chosen(self.labels),
            groups=chosen(self.groups),
            timepoint_labels=None if self.timepoint_labels is None else self.timepoint_labels[indices],
        )

    def fingerprint(self) -> str:
        """SHA-256 over values, labels and channel names: two Collections with the same content agree."""
        digest = hashlib.sha256(repr((self.values.shape, self.channels, self.labels)).encode())
        digest.update(np.ascontiguousarray(self.values).tobytes())
        return digest.hexdigest()

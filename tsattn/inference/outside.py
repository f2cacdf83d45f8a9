"""Cases unlike those that the model was trained on: what of them can be told by counting."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard

_SLACK = 1e-6  # of a bound that the card holds in decimal


@dataclass(frozen=True, kw_only=True)
class Outside:
    """How many cases lie outside of what training saw.

    length: shorter than the shortest or longer than the longest. range: with a value below the least or
    above the greatest of its channel. missing: with a larger share of values missing than any.
    """

    length: int = 0
    range: int = 0
    missing: int = 0

    def __add__(self, other: Outside) -> Outside:
        return Outside(
            length=self.length + other.length,
            range=self.range + other.range,
            missing=self.missing + other.missing,
        )

    def as_dict(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


def count_outside(values: NDArray[np.float32], lengths: NDArray[np.int64], card: ModelCard) -> Outside:
    """Of (cases, channels, timepoints) padded with NaN; lengths: (cases,).

    What a card of an older tsattn does not say is not counted.
    """
    if not len(lengths):
        return Outside()
    shortest, _, longest = card.lengths
    gaps = np.isnan(values)
    complete = not gaps.any()
    beyond = 0
    if card.least and card.greatest:
        least, greatest = np.array(card.least, np.float32), np.array(card.greatest, np.float32)
        slack = _SLACK * np.maximum(np.abs(least), np.abs(greatest))
        far = values < (least - slack)[:, None]
        far |= values > (greatest + slack)[:, None]  # NaN compares as inside
        beyond = int(far.reshape(len(values), -1).any(axis=1).sum())
    lacking = 0
    if card.missing is not None and not complete:
        cells = values.shape[1] * np.maximum(lengths, 1)
        padding = values.shape[1] * (values.shape[2] - lengths)
        share = (gaps.sum(axis=(1, 2)) - padding) / cells
        share[lengths == 0] = 1.0
        lacking = int((share > card.missing + _SLACK).sum())
    return Outside(
        length=int(((lengths < shortest) | (lengths > longest)).sum()), range=beyond, missing=lacking
    )

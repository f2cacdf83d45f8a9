"""Cases of a Collection put through a predictor: channels as in training, batches of similar length."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.inference.predictor import Predictor

_NUMBERED = re.compile(r"dim_\d+")
_log = logging.getLogger(__name__)


def predict_all(predictor: Predictor, collection: Collection, batch_size: int = 64) -> NDArray[np.float32]:
    """(cases, classes) probabilities in the order of the cases."""
    result = np.empty((len(collection), len(predictor.card.classes)), dtype=np.float32)
    for batch, values in batches(collection, batch_size):
        result[batch] = predictor.probabilities(values)
    return result


def batches(
    collection: Collection, batch_size: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Places of some cases, and their values (cases, channels, timepoints), shortest cases first.

    Batches hold cases of similar length and are cut to their longest: padding changes no answer,
    and on sets of unequal length it would be most of the work.
    """
    lengths = collection.lengths
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        longest = max(int(lengths[batch[-1]]), 1)
        yield batch, np.ascontiguousarray(collection.values[batch, :, :longest])


def match_channels(collection: Collection, card: ModelCard) -> Collection:
    """The cases with their channels in the order in which the model was trained.

    Channels of these names are taken by name, whatever stands beside them, with a remark that says what
    is left out; other names are taken in the order they come, with a remark. InputError if their number
    is another.
    """
    have, want = collection.channels, card.channels
    if have == want:
        return collection
    # Files without channel names number them: there, more channels are other data.
    named = not all(_NUMBERED.fullmatch(name) for name in want)
    if set(want) <= set(have) and len(set(have)) == len(have) and (named or len(have) == len(want)):
        if left := tuple(name for name in have if name not in want):
            _log.warning("Channels that the model was not trained on are not used: %s.", _named(left))
        places = [have.index(name) for name in want]
        return replace(collection, values=np.ascontiguousarray(collection.values[:, places]), channels=want)
    if len(have) != len(want):
        raise InputError(
            f"The data have {len(have)} channels ({_named(have)}); the model was trained on {len(want)} "
            f"({_named(want)}). Give the data that the model was made for."
        )
    _log.warning(
        "The channels (%s) are not called as in training (%s); they are taken in the order they stand in.",
        _named(have),
        _named(want),
    )
    return collection


def _named(channels: tuple[str, ...]) -> str:
    return ", ".join(channels[:6]) + (", …" if len(channels) > 6 else "")

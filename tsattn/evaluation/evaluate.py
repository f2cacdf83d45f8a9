"""A predictor and a labelled Collection in, a Report out."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.data.collection import Collection
from tsattn.data.preparation import Preparation, mean_by_recording, prepare_cases, with_labels_of_recordings
from tsattn.errors import InputError
from tsattn.evaluation.metrics import Report, report
from tsattn.inference.predictor import Predictor

_NUMBERED = re.compile(r"dim_\d+")
_log = logging.getLogger(__name__)


def evaluate(
    predictor: Predictor,
    collection: Collection,
    batch_size: int = 64,
    *,
    majority: str | None = None,
    per: Literal["recording", "window"] = "recording",
) -> Report:
    """Judges `predictor` on every case of `collection`.

    per: where the model was trained on windows, a case is a recording (the mean of its windows) or
    a window of it. Where the label changes within a recording it is a window, and a remark says so.
    majority: the most frequent class of the training cases, where known (see `report`).
    InputError if the cases have no labels, labels the model does not know, or another number of
    channels than the model.
    """
    if collection.labels is None and collection.timepoint_labels is None:
        raise InputError(
            "The cases have no labels to judge by. Name the column that holds them with --label."
        )
    how = Preparation.from_dict(predictor.card.preparation)
    if per == "recording" and collection.labels is None:
        collection = with_labels_of_recordings(collection)
        if collection.labels is None:
            _log.warning(
                "Not every recording has one label from beginning to end: "
                "each window is judged by its own, as with --per window."
            )
    cut = prepare_cases(match_channels(collection, predictor.card), how)
    probabilities, labels = predict_all(predictor, cut.cases, batch_size), cut.cases.labels
    if per == "recording" and collection.labels is not None:
        probabilities = mean_by_recording(probabilities, cut.recording, len(collection))
        labels = collection.labels
    assert labels is not None
    return report(probabilities, labels, predictor.card.classes, majority)


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

"""A predictor and a labelled Collection in, a Report out."""

from __future__ import annotations

import logging
from typing import Literal

from tsattn.data.collection import Collection
from tsattn.data.preparation import Preparation, mean_by_recording, prepare_cases, with_labels_of_recordings
from tsattn.errors import InputError
from tsattn.evaluation.metrics import Report, report
from tsattn.inference.cases import match_channels, predict_all
from tsattn.inference.predictor import Predictor

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

"""Batches, order and channels, with a predictor that tells what it was given."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.errors import InputError
from tsattn.evaluation.evaluate import evaluate
from tsattn.inference.cases import match_channels, predict_all


@pytest.fixture(scope="module")
def vowels() -> Collection:
    return load_split("JapaneseVowels", "test", TableOptions()).collection


def card_for(collection: Collection) -> ModelCard:
    return ModelCard(
        classes=collection.classes,
        channels=collection.channels,
        attention="softmax",
        tokens="linear",
        preset="base",
        lengths=(7, 15, 29),
        mean=(0.0,) * len(collection.channels),
        std=(1.0,) * len(collection.channels),
        source="JapaneseVowels",
        protocol="none",
        fingerprint="",
    )


class MeanPredictor:
    """Softmax of a fixed projection of each channel's mean over what is observed; keeps its batches."""

    provider = "numpy"

    def __init__(self, card: ModelCard) -> None:
        self.card = card
        self.shapes: list[tuple[int, ...]] = []
        self._weights = np.random.default_rng(0).normal(size=(len(card.channels), len(card.classes)))

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        self.shapes.append(values.shape)
        seen = ~np.isnan(values)
        mean = np.where(seen, values, 0).sum(axis=2) / np.maximum(seen.sum(axis=2), 1)
        scores = np.exp(3 * mean @ self._weights)
        result: NDArray[np.float32] = (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
        return result


def test_answers_keep_the_order_and_batches_are_cut(vowels: Collection) -> None:
    predictor = MeanPredictor(card_for(vowels))
    found = predict_all(predictor, vowels, batch_size=64)
    whole = MeanPredictor(predictor.card).probabilities(vowels.values)
    np.testing.assert_allclose(found, whole, rtol=1e-5)
    assert [shape[0] for shape in predictor.shapes] == [64, 64, 64, 64, 64, 50]
    lengths = [shape[2] for shape in predictor.shapes]
    assert lengths == sorted(lengths)
    assert lengths[-1] == vowels.lengths.max()
    given = sum(cases * length for cases, _, length in predictor.shapes)
    assert given < 0.65 * len(vowels) * vowels.lengths.max()


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_the_batch_size_changes_no_figure(vowels: Collection, batch_size: int) -> None:
    some = vowels.take(np.arange(0, 370, 10))
    predictor = MeanPredictor(card_for(some))
    found = evaluate(predictor, some, batch_size)
    assert found.confusion == evaluate(predictor, some).confusion
    assert found.log_loss == pytest.approx(evaluate(predictor, some).log_loss, rel=1e-5)


def test_a_case_in_which_nothing_is_observed_is_judged_too(vowels: Collection) -> None:
    values = vowels.values[:3].copy()
    values[1] = np.nan
    some = dataclasses.replace(vowels.take(np.arange(3)), values=values)
    predictor = MeanPredictor(card_for(some))
    assert evaluate(predictor, some, batch_size=1).cases == 3
    assert predictor.shapes[0] == (1, 12, 1)


def test_cases_without_labels_are_refused(vowels: Collection) -> None:
    bare = dataclasses.replace(vowels, labels=None, classes=())
    with pytest.raises(InputError, match="no labels"):
        evaluate(MeanPredictor(card_for(vowels)), bare)


def test_another_number_of_channels_is_refused(vowels: Collection) -> None:
    some = dataclasses.replace(vowels, values=vowels.values[:, :3], channels=vowels.channels[:3])
    with pytest.raises(InputError, match=r"have 3 channels .* trained on 12"):
        evaluate(MeanPredictor(card_for(vowels)), some)


def test_channels_in_another_order_are_put_in_order(vowels: Collection) -> None:
    turned = dataclasses.replace(vowels, values=vowels.values[:, ::-1], channels=vowels.channels[::-1])
    matched = match_channels(turned, card_for(vowels))
    assert matched.channels == vowels.channels
    np.testing.assert_array_equal(matched.values, vowels.values)


def test_other_names_are_taken_in_order_and_said(
    vowels: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    renamed = dataclasses.replace(vowels, channels=tuple(f"sensor {i}" for i in range(12)))
    with caplog.at_level(logging.WARNING, logger="tsattn"):
        matched = match_channels(renamed, card_for(vowels))
    assert matched is renamed
    assert "taken in the order" in caplog.text

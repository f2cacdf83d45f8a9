"""Heads looked at from outside: what is heard is what was computed, and figures keep their definitions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.config import ModelConfig, RunConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.errors import InputError
from tsattn.evaluation import heads
from tsattn.evaluation.heads import as_trained, heads_of_case
from tsattn.evaluation.redundancy import HeadSums, redundancy
from tsattn.inference.cases import predict_all
from tsattn.models.attention import Mechanism
from tsattn.models.classifier import TransformerClassifier
from tsattn.models.layers import Block
from tsattn.runs import Run, TorchPredictor

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def vowels() -> Collection:
    """Some cases of lengths 7 to 29, with a gap and a case in which nothing is observed."""
    some = load_split("JapaneseVowels", "test", TableOptions()).collection.take(np.arange(0, 370, 15))
    values = some.values.copy()
    values[2, :, 3:6] = np.nan
    values[4] = np.nan
    return dataclasses.replace(some, values=values)


def run_of(cases: Collection, attention: str = "bn+sh", tokens: str = "linear", count: int = 4) -> Run:
    """A run that was never trained."""
    torch.manual_seed(0)
    model = ModelConfig(
        channels=len(cases.channels),
        classes=len(cases.classes),
        attention=attention,
        tokens=tokens,
        width=16,
        heads=count,
        layers=2,
    )
    card = ModelCard(
        classes=cases.classes,
        channels=cases.channels,
        attention=attention,
        tokens=tokens,
        preset="base",
        lengths=(7, 15, 29),
        mean=(0.0,) * len(cases.channels),
        std=(1.0,) * len(cases.channels),
        source="JapaneseVowels",
        protocol="none",
        fingerprint="",
    )
    config = RunConfig(
        source=card.source,
        preset="base",
        device="cpu",
        threads=1,
        model=model,
        training=TrainingConfig(epochs=1, batch_size=16),
    )
    return Run(path=Path("run"), config=config, card=card, model=TransformerClassifier(model).eval())


def one(cases: Collection, place: int) -> Collection:
    return cases.take(np.array([place]))


def transcribed(outputs: Array) -> tuple[float, float, float]:
    """The three figures of (tokens, H, D), by their definitions and with loops."""
    tokens, count, _ = outputs.shape
    pairs = [(g, h) for g in range(count) for h in range(g)]
    distance = np.mean([np.linalg.norm(outputs[:, g] - outputs[:, h], axis=1).mean() for g, h in pairs])
    norm = np.mean([np.linalg.norm(outputs[:, h], axis=1).mean() for h in range(count)])
    centring = np.eye(tokens) - 1 / tokens

    def alignment(g: int, h: int) -> float:  # Hilbert-Schmidt independence of two linear kernels
        return float(
            np.trace(outputs[:, g] @ outputs[:, g].T @ centring @ outputs[:, h] @ outputs[:, h].T @ centring)
        )

    cka = np.mean([alignment(g, h) / np.sqrt(alignment(g, g) * alignment(h, h)) for g, h in pairs])
    return float(distance), float(distance / norm), float(cka)


@pytest.mark.parametrize("attention", ["softmax", "bn+sh", "local:4", "flow"])
@pytest.mark.parametrize("tokens", ["linear", "patch:4,2"])
def test_redundancy_is_its_definition(vowels: Collection, attention: str, tokens: str) -> None:
    """Cases each by itself, without padding, in float64, against batches with padding and running sums."""
    run = run_of(vowels, attention, tokens)
    found = redundancy(run, vowels, batch_size=4)
    alone = [heads_of_case(run, one(vowels, place)) for place in range(len(vowels)) if place != 4]
    for layer, figures in enumerate(found):
        outputs = [case.outputs[layer][:, case.observed].transpose(1, 0, 2) for case in alone]
        expected = transcribed(np.concatenate(outputs).astype(np.float64))
        assert (figures.distance, figures.relative_distance, figures.cka) == pytest.approx(expected, rel=1e-5)
        assert figures.layer == layer
        assert figures.tokens == sum(len(part) for part in outputs)


def test_padding_and_the_size_of_a_batch_change_nothing(vowels: Collection) -> None:
    run = run_of(vowels)
    padding = np.full((*vowels.values.shape[:2], 40), np.nan, np.float32)
    longer = dataclasses.replace(vowels, values=np.concatenate([vowels.values, padding], axis=2))
    expected = redundancy(run, vowels)
    for found in (redundancy(run, longer), redundancy(run, vowels, batch_size=1)):
        for ours, theirs in zip(found, expected, strict=True):
            assert dataclasses.astuple(ours) == pytest.approx(dataclasses.astuple(theirs), rel=1e-5)


def figures_of(outputs: Array, pieces: int = 1) -> tuple[float, float, float | None]:
    sums = HeadSums(*outputs.shape[1:])
    for part in np.array_split(outputs, pieces):
        sums.add(torch.from_numpy(part))
    found = sums.result(0)
    return found.distance, found.relative_distance, found.cka


def test_heads_that_are_the_same_and_heads_that_have_nothing_in_common() -> None:
    generator = np.random.default_rng(0)
    head = generator.normal(size=(400, 1, 8)) + 3
    assert figures_of(np.repeat(head, 4, axis=1)) == pytest.approx((0, 0, 1))
    turned = np.concatenate([head, 5 * head @ np.linalg.qr(generator.normal(size=(8, 8)))[0] - 7], axis=1)
    distance, _, cka = figures_of(turned)
    assert distance > 1
    assert cka == pytest.approx(1)
    strangers = generator.normal(size=(20_000, 4, 8))
    assert figures_of(strangers)[2] == pytest.approx(8 / 20_000, rel=0.3)  # D / n, as is documented
    axes = np.eye(4)[None].repeat(5, axis=0)  # at every token each head gives its own axis
    distance, relative, cka_of_none = figures_of(axes)
    assert (distance, relative) == pytest.approx((np.sqrt(2), np.sqrt(2)))
    assert cka_of_none is None


def test_running_sums_keep_their_digits_far_from_zero() -> None:
    outputs = np.random.default_rng(0).normal(size=(300, 3, 4)) + 1e4
    expected = transcribed(outputs - outputs.mean(axis=0))[2]
    assert figures_of(outputs, pieces=7)[2] == pytest.approx(expected, rel=1e-9)


def test_a_head_that_gives_the_same_at_every_token_has_no_cka() -> None:
    outputs = np.random.default_rng(0).normal(size=(50, 3, 4))
    two = figures_of(outputs[:, :2])[2]
    outputs[:, 2] = 1 / 3
    assert figures_of(outputs, pieces=3)[2] == pytest.approx(two, rel=1e-12)
    outputs[:, 2] *= 1 + 1e-7 * np.sign(outputs[:, 0])  # as float32 rounds what should be the same
    assert figures_of(outputs, pieces=3)[2] == pytest.approx(two, rel=1e-12)


def test_heads_that_give_nothing_differ_by_nothing() -> None:
    assert figures_of(np.zeros((5, 2, 4))) == (0, 0, None)


def test_what_cannot_be_compared_is_refused(vowels: Collection) -> None:
    with pytest.raises(InputError, match="one head each"):
        redundancy(run_of(vowels, "softmax", count=1), vowels)
    with pytest.raises(InputError, match="Nothing is observed"):
        redundancy(run_of(vowels), one(vowels, 4))
    with pytest.raises(InputError, match=f"case '{vowels.ids[4]}': nothing is observed in it"):
        heads_of_case(run_of(vowels), one(vowels, 4))


@pytest.mark.parametrize("attention", ["bn+sh", "linear+twice", "flow", "strided:5+conv"])
@pytest.mark.parametrize("tokens", ["multiscale", "patch:4"])
def test_weights_of_a_case_are_those_behind_its_outputs(
    vowels: Collection, attention: str, tokens: str
) -> None:
    run = run_of(vowels, attention, tokens)
    values: list[NDArray[np.float32]] = []

    def keep(mechanism: Mechanism, given: tuple[torch.Tensor, ...], outputs: torch.Tensor) -> None:
        values.append(given[2][0].numpy())

    for block in run.single().blocks:
        assert isinstance(block, Block)
        block.attention.mechanism.register_forward_hook(keep)
    found = heads_of_case(run, one(vowels, 2), weights=True)
    assert len(found.weights) == len(found.outputs) == len(values) == 2
    for weights, outputs, v in zip(found.weights, found.outputs, values, strict=True):
        np.testing.assert_allclose(weights @ v, outputs, rtol=0, atol=1e-5)
        assert not weights[:, :, ~found.observed].any()
    stride = 4 if tokens == "patch:4" else 1
    assert found.starts.tolist() == list(range(0, int(vowels.lengths[2]), stride))


def test_listening_leaves_the_model_as_it_was(vowels: Collection) -> None:
    run = run_of(vowels)
    predictor = TorchPredictor(run, torch.device("cpu"))
    before = predict_all(predictor, vowels)
    redundancy(run, vowels)
    assert not any(module._forward_hooks for module in run.model.modules())
    np.testing.assert_array_equal(predict_all(predictor, vowels), before)


def test_cases_are_prepared_as_in_training(vowels: Collection) -> None:
    run = run_of(vowels)
    cut = dataclasses.replace(run, card=dataclasses.replace(run.card, preparation={"window": 5, "stride": 5}))
    assert as_trained(cut, one(vowels, 0)).values.shape[2] == 5
    (layer, _) = redundancy(cut, one(vowels, 0))
    windows = as_trained(cut, one(vowels, 0))
    assert layer.tokens == windows.observed.sum() > vowels.lengths[0]


def test_weights_that_would_not_fit_are_refused_before_they_are_computed(
    vowels: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "MOST_MEMORY", 2**13)
    length = int(vowels.lengths[0])
    with pytest.raises(InputError) as error:
        heads_of_case(run_of(vowels), one(vowels, 0), weights=True)
    assert f"4 heads × {length} × {length} tokens" in str(error.value)
    assert "at most 16 tokens, or train with --tokens patch:2" in str(error.value)
    heads_of_case(run_of(vowels, tokens="patch:2"), one(vowels, 0), weights=True)
    heads_of_case(run_of(vowels), one(vowels, 0))

"""The loop learns, repeats itself, chooses the right epoch and stops when the loss is no number."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from tsattn.config import ModelConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.errors import CheckFailed
from tsattn.models.classifier import TransformerClassifier
from tsattn.training import resident
from tsattn.training.loop import Fit, fit, measure
from tsattn.training.progress import Epoch
from tsattn.training.resident import ResidentCases, StreamedCases, placed

CPU = torch.device("cpu")
CLASSES = ("down", "up")
QUICK = TrainingConfig(epochs=6, batch_size=8, learning_rate=3e-3)


def slopes(count: int = 33, seed: int = 0) -> Collection:
    """Noisy lines of several lengths that rise or fall; the last case has a gap."""
    generator = np.random.default_rng(seed)
    values = np.full((count, 1, 20), np.nan, np.float32)
    labels = []
    for case in range(count):
        length, sign = 12 + case % 9, 1 if case % 2 else -1
        values[case, 0, :length] = sign * np.linspace(-1, 1, length) + 0.1 * generator.normal(size=length)
        labels.append(CLASSES[case % 2])
    values[-1, 0, 3:5] = np.nan
    return Collection(
        values=values,
        ids=tuple(map(str, range(count))),
        channels=("x",),
        labels=tuple(labels),
        classes=CLASSES,
    )


def trained(
    config: TrainingConfig = QUICK, held_out: Collection | None = None
) -> tuple[TransformerClassifier, Fit, list[Epoch]]:
    torch.manual_seed(config.seed)
    model = TransformerClassifier(ModelConfig(channels=1, classes=2, width=16, heads=2, layers=1))
    watched: list[Epoch] = []
    validation = None if held_out is None else ResidentCases(held_out, CLASSES, CPU)
    result = fit(model, ResidentCases(slopes(), CLASSES, CPU), validation, config, watched.append)
    return model, result, watched


def test_it_learns() -> None:
    model, result, watched = trained()
    assert watched == result.history
    assert [epoch.epoch for epoch in watched] == [1, 2, 3, 4, 5, 6]
    assert measure(model, ResidentCases(slopes(seed=1), CLASSES, CPU))[1] > 0.95
    assert watched[-1].train_loss < watched[0].train_loss
    assert not model.training


def test_same_seed_same_weights() -> None:
    one, other, third = trained()[0], trained()[0], trained(dataclasses.replace(QUICK, seed=1))[0]
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    assert any(not torch.equal(v, third.state_dict()[k]) for k, v in one.state_dict().items())


def test_the_best_epoch_on_held_out_cases_is_kept() -> None:
    held_out = slopes(seed=2)
    model, result, _ = trained(held_out=held_out)
    cases = ResidentCases(held_out, CLASSES, CPU)
    accuracies = [epoch.validation_accuracy or 0.0 for epoch in result.history]
    assert result.chosen.validation_accuracy == max(accuracies)
    loss, accuracy = measure(model, cases)
    assert accuracy == pytest.approx(result.chosen.validation_accuracy)
    assert loss == pytest.approx(result.chosen.validation_loss, abs=1e-6)


def test_patience_ends_a_training_that_no_longer_improves() -> None:
    patient = dataclasses.replace(QUICK, epochs=60, patience=3)
    _, result, _ = trained(patient, held_out=slopes(seed=2))
    assert len(result.history) < 60
    assert result.history[-1].epoch - result.chosen.epoch == 3


def test_a_loss_that_is_no_number_stops_with_advice() -> None:
    with pytest.raises(CheckFailed, match=r"the training loss was (nan|inf) in epoch 1.*Try a lower rate"):
        trained(dataclasses.replace(QUICK, learning_rate=1e30, warm_up=0.0))


def test_batches_are_cut_to_their_longest_case_and_say_when_they_need_no_mask() -> None:
    collection = slopes()
    cases = ResidentCases(collection, CLASSES, CPU)
    values, targets, complete, without_nan = cases.batch(np.array([0, 9, 18, 27]))  # all of 12 timepoints
    assert values.shape == (4, 1, 12)
    assert complete
    assert without_nan
    assert targets.tolist() == [0, 1, 0, 1]
    assert not cases.batch(np.array([0, 1]))[2]  # 12 and 13 timepoints
    assert not cases.batch(np.array([32]))[2]  # one length, but a gap
    assert sorted(cases.order(np.random.default_rng(0))) == list(range(len(collection)))


def test_a_last_batch_of_one_is_no_trouble() -> None:
    _, result, _ = trained(dataclasses.replace(QUICK, batch_size=32, epochs=2))  # 33 cases
    assert np.isfinite(result.history[-1].train_loss)


def test_cases_that_stay_on_the_host_train_the_same() -> None:
    model = trained()[0]
    torch.manual_seed(QUICK.seed)
    streamed = TransformerClassifier(ModelConfig(channels=1, classes=2, width=16, heads=2, layers=1))
    fit(streamed, StreamedCases(slopes(), CLASSES, CPU), None, QUICK, lambda _: None)
    for name, value in model.state_dict().items():
        assert torch.equal(value, streamed.state_dict()[name]), name


@pytest.mark.parametrize(("times", "streams"), [(1.9, True), (2.1, False)])
def test_cases_stay_on_the_host_where_they_take_half_the_device(
    times: float, streams: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cases, meta = slopes(), torch.device("meta")
    monkeypatch.setattr(resident, "free_bytes", lambda device: int(times * cases.values.nbytes))
    found = placed(cases, CLASSES, meta)
    assert isinstance(found, StreamedCases) == streams
    assert found.values.device == (CPU if streams else meta)
    batch = found.batch(np.array([0, 3, 32]))
    assert batch.values.shape == (3, 1, 17)
    assert batch.values.device == batch.targets.device == meta
    assert ("stay in main memory" in caplog.text) == streams
    monkeypatch.setattr(resident, "free_bytes", lambda device: 0)
    assert type(placed(cases, CLASSES, CPU)) is ResidentCases  # in main memory they are anyway

"""The rules by which a recipe fits itself to the data, and who overrides whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tsattn.config import TrainingConfig
from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.presets.reading import load_preset, preset_names
from tsattn.training.plan import plan


def cases(count: int, classes: int = 2) -> Collection:
    labels = tuple(str(case % classes) for case in range(count))
    return Collection(
        values=np.zeros((count, 3, 5), np.float32),
        ids=tuple(map(str, range(count))),
        channels=("a", "b", "c"),
        labels=labels,
        classes=tuple(sorted(set(labels))),
    )


def training(count: int, classes: int = 2, preset: str = "base", **asked: Any) -> TrainingConfig:
    return plan(cases(count, classes), preset, asked)[1]


@pytest.mark.parametrize(
    ("count", "batch_size", "epochs", "validation"),
    [
        (12, 16, 600, 0.0),  # one step an epoch: at least 600 steps
        (160, 16, 60, 0.0),
        (270, 16, 60, 0.0),
        (600, 16, 60, 0.2),  # a validation part of 120
        (2400, 32, 60, 0.2),
        (50_000, 64, 12, 0.2),  # at most 8,000 steps
    ],
)
def test_rules(count: int, batch_size: int, epochs: int, validation: float) -> None:
    planned = training(count)
    assert (planned.batch_size, planned.epochs, planned.validation) == (batch_size, epochs, validation)


def test_many_classes_keep_all_of_train() -> None:
    assert training(600, classes=100).validation == 0.0


def test_few_groups_keep_all_of_train() -> None:
    many = cases(600)
    assert plan(many, "base", {}, [str(i % 9) for i in range(600)])[1].validation == 0.0
    assert plan(many, "base", {}, [str(i % 10) for i in range(600)])[1].validation == 0.2


def test_what_is_asked_wins_over_preset_and_rules() -> None:
    assert training(270, preset="fast").epochs == 20
    asked = training(270, preset="fast", epochs=3, batch_size=5, learning_rate=0.5, validation=0.1)
    assert (asked.epochs, asked.batch_size, asked.learning_rate, asked.validation) == (3, 5, 0.5, 0.1)
    assert training(270, epochs=None).epochs == 60


def test_the_model_takes_channels_and_classes_from_the_data() -> None:
    model, _ = plan(cases(30, classes=4), "base", {"width": 32, "attention": "linear"})
    assert (model.channels, model.classes, model.width, model.attention) == (3, 4, 32, "linear")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_says_what_it_is(name: str) -> None:
    assert load_preset(name).summary


def test_unknown_preset() -> None:
    with pytest.raises(
        InputError, match=r"preset 'bass': there is none. Did you mean 'base'\? There are: base"
    ):
        load_preset("bass")


@pytest.mark.parametrize("rate", [float("inf"), float("nan"), -0.1])
def test_a_learning_rate_that_is_none(rate: float) -> None:
    with pytest.raises(InputError, match=r"--lr .*: a learning rate is a finite number"):
        training(12, learning_rate=rate)

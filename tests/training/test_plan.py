"""The rules by which a recipe fits itself to the data, and who overrides whom."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tsattn.config import TrainingConfig
from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.presets.reading import load_preset, preset_names
from tsattn.training import rules
from tsattn.training.plan import plan


def cases(count: int, classes: int = 2, length: int = 5) -> Collection:
    labels = tuple(str(case % classes) for case in range(count))
    return Collection(
        values=np.zeros((count, 3, length), np.float32),
        ids=tuple(map(str, range(count))),
        channels=("a", "b", "c"),
        labels=labels,
        classes=tuple(sorted(set(labels))),
    )


def silent(folder: Path) -> Path:
    """A preset that says nothing, so that rules and defaults decide all."""
    path = folder / "silent.yaml"
    path.write_text("summary: nothing\n")
    return path


def training(count: int, classes: int = 2, preset: str = "base", **asked: Any) -> TrainingConfig:
    return plan(cases(count, classes), preset, asked).training


@pytest.mark.parametrize(
    ("count", "batch_size", "epochs", "validation"),
    [
        (12, 16, 1500, 0.0),  # one step an epoch: at least 1,500 steps
        (160, 16, 150, 0.0),
        (270, 16, 89, 0.0),
        (600, 16, 60, 0.2),  # a validation part of 120
        (2400, 32, 60, 0.2),
        (50_000, 64, 32, 0.2),  # 40,000 cases of 5 timepoints, 6.25 tokens: at most 8 million tokens
        (2_000_000, 64, 3, 0.2),  # and never less than three epochs
    ],
)
def test_rules(count: int, batch_size: int, epochs: int, validation: float, tmp_path: Path) -> None:
    planned = training(count, preset=str(silent(tmp_path)))
    assert (planned.batch_size, planned.epochs, planned.validation) == (batch_size, epochs, validation)


@pytest.mark.parametrize(
    ("length", "asked", "tokens"),
    [
        (512, {}, "multiscale"),
        (513, {}, "multiscale:2"),
        (17_984, {}, "multiscale:64"),
        (17_984, {"tokens": "hydra:8"}, "hydra:8"),
        (17_984, {"tokens": "conv"}, "conv"),
        (100, {"preset": "fast"}, "multiscale"),
        (200, {"preset": "fast"}, "multiscale:2"),
    ],
)
def test_long_series_are_made_into_fewer_tokens(length: int, asked: dict[str, str], tokens: str) -> None:
    preset = asked.get("preset", "base")
    planned = plan(cases(20, length=length), preset, {"tokens": asked.get("tokens")})
    assert planned.model.tokens == tokens
    assert ("tokens" in planned.rules) == ((length > 512 and "tokens" not in asked) or length == 200)


def test_what_the_data_decided_is_said() -> None:
    planned = plan(cases(20, length=1000), "base", {})
    assert planned.rules == {
        "normalise": "set: every case has the scale of all",
        "dilations": "7: up to 64, 1,000 timepoints",
        "tokens": "multiscale:2: 500 tokens of 1,000 timepoints, at most 512 are made",
        "batch_size": "16: 20 cases, fewer than 1,000",
        "epochs": "533: 20 cases count 750 tokens each, and 8,000,000 are about the most in all",
    }
    asked = {"epochs": 7, "batch_size": 5, "convolutions": 0, "normalise": "both"}
    assert plan(cases(20), "base", asked).rules == {}


def test_a_preset_sets_the_bounds(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("preset: base\nrules: {passes: 5, fewest_steps: 10, tokens_a_case: 8}\n")
    planned = plan(cases(100, length=30), str(mine), {})
    assert (planned.training.epochs, planned.model.tokens) == (5, "multiscale:4")


def test_many_classes_keep_all_of_train() -> None:
    assert training(600, classes=100).validation == 0.0


def test_few_groups_keep_all_of_train(tmp_path: Path) -> None:
    many, preset = cases(600), str(silent(tmp_path))
    assert plan(many, preset, {}, [str(i % 9) for i in range(600)]).training.validation == 0.0
    assert plan(many, preset, {}, [str(i % 10) for i in range(600)]).training.validation == 0.2


def test_the_default_recipe_keeps_all_of_train_for_any_number_of_cases() -> None:
    assert training(2400).validation == 0.0
    assert training(2400, validation=0.1).validation == 0.1


def test_two_scales_are_shown_where_cases_differ_in_scale() -> None:
    alike = cases(20, length=100)
    values = np.random.default_rng(0).normal(size=alike.values.shape).astype(np.float32)
    values = (values - values.mean(2, keepdims=True)) / values.std(2, keepdims=True)
    alike = dataclasses.replace(alike, values=values)
    sizes = np.linspace(0.5, 2, 20, dtype=np.float32)[:, None, None]
    differing = dataclasses.replace(alike, values=values * sizes)
    assert plan(alike, "base", {}).model.normalise == "set"
    assert plan(alike, "base", {"normalise": "both"}).model.normalise == "both"
    assert plan(differing, "base", {}).model.normalise == "both"
    shifted = dataclasses.replace(alike, values=values + sizes)
    assert plan(shifted, "base", {}).model.normalise == "both"


@pytest.mark.parametrize(
    ("length", "dilations"), [(1, 1), (9, 1), (16, 1), (17, 2), (33, 3), (1000, 7), (10**6, 12)]
)
def test_dilations_fit_into_the_longest_series(length: int, dilations: int) -> None:
    assert rules.dilations(length).value == dilations


def test_what_is_asked_wins_over_preset_and_rules() -> None:
    assert training(270, preset="fast").learning_rate == 0.002
    asked = training(270, preset="fast", epochs=3, batch_size=5, learning_rate=0.5, validation=0.1)
    assert (asked.epochs, asked.batch_size, asked.learning_rate, asked.validation) == (3, 5, 0.5, 0.1)
    assert training(270, epochs=None).epochs == 89


def test_the_model_takes_channels_and_classes_from_the_data() -> None:
    model = plan(cases(30, classes=4), "base", {"width": 32, "attention": "linear"}).model
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

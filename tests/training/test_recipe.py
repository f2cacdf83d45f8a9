"""The parts of a recipe do what they say: optimiser, schedules, balance, averaging, pretrained weights."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tsattn.config import ModelConfig, TrainingConfig
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.errors import CheckFailed, InputError
from tsattn.models.classifier import TransformerClassifier
from tsattn.runs.files import STATE
from tsattn.training import preparing, workflow
from tsattn.training.balance import case_weights, class_weights
from tsattn.training.optimisation import Flat, learning_rate, make_optimiser
from tsattn.training.pretrained import begin_with
from tsattn.training.progress import Progress
from tsattn.training.resident import ResidentCases
from tsattn.training.state import StateFile
from tsattn.training.stepping import Training

CPU = torch.device("cpu")
SHAPE = {"width": 8, "heads": 2, "layers": 1, "tokens": "linear", "attention": "softmax"}
CONFIG = TrainingConfig(epochs=10, batch_size=16)


@pytest.fixture(scope="module")
def vowels() -> ResidentCases:
    cases = load_split("JapaneseVowels", "train", TableOptions()).collection
    return ResidentCases(cases, cases.classes, CPU)


def model(**changes: object) -> TransformerClassifier:
    torch.manual_seed(0)
    config = ModelConfig(channels=12, classes=9, **{**SHAPE, "dropout": 0.0, "normalise": "both", **changes})  # type: ignore[arg-type]
    return TransformerClassifier(config)


def prepare(out: Path, **asked: object) -> preparing.Prepared:
    return preparing.prepare(
        "JapaneseVowels",
        asked={**SHAPE, "epochs": 1, **asked},
        preset="base",
        device="cpu",
        threads=None,
        out=out,
        table=TableOptions(),
    )


def test_flat_parameters_step_as_torch_steps_each() -> None:
    one, other = model(), copy.deepcopy(model())
    values, targets = torch.randn(6, 12, 15), torch.arange(6)
    flat = Flat(one)
    optimiser = make_optimiser(flat, CONFIG)
    groups = [
        {"params": [p for p in other.parameters() if p.ndim > 1], "weight_decay": CONFIG.weight_decay},
        {"params": [p for p in other.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    plain = torch.optim.AdamW(groups, lr=CONFIG.learning_rate)
    for _ in range(3):
        flat.clear()
        nn.functional.cross_entropy(one(values), targets).backward()
        norm = flat.clip(0.5)
        optimiser.step()
        plain.zero_grad()
        nn.functional.cross_entropy(other(values), targets).backward()
        expected = nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        plain.step()
        torch.testing.assert_close(norm, expected)
    for name, value in other.state_dict().items():
        # The bias of keys has no gradient but rounding, which Adam makes as large as any other.
        if name.endswith("project_in.bias"):
            continue
        torch.testing.assert_close(one.state_dict()[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ("cosine", [0.1, 1.0, 1.0, 0.5, 0.0]),
        ("one-cycle", [0.04 + 0.96 * 0.5 * (1 - np.cos(np.pi / 10)), 1.0, 1.0, 0.50005, 1e-4]),
        ("constant", [0.1, 1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_schedules(schedule: str, factors: list[float]) -> None:
    config = dataclasses.replace(CONFIG, schedule=schedule, warm_up=0.1, learning_rate=2.0)
    rate = learning_rate(config, 100)
    assert [rate(step) / 2 for step in (0, 9, 10, 55, 100)] == pytest.approx(factors, abs=1e-9)


def test_words_that_are_none() -> None:
    with pytest.raises(
        InputError, match=r"optimiser 'adamw2': expected adamw or radam\. Did you mean 'adamw'"
    ):
        dataclasses.replace(CONFIG, optimiser="adamw2")
    with pytest.raises(InputError, match="schedule 'step': expected cosine or one-cycle or constant"):
        dataclasses.replace(CONFIG, schedule="step")
    with pytest.raises(InputError, match="class-weight 'even': expected none or balanced"):
        dataclasses.replace(CONFIG, class_weight="even")


def test_balanced_classes_count_the_same_in_all(vowels: ResidentCases) -> None:
    assert class_weights(vowels, "none") is None
    assert case_weights(vowels, "none") is None
    weights, chances = class_weights(vowels, "balanced"), case_weights(vowels, "balanced")
    assert weights is not None
    assert chances is not None
    np.testing.assert_allclose(weights.numpy() * vowels.class_counts, 30.0, rtol=1e-6)
    np.testing.assert_allclose(np.bincount(vowels.classes_of_cases, chances), 1 / 9)
    assert len(vowels.order(np.random.default_rng(0), chances)) == len(vowels)


def test_parts_of_a_batch_give_the_gradients_of_the_whole(vowels: ResidentCases) -> None:
    gradients = []
    for micro_batch in (16, 5, 1):
        training = Training(model(), vowels, CONFIG)
        training.progress.micro_batch = micro_batch
        training.step(next(training.batches()))
        gradients.append(training.flat.gradients.clone())
    for other in gradients[1:]:
        torch.testing.assert_close(other, gradients[0], rtol=1e-4, atol=1e-6)


def test_the_average_of_weights_is_what_is_judged(vowels: ResidentCases) -> None:
    training = Training(model(), vowels, dataclasses.replace(CONFIG, averaging=0.5, epochs=1))
    expected = None
    for place, batch in enumerate(training.batches()):
        training.step(batch)
        weight = training.model.head.weight.detach().clone()
        expected = weight if place == 0 else 0.5 * expected + 0.5 * weight  # type: ignore[operator]
    torch.testing.assert_close(training.judged.head.weight, expected)
    training.end_epoch(None)
    training.take_chosen()
    torch.testing.assert_close(training.model.head.weight, expected)


def test_pretrained_weights_are_taken_where_they_fit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = workflow.train(prepare(tmp_path / "first"), lambda epoch: None)
    wider = model(layers=2)
    with caplog.at_level("WARNING", logger="tsattn"):
        logging.getLogger("tsattn").propagate = True
        begin_with(wider, done.out)
    fresh, first = model(layers=2).state_dict(), model().state_dict()
    assert f"of {done.out}; new are blocks.1." in caplog.text
    assert not torch.equal(wider.state_dict()["head.weight"], fresh["head.weight"])
    assert torch.equal(
        wider.state_dict()["blocks.1.attention.project_in.weight"],
        fresh["blocks.1.attention.project_in.weight"],
    )
    assert torch.equal(wider.standardise.mean, model().standardise.mean), "statistics are the new data's"
    assert first.keys() <= wider.state_dict().keys()
    with pytest.raises(InputError, match="none of its matrices has the name and the shape"):
        begin_with(model(width=12, tokens="patch:3"), done.out)
    with pytest.raises(InputError, match="no run folder with weights"):
        prepare(tmp_path / "second", pretrained=str(tmp_path))


def test_a_run_that_diverges_keeps_what_was_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(tmp_path / "run", epochs=6, learning_rate=1e-3, schedule="constant", warm_up=0.0)
    monkeypatch.setattr(StateFile, "due", lambda state, epoch_ended: epoch_ended)  # however short they are
    ended: list[object] = []

    def spoil() -> bool:
        """Heard after every step; in the third epoch it does what a rate that is too high does."""
        if len(ended) == 2:
            with torch.no_grad():
                prepared.model.head.weight.fill_(torch.inf)
        return False

    told = r"the (training loss was nan in|weights are no numbers after) epoch 3.*--lr 0\.0003"
    with pytest.raises(CheckFailed, match=told) as error:
        workflow.train(prepared, ended.append, spoil)
    assert f"--pretrained {tmp_path / 'run'} begins with them" in str(error.value)
    saved = StateFile(tmp_path / "run" / STATE, of=prepared.config.identity).load()
    assert saved is not None
    assert Progress.from_json(saved.facts).epoch == 3  # begun after the second
    again = model()
    begin_with(again, tmp_path / "run")
    assert all(value.isfinite().all() for value in again.state_dict().values())


def test_a_run_that_diverges_at_once_leaves_nothing(tmp_path: Path) -> None:
    prepared = prepare(tmp_path / "run", learning_rate=1e30, warm_up=0.0)
    with pytest.raises(CheckFailed, match="the training loss was"):
        workflow.train(prepared, lambda epoch: None)
    assert list(tmp_path.iterdir()) == []


def test_data_that_changed_are_not_gone_on_with(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    rows = [f"{case % 2},{case},{case * 2 % 7},{case * 3 % 5}" for case in range(20)]
    table.write_text("\n".join(["kind,x_0,x_1,x_2", *rows]) + "\n")
    prepared = preparing.prepare(
        str(table),
        asked={**SHAPE, "epochs": 1},
        preset="base",
        device="cpu",
        threads=None,
        out=tmp_path / "run",
        table=TableOptions(label="kind"),
    )
    workflow.train(prepared, lambda epoch: None)
    assert preparing.prepare_again(tmp_path / "run", out=tmp_path / "again").config == prepared.config
    table.write_text(table.read_text().replace("0,0,0,0", "0,9,0,0"))
    with pytest.raises(InputError, match=r"not the cases that .* was begun with"):
        preparing.prepare_again(tmp_path / "run", out=tmp_path / "again")
    table.write_text("\n".join(["kind,x_0,x_1,x_2", *rows[:10]]) + "\n")
    with pytest.raises(InputError, match="has 10 cases, less than the run was begun with"):
        preparing.prepare_again(tmp_path / "run", out=tmp_path / "again")
    assert json.loads((tmp_path / "run" / "split.json").read_text())["train"] == list(range(20))

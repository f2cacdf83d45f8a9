"""The short training that says how much a transformer counts beside convolutions."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.splits import dealt
from tsattn.errors import Interrupted
from tsattn.models.classifier import TRUST
from tsattn.presets.reading import load_preset
from tsattn.runs import read_config, read_run
from tsattn.training import preparing, workflow
from tsattn.training.closed_form import SAYS, weigh_honestly
from tsattn.training.holdout import BY_SHARE, Holding
from tsattn.training.loop import fit as train_model
from tsattn.training.preparing import AS_THEY_ARE, Cutting
from tsattn.training.resident import ResidentCases

SMALL = {"epochs": 4, "width": 8, "heads": 2, "layers": 1, "tokens": "linear", "convolutions": 700}


def prepare(
    out: Path,
    source: str = "JapaneseVowels",
    holding: Holding = BY_SHARE,
    cutting: Cutting = AS_THEY_ARE,
    **asked: Any,
) -> preparing.Prepared:
    return preparing.prepare(
        source,
        asked={**SMALL, "attention": "softmax", **asked},
        preset="base",
        device="cpu",
        threads=1,
        out=out,
        table=TableOptions(),
        holding=holding,
        cutting=cutting,
    )


def said(cases: int, good: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities for three classes of which the first is always right."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(cases, 3, generator=generator)
    logits[:, 0] += good
    return torch.log_softmax(logits, dim=1), torch.zeros(cases, dtype=torch.long)


class TestWeighing:
    def test_it_is_the_mean_of_all_says_by_how_likely_they_make_the_classes(self) -> None:
        (own, targets), (beside, _) = said(9, 1.0), said(9, 1.0, seed=1)
        likely = [
            torch.softmax(TRUST * (say * own.double() + beside.double()), dim=1)[:, 0].prod().item()
            for say in SAYS
        ]
        expected = sum(one * say for one, say in zip(likely, SAYS, strict=True)) / sum(likely)
        assert weigh_honestly(own, beside, targets) == pytest.approx(expected, rel=1e-5)

    def test_few_cases_leave_it_near_the_middle_and_many_decide(self) -> None:
        found = {}
        for cases, good in itertools.product((2, 300), (-3.0, 3.0)):
            own, targets = said(cases, good)
            beside = torch.log_softmax(torch.randn(cases, 3), dim=1)
            found[cases, good] = weigh_honestly(own, beside, targets)
        assert found[300, -3.0] < 0.05
        assert found[300, 3.0] > 0.95
        assert 0.1 < found[2, -3.0] < 0.5 < found[2, 3.0] < 0.9


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> list[ResidentCases]:
    """What trials are trained on, as they come."""
    seen: list[ResidentCases] = []

    def fit(model: Any, train: ResidentCases, *others: Any, **more: Any) -> Any:
        seen.append(train)
        assert others[1].epochs == 1, "a quarter of four"
        return train_model(model, train, *others, **more)

    monkeypatch.setattr("tsattn.training.trial.fit", fit)
    return seen


def test_a_quarter_is_not_seen_and_says_what_the_transformer_counts(
    tmp_path: Path, trained_on: list[ResidentCases]
) -> None:
    prepared = prepare(tmp_path / "run", seed=3)
    trained = workflow.train(prepared, lambda epoch: None)
    train = load_split("JapaneseVowels", "train", TableOptions()).collection
    assert train.labels is not None
    training, held_out = dealt(train.labels, 4, seed=3)[0]
    (seen,) = trained_on
    assert len(seen) == len(training) == 270 - len(held_out)
    assert np.array_equal(seen.values.numpy(), train.take(training).values, equal_nan=True)
    assert trained.metrics["convolutions"]["cases_of_trial"] == len(held_out)
    say = trained.metrics["convolutions"]["say_of_transformer"]
    beside = read_run(tmp_path / "run").single().beside
    assert beside is not None
    assert beside.say.item() == pytest.approx(say)
    assert 0 < say < 1
    assert say not in SAYS, "a mean of candidates, not one of them"
    again = workflow.train(prepare(tmp_path / "again", seed=3), lambda epoch: None)
    assert again.metrics["convolutions"] == trained.metrics["convolutions"]


def test_windows_of_a_recording_stay_together(tmp_path: Path, trained_on: list[ResidentCases]) -> None:
    prepared = prepare(tmp_path / "run", source="GunPoint", cutting=Cutting(window=50, stride=50))
    assert prepared.groups is not None
    workflow.train(prepared, lambda epoch: None)
    (seen,) = trained_on
    values = prepared.train.values.astype(np.float32)
    known = {row.tobytes() for row in seen.values.numpy()}
    inside = np.array([row.tobytes() in known for row in values])
    groups = np.array(prepared.groups)
    assert not set(groups[inside]) & set(groups[~inside])
    assert inside.sum() == len(seen) < len(values)


def test_stopped_in_the_trial_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def stopped(*others: Any, **more: Any) -> Any:
        more["asked_to_stop"] = lambda: True
        return train_model(*others, **more)

    whole = workflow.train(prepare(tmp_path / "whole"), lambda epoch: None)
    with monkeypatch.context() as patched:
        patched.setattr("tsattn.training.trial.fit", stopped)
        with pytest.raises(Interrupted, match=r"Nothing is lost: go on with .* --resume"):
            workflow.train(prepare(tmp_path / "run"), lambda epoch: None)
    gone_on = preparing.prepare_again(tmp_path / "run", out=tmp_path / "run")
    trained = workflow.train(gone_on, lambda epoch: None)
    assert trained.metrics["convolutions"] == whole.metrics["convolutions"]
    one, other = (read_run(tmp_path / name).single().state_dict() for name in ("whole", "run"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["epochs"] == 4


def test_who_makes_no_trial(tmp_path: Path, trained_on: list[ResidentCases]) -> None:
    workflow.train(prepare(tmp_path / "alone", convolutions=0), lambda epoch: None)
    member = Holding(fold=(0, 3), together=0)  # held-out parts settle the ensemble
    workflow.train(prepare(tmp_path / "member", holding=member), lambda epoch: None)
    assert read_config(tmp_path / "member").training.trial == 0
    assert not trained_on
    assert load_preset("paper").training.get("trial") is None


def test_where_no_case_can_be_spared(tmp_path: Path) -> None:
    table = tmp_path / "x.csv"
    table.write_text("label," + ",".join(f"t{i}" for i in range(12)) + "\n", "utf-8")
    with table.open("a", encoding="utf-8") as file:
        for label in "abc":
            file.write(label + "," + ",".join(map(str, range(12))) + "\n")
    trained = workflow.train(prepare(tmp_path / "run", source=str(table)), lambda epoch: None)
    assert trained.metrics["convolutions"]["cases_of_trial"] == 0

"""Cells of several runs: judged on parts of TRAIN, where there is no TEST to be read; refit; ensembles."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss

from tsattn.card import chosen_on_test
from tsattn.data.splits import folds
from tsattn.errors import InputError, Interrupted
from tsattn.inference.cases import predict_all
from tsattn.runs import is_finished, load_predictor, read_config, read_split_places
from tsattn.sweeps import fitted, trained
from tsattn.sweeps.baselines import judge
from tsattn.sweeps.cell import Kind
from tsattn.sweeps.fitted import baseline
from tsattn.sweeps.gather import gather
from tsattn.sweeps.job import Job
from tsattn.sweeps.processes import Here
from tsattn.sweeps.trained import transformer
from tsattn.training.protocols import parse_protocol, refuse_parts_of_several

TINY = {"epochs": 2, "width": 8, "heads": 2, "layers": 1, "tokens": "linear", "batch_size": 8}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """X_TRAIN.csv of 25 cases and two classes, with no X_TEST.csv anywhere."""
    place = tmp_path_factory.mktemp("data") / "X_TRAIN.csv"
    random = np.random.default_rng(0)
    rows = [
        f"{','.join(f'{value + case % 2:.3f}' for value in random.normal(size=12))},{'ab'[case % 2]}"
        for case in range(25)
    ]
    place.write_text("\n".join([",".join([*(f"x_{t}" for t in range(12)), "label"]), *rows]) + "\n", "utf-8")
    return place


def job(data: Path, folder: Path, kind: Kind = "transformer", protocol: str = "kfold:3") -> Job:
    word = "bn" if kind == "transformer" else "1nn-dtw"
    return Job(
        folder=str(folder), lock=str(folder.parent / "lock"), data="X", source=str(data), method=word,
        kind=kind, word=word, seed=4, preset="base", protocol=protocol, device="cpu", threads=1, cores=1,
        asked=TINY, table={"label": "label"},
    )  # fmt: skip


def test_every_case_of_train_is_answered_by_a_model_that_has_not_seen_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = job(data, tmp_path / "cells" / "X" / "bn" / "seed4")
    stops = iter([False] * 17)  # a look a step, six steps a part and two of its trial: stopped in the third
    with monkeypatch.context() as patch:
        patch.setattr(trained, "bool", lambda _: next(stops, True), raising=False)
        with pytest.raises(Interrupted):
            transformer(work)
    done = [is_finished(work.place / f"fold{fold}") for fold in range(3)]
    assert done == [True, True, False]
    (tmp_path / "sweep.yaml").touch()
    with pytest.raises(InputError, match="neither cells of a sweep"):
        gather([tmp_path])  # parts of a cell that is not finished are no runs of their own
    weights = [work.place / f"fold{fold}" / "model.safetensors" for fold in (0, 1)]
    before = [place.stat().st_mtime_ns for place in weights]
    cell = transformer(work)
    assert [place.stat().st_mtime_ns for place in weights] == before
    cases = work.split("train").collection
    assert cases.labels is not None
    answers = np.zeros((25, 2))
    parts = folds(cases.labels, 3, 4)
    for fold, (training, held_out) in enumerate(parts):
        place = work.place / f"fold{fold}"
        assert read_split_places(place) == {"train": training.tolist(), "validation": held_out.tolist()}
        answers[held_out] = predict_all(load_predictor(place, "cpu"), cases.take(held_out))
    truth, guess = list(cases.labels), [cases.classes[k] for k in answers.argmax(1)]
    assert cell.metrics["accuracy"] == np.mean([a == b for a, b in zip(truth, guess, strict=True)])
    assert cell.metrics["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, guess))
    assert cell.metrics["macro_f1"] == pytest.approx(f1_score(truth, guess, average="macro"))
    assert cell.metrics["log_loss"] == pytest.approx(log_loss(truth, answers / answers.sum(1)[:, None]))
    assert (cell.folds, cell.train_cases, cell.test_cases) == (3, 25, None)
    assert cell.protocol.startswith("kfold:3: each part of 25 cases of TRAIN")
    figures = [json.loads((work.place / f"fold{fold}" / "metrics.json").read_text()) for fold in range(3)]
    assert cell.train_seconds == pytest.approx(sum(one["seconds"] for one in figures))


def test_a_baseline_has_the_same_parts(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noting(*words: object) -> object:
        seen.append((len(words[1]), words[2].ids))  # type: ignore[arg-type, attr-defined]
        return judge(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(fitted, "judge", noting)
    work = job(data, tmp_path / "seed4", "baseline")
    cell = baseline(work)
    cases = work.split("train").collection
    expected = [(len(a), cases.take(b).ids) for a, b in folds(cases.labels or (), 3, 4)]
    assert seen == expected
    assert (cell.folds, cell.test_cases, cell.metrics["log_loss"]) == (3, None, None)
    assert cell.protocol.startswith("kfold:3: ")
    assert "1nn-dtw of aeon" in cell.protocol
    assert 0.5 < (cell.metrics["accuracy"] or 0) <= 1


def test_refit_searches_beside_the_cell_and_trains_on_all_of_train(data: Path, tmp_path: Path) -> None:
    test = tmp_path / "X_TEST.csv"
    test.write_bytes(data.read_bytes())
    (tmp_path / "X_TRAIN.csv").write_bytes(data.read_bytes())
    work = job(tmp_path / "X_TRAIN.csv", tmp_path / "seed4", protocol="refit")
    cell = transformer(work)
    found = json.loads((tmp_path / "seed4-search" / "metrics.json").read_text("utf-8"))
    whole = json.loads((work.place / "metrics.json").read_text("utf-8"))
    assert cell.protocol == f"refit: all 25 cases of TRAIN, {found['epoch']} epochs as seed4-search found"
    assert read_config(work.place).training.epochs == found["epoch"] == whole["epoch"]
    assert (cell.folds, cell.train_cases, cell.test_cases) == (0, 25, 25)
    assert cell.train_seconds == pytest.approx(found["seconds"] + whole["seconds"])
    assert whole["test"]["accuracy"] == cell.metrics["accuracy"]
    for spoilt in ("", "[]", "{}"):
        (work.place / "metrics.json").write_text(spoilt, "utf-8")
        with pytest.raises(InputError, match=r"seed4/metrics\.json: not the metrics of a run"):
            transformer(work)
    (work.place / "model.safetensors").unlink()
    (work.place / "split.json").write_text("[", "utf-8")
    process = Here(work)
    while (status := process.status()) is None:
        time.sleep(0.05)
    process.close(well=False)
    assert status == 1
    assert "split.json: not the split of a run" in process.said()
    assert process.said().endswith(f"In a sweep: delete {work.place} and type the sweep again.")


def test_an_ensemble_is_one_cell(data: Path, tmp_path: Path) -> None:
    (tmp_path / "X_TEST.csv").write_bytes(data.read_bytes())
    (tmp_path / "X_TRAIN.csv").write_bytes(data.read_bytes())
    mine = tmp_path / "mine.yaml"
    mine.write_text("ensemble: {members: 2, member_tokens: 'linear, conv'}\n", "utf-8")
    plain = job(tmp_path / "X_TRAIN.csv", tmp_path / "seed4", protocol="last")
    asked = {name: value for name, value in TINY.items() if name != "tokens"}
    work = replace(plain, preset=str(mine), asked=asked)
    cell = transformer(work)
    places = [work.place / "seed8", work.place / "seed9"]  # of seed 4 of two members
    configs = [read_config(place) for place in places]
    assert [(one.model.tokens, one.training.seed) for one in configs] == [("linear", 8), ("conv", 9)]
    figures = [json.loads((place / "metrics.json").read_text("utf-8")) for place in places]
    assert cell.parameters == sum(one["parameters"] for one in figures)
    assert cell.train_seconds == pytest.approx(sum(one["seconds"] for one in figures))
    assert cell.protocol.startswith("ensemble of 2, each: last")
    test = work.split("test").collection
    each = [predict_all(load_predictor(place, "cpu"), test) for place in places]
    right = np.mean([test.classes[k] for k in (each[0] + each[1]).argmax(1)] == np.array(test.labels))
    assert cell.metrics["accuracy"] == right
    written = [(place / "model.safetensors").stat().st_mtime_ns for place in places]
    assert transformer(work).metrics == cell.metrics
    assert [(place / "model.safetensors").stat().st_mtime_ns for place in places] == written
    mine.write_text("ensemble: {members: 2, parts: 2}\n", "utf-8")
    tiny = {**TINY, "epochs": 1, "convolutions": 0}
    for protocol, settled in (("best-on-test", False), ("auto", True)):
        at = tmp_path / protocol / "seed4"
        cell = transformer(replace(work, protocol=protocol, folder=str(at), asked=tiny))
        assert chosen_on_test(cell.protocol) == (protocol == "best-on-test"), cell.protocol
        assert ("settled" in json.loads((at / "members.json").read_text("utf-8"))) == settled
    with pytest.raises(InputError, match=r"judges single models, and preset .* makes one of"):
        refuse_parts_of_several(parse_protocol("kfold:3"), str(mine))

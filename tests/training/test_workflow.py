"""From a source to a run folder: what is computed from TRAIN, what is written, and that TEST stays unread."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.write_tables import write_wide_csv
from tsattn.errors import CheckFailed, InputError
from tsattn.models.devices import resolve_device
from tsattn.runs import begin_run, load_predictor, read_run, record_test
from tsattn.training import preparing, workflow
from tsattn.training.holdout import Holding

SMALL = {"epochs": 1, "width": 16, "heads": 2, "layers": 1}


def prepare(source: str, out: Path | None, **asked: Any) -> preparing.Prepared:
    return preparing.prepare(
        source,
        asked={**SMALL, **asked},
        preset="base",
        device="cpu",
        threads=None,
        out=out,
        table=TableOptions(),
    )


def train(source: str, out: Path, **asked: Any) -> workflow.Trained:
    return workflow.train(prepare(source, out, **asked), lambda epoch: None)


def edit(run: Path, old: str, new: str) -> None:
    text = (run / "config.yaml").read_text()
    assert old in text
    (run / "config.yaml").write_text(text.replace(old, new, 1))


def as_csv(path: Path, values: Any, labels: tuple[str, ...]) -> str:
    array = np.asarray(values, np.float32)
    collection = Collection(
        values=array,
        ids=tuple(map(str, range(len(array)))),
        channels=tuple(f"c{i}" for i in range(array.shape[1])),
        labels=labels,
        classes=tuple(sorted(set(labels))),
    )
    write_wide_csv(collection, path)
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "vowels"
    train("JapaneseVowels", out, attention="softmax+bn", seed=3)
    return out


def test_a_run_folder_is_whole(run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == [
        "config.yaml",
        "environment.json",
        "history.csv",
        "metrics.json",
        "model.safetensors",
        "split.json",
    ]
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert (config["source"], config["model"]["attention"], config["training"]["seed"]) == (
        "JapaneseVowels",
        "bn",
        3,
    )
    assert json.loads((run / "split.json").read_text())["train"] == list(range(270))
    assert (run / "history.csv").read_text().splitlines()[0].startswith("epoch,train_loss,train_accuracy")
    assert json.loads((run / "environment.json").read_text())["versions"]["torch"] == torch.__version__


def test_the_card_says_what_was_trained_on(run: Path) -> None:
    card, series = read_run(run).card, load_split("JapaneseVowels", "train", TableOptions()).collection
    assert card.classes == series.classes
    assert card.lengths == (7, 15, 26)
    assert card.fingerprint == series.fingerprint()
    assert card.protocol.startswith("last: all 270 cases of TRAIN")


def test_statistics_are_of_what_was_observed_in_train(run: Path) -> None:
    values = load_split("JapaneseVowels", "train", TableOptions()).collection.values.astype(np.float64)
    card = read_run(run).card
    np.testing.assert_allclose(card.mean, np.nanmean(values, axis=(0, 2)), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(card.std, np.nanstd(values, axis=(0, 2)), rtol=1e-5)


def test_a_run_that_is_read_back_predicts_the_same(run: Path, tmp_path: Path) -> None:
    prepared = prepare("JapaneseVowels", tmp_path / "again", attention="bn", seed=3)
    workflow.train(prepared, lambda epoch: None)
    test = load_split("JapaneseVowels", "test", TableOptions()).collection.values[:20]
    with torch.inference_mode():
        expected = torch.softmax(prepared.model(torch.from_numpy(test)), dim=1).numpy()
    np.testing.assert_array_equal(load_predictor(run, "cpu").probabilities(test), expected)


def test_training_needs_no_test_split(tmp_path: Path) -> None:
    aeon_copy = tmp_path / "Set"
    aeon_copy.mkdir()
    header = "@problemName Set\n@univariate true\n@classLabel true a b\n@data\n"
    rows = "".join(f"{i % 3}.5,1,{i},2:{'ab'[i % 2]}\n" for i in range(12))
    (aeon_copy / "Set_TRAIN.ts").write_text(header + rows)
    assert train(str(aeon_copy), tmp_path / "run").metrics["epochs"] == 1


def test_one_case_in_a_class_and_twelve_in_all(tmp_path: Path) -> None:
    labels = ("a",) * 6 + ("b",) * 5 + ("c",)
    source = as_csv(tmp_path / "few.csv", np.random.default_rng(0).normal(size=(12, 2, 30)), labels)
    assert train(source, tmp_path / "all").metrics["validation"] is None
    trained = train(source, tmp_path / "held-out", validation=0.25)
    assert trained.metrics["validation"] is not None
    split = json.loads((tmp_path / "held-out" / "split.json").read_text())
    assert 11 in split["train"]  # the only case of its class stays where it can be learned
    assert sorted(split["train"] + split["validation"]) == list(range(12))


def test_channels_that_say_nothing_do_no_harm(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(12, 3, 10)).astype(np.float32)
    values[:, 0], values[:, 1] = 7.25e6, np.nan  # never changing; never observed
    values[0, 1, 0] = 4.0
    source = as_csv(tmp_path / "flat.csv", values, ("a", "b") * 6)
    train(source, tmp_path / "run")
    assert np.isfinite(load_predictor(tmp_path / "run", "cpu").probabilities(values)).all()
    assert read_run(tmp_path / "run").card.std[:2] == (1.0, 1.0)


def test_tiny_and_far_off_values_are_standardised_like_any(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = np.random.default_rng(0).normal(size=(12, 3, 10))
    values[:, 0] *= 1e-13
    values[:, 1] += 1e4
    values[:, 2] = 5.0
    with caplog.at_level("WARNING", logger="tsattn"):
        train(as_csv(tmp_path / "tesla.csv", values, ("a", "b") * 6), tmp_path / "run")
    std = read_run(tmp_path / "run").card.std
    assert std[0] == pytest.approx(values[:, 0].std(), rel=1e-4)
    assert std[1] == pytest.approx(values[:, 1].std(), rel=1e-2)
    assert std[2] == 1.0
    assert "Channels that never change in the training cases and so say nothing: c2." in caplog.text


def test_a_run_that_cannot_be_written_is_said_before_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the run folder cannot be written \(File name too long\)"):
        prepare("GunPoint", tmp_path / ("x" * 300))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the run folder cannot be written"):
        prepare("GunPoint", tmp_path / "file" / "run")


def test_default_folders_do_not_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = train("GunPoint", prepare("GunPoint", None, attention="local:8+bn").out, attention="local:8+bn")
    assert str(first.out) == "runs/GunPoint-local-8+bn-seed0"
    assert str(prepare("GunPoint", None, attention="local:8+bn").out) == "runs/GunPoint-local-8+bn-seed0-2"


def test_nothing_is_left_of_a_run_that_cannot_begin(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        begin_run(
            tmp_path / "out",
            config=read_run(run).config,
            split={"train": object()},  # no JSON: fails after the configuration was written
            environment={},
        )
    assert list(tmp_path.iterdir()) == []


def test_test_figures_are_noted_and_reach_the_card(run: Path) -> None:
    record_test(run, {"accuracy": 0.5})
    assert read_run(run).card.test == {"accuracy": 0.5}
    assert json.loads((run / "metrics.json").read_text())["epochs"] == 1


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (
            lambda run: (run / "model.safetensors").unlink(),
            "not a whole run folder, model.safetensors is missing",
        ),
        (lambda run: (run / "config.yaml").unlink(), "not a whole run folder, config.yaml is missing"),
        (lambda run: (run / "config.yaml").write_text("- 1"), "expected 'key: value' lines, found list"),
        (lambda run: (run / "config.yaml").write_text("model: {}"), "not a run's configuration"),
        (lambda run: (run / "config.yaml").write_text("a: [1"), "not readable as YAML"),
        (lambda run: (run / "config.yaml").write_text("[" * 5000), "not readable as YAML"),
        (lambda run: (run / "config.yaml").write_bytes(b"\xff\xfe"), "cannot be read as text"),
        (lambda run: edit(run, "width: 16", "width: wide"), "width is 'wide'"),
        (lambda run: edit(run, "dropout: 0.1", "dropout: 5"), "dropout is 5, expected 0 or more"),
        (lambda run: edit(run, "epochs: 1", "epochs: true"), "epochs is True"),
        (lambda run: edit(run, "threads: ", "threads: -"), "threads is -"),
        (lambda run: (run / "model.safetensors").write_bytes(b"junk" * 9), "the weights cannot be read"),
        (lambda run: (run / "metrics.json").write_text("{"), "not readable as JSON"),
        (lambda run: edit(run, "width: 16", "width: 32"), "the weights do not fit config.yaml"),
    ],
)
def test_damaged_run_folders(run: Path, damage: Any, says: str, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    damage(copy)
    with pytest.raises(InputError) as error:
        read_run(copy)
    assert says in str(error.value)


def test_refusals_come_before_any_work(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InputError, match=r"exists already and is not empty\. Choose another folder with --out"
    ):
        prepare("JapaneseVowels", run)
    with pytest.raises(InputError, match="no such run folder"):
        read_run(tmp_path / "nowhere")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CheckFailed, match="--device cuda: there is none that torch can use here"):
        resolve_device("cuda")


def test_windows_of_recordings_are_trained_on_and_noted(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(12, 2, 60))
    source = as_csv(tmp_path / "long.csv", values, ("a", "b") * 6)
    prepared = preparing.prepare(
        source,
        asked=SMALL,
        preset="base",
        device="cpu",
        threads=None,
        out=tmp_path / "run",
        table=TableOptions(),
        cutting=preparing.Cutting(window=20),
        holding=Holding(latest=True),
    )
    assert prepared.train.values.shape[2] == 20
    workflow.train(prepared, lambda epoch: None)
    run = read_run(tmp_path / "run")
    assert run.card.preparation == run.config.preparation == {"window": 20, "stride": 10}
    assert run.card.protocol.startswith("holdout: 12 cases held out (the last of the source), 47 trained on")

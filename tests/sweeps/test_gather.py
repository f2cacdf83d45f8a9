"""What is found below a folder: run folders as `tsattn train` writes them, and what a sweep works on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sweep_figures import cell

from tsattn.card import ModelCard
from tsattn.config import ModelConfig, RunConfig, TrainingConfig
from tsattn.errors import InputError
from tsattn.runs import begin_run, files, finish_run, record_test
from tsattn.sweeps import plain_runs
from tsattn.sweeps.cell import METRICS, write_cell
from tsattn.sweeps.gather import gather
from tsattn.sweeps.plain_runs import data_name
from tsattn.sweeps.table import compare

TEST = {"cases": 370, "accuracy": 0.9, "balanced_accuracy": 0.8, "macro_f1": 0.7, "log_loss": 0.6}


@dataclasses.dataclass(frozen=True)
class Epoch:
    epoch: int
    train_loss: float


def run(folder: Path, *, judged: bool = True, protocol: str = "last: all", **options: Any) -> Path:
    """A run folder by the writers of `tsattn train` and `tsattn eval`."""
    source = options.pop("source", "sets/JapaneseVowels_TRAIN.ts")
    seed, epochs = options.pop("seed", 0), options.pop("epochs", 2)
    config = RunConfig(
        source=source,
        preset="base",
        device="cpu",
        threads=1,
        model=ModelConfig(channels=12, classes=2, **options),
        training=TrainingConfig(epochs=epochs, batch_size=16, seed=seed),
    )
    card = ModelCard(
        classes=("1", "2"),
        channels=tuple("abcdefghijkl"),
        attention=config.model.attention,
        tokens="linear",
        preset="base",
        lengths=(7, 15, 29),
        mean=(0.0,) * 12,
        std=(1.0,) * 12,
        source=source,
        protocol=protocol,
        fingerprint="0f",
        versions={"tsattn": "0.1.0"},
    )
    begin_run(
        folder, config=config, split={"train": list(range(270))}, environment={"versions": {"torch": "2"}}
    )
    finish_run(
        folder,
        card=card,
        weights={"head": torch.zeros(1)},
        history=[Epoch(1, 2.0)],
        metrics={"protocol": protocol, "parameters": 204027, "seconds": 9.5},
    )
    if judged:
        record_test(folder, TEST)
    return folder


def test_a_run_folder_says_what_a_cell_says(tmp_path: Path) -> None:
    run(tmp_path / "run", attention="bn+sh", seed=7)
    ((placed),) = gather([tmp_path])
    one = placed.cell
    assert (one.data, one.method, one.seed, one.kind, one.status) == (
        *("JapaneseVowels", "bn+sh", 7, "transformer", "done"),
    )
    assert one.metrics == {name: TEST.get(name) for name in METRICS}, (
        "a run of before has no calibration error"
    )
    assert (one.train_cases, one.test_cases, one.length, one.channels, one.classes) == (270, 370, 29, 12, 2)
    assert (one.parameters, one.train_seconds, one.threads, one.protocol) == (204027, 9.5, 1, "last: all")
    assert placed.folder == tmp_path / "run"


def test_runs_are_told_apart_by_what_differs_on_the_same_data(tmp_path: Path) -> None:
    run(tmp_path / "a", attention="softmax", width=64, feed_forward=2)
    run(tmp_path / "b", attention="softmax", width=128, feed_forward=4)
    run(tmp_path / "c", attention="softmax", width=64, epochs=3, source="NATOPS.zip")
    run(tmp_path / "d", attention="bn", width=64, epochs=3, source="NATOPS.zip")
    methods = {(one.cell.data, one.cell.method) for one in gather([tmp_path])}
    assert methods == {
        ("JapaneseVowels", "softmax width=64"),
        ("JapaneseVowels", "softmax width=128"),
        ("NATOPS", "softmax width=64"),
        ("NATOPS", "bn"),
    }


def test_a_run_that_test_has_chosen_is_another_method(tmp_path: Path) -> None:
    for name, attention, protocol in (
        ("a", "softmax", "last: all"),
        ("b", "bn", "last: all"),
        ("c", "bn", "best-on-test: x"),
    ):
        run(tmp_path / name, attention=attention, protocol=protocol)
    one = compare([placed.cell for placed in gather([tmp_path])])
    assert [method.label for method in one.methods] == ["bn", "softmax", "bn †"]
    assert "bn †" not in one.ranks


def test_what_was_not_judged_is_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path / "judged")
    run(tmp_path / "not", judged=False)
    assert len(gather([tmp_path])) == 1
    assert f"`tsattn eval {tmp_path / 'not'}`" in caplog.text


def test_a_sweep_counts_by_its_cells_alone(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text("format: 1\n", "utf-8")
    under_way = run(tmp_path / "cells" / "A" / "bn" / "seed0")
    run(tmp_path / "cells" / "A" / "bn" / "seed1", seed=1)
    write_cell(under_way.with_name("seed1"), cell("A", "bn", 1))
    for place in (tmp_path, tmp_path / "cells" / "A", under_way.parent):
        assert [one.cell.seed for one in gather([place])] == [1]
    with pytest.raises(InputError, match="neither cells of a sweep"):
        gather([under_way])


def test_the_same_run_twice_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "copy")
    with pytest.raises(InputError, match=r"are the same cell: JapaneseVowels, bn\+sh, seed 0"):
        gather([tmp_path])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metrics.json", "{", "not readable as JSON"),
        ("metrics.json", "[]", "expected an object"),
        ("metrics.json", json.dumps({"test": {**TEST, "accuracy": "high"}}), "metrics has accuracy"),
        ("config.yaml", "a: [", "not readable as YAML"),
        ("model.safetensors", "", "the weights cannot be read"),
    ],
)
def test_a_spoilt_file_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (run(tmp_path / "run") / name).write_text(content, "utf-8")
    with pytest.raises(InputError) as raised:
        gather([tmp_path])
    assert message in str(raised.value)
    assert str(tmp_path / "run") in str(raised.value)


def test_files_are_called_what_run_folders_call_them() -> None:
    for mine, its in (
        *((plain_runs.CONFIG, files.CONFIG), (plain_runs.WEIGHTS, files.WEIGHTS)),
        *((plain_runs.RESULTS, files.METRICS), (plain_runs.SPLIT, files.SPLIT)),
        *((plain_runs.ENVIRONMENT, files.ENVIRONMENT), (plain_runs.CARD_KEY, files.CARD_KEY)),
    ):
        assert mine == its


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("JapaneseVowels", "JapaneseVowels"),
        ("a/b/Handwriting.zip", "Handwriting"),
        ("a/NATOPS_TRAIN.ts", "NATOPS"),
        ("my.sensors.csv.gz", "my.sensors"),
        ("folder/", "folder"),
    ],
)
def test_data_are_called_after_what_was_typed(source: str, name: str) -> None:
    assert data_name(source) == name

"""Several processes that train one model come to what one comes to: real torchrun, two of gloo."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.errors import InputError
from tsattn.training.parallel import Alone, find_company

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
SHAPE = ["--width", "16", "--heads", "2", "--layers", "1", "--tokens", "linear", "--attention", "softmax"]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds its children in /proc")
RECIPE = [*SHAPE, "--threads", "1", "--device", "cpu", "--val-fraction", "0.2", "--patience", "99"]
WORDS = ["train", "JapaneseVowels", "--epochs", "12", "--dropout", "0", "--augment", "none", *RECIPE]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Ended:
    """A training that was killed: its folder, and what was seen of it."""

    run: Path
    code: int
    output: str
    errors: str


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """One of two processes was killed as soon as there was something to go on with."""
    run = tmp_path_factory.mktemp("killed") / "run"
    command = [*TORCHRUN, "-m", "tsattn", *WORDS, "--out", str(run)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    try:
        deadline = time.monotonic() + 100
        while not (run / "state" / "training.safetensors").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(children(process.pid)[1], signal.SIGKILL)
        output, errors = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    return Ended(run=run, code=process.returncode, output=output, errors=errors)


@pytest.fixture(scope="module")
def gone_on(killed: Ended, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Where two processes wrote down what they saw, and what they showed when the killed run was resumed."""
    out = tmp_path_factory.mktemp("parallel")
    script = Path(__file__).with_name("together.py")
    command = [*TORCHRUN, str(script), str(out), str(killed.run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return out, done.stdout, done.stderr


@pytest.fixture(scope="module")
def seen(gone_on: tuple[Path, str, str]) -> list[dict[str, Any]]:
    """What each of two processes saw."""
    return [json.loads((gone_on[0] / f"{rank}.json").read_text("utf-8")) for rank in range(2)]


def children(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()))


def history(run: Path) -> list[dict[str, Any]]:
    with (run / "history.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def assert_same_curve(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    assert len(one) == len(other)
    for first, second in zip(one, other, strict=True):
        for name in (
            "train_loss",
            "validation_loss",
            "train_accuracy",
            "validation_accuracy",
            "gradient_norm",
        ):
            assert float(second[name]) == pytest.approx(float(first[name]), rel=1e-4), (name, first["epoch"])
        assert float(second["learning_rate"]) == float(first["learning_rate"])


def assert_close(expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for name, value in expected.items():
        one, other = np.asarray(value), np.asarray(found[name])
        if name.endswith("attention.project_in.bias"):
            # A bias of keys cancels in softmax: its gradient is rounding, which Adam makes as large as any.
            one, other = (np.delete(bias.reshape(3, -1), 1, axis=0) for bias in (one, other))
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-4, err_msg=name)


def test_the_curve_and_the_weights_are_those_of_one_process(seen: list[dict[str, Any]]) -> None:
    alone = seen[0]["alone"]
    for process in seen:
        assert_same_curve(alone["history"], process["together"]["history"])
        assert_close(alone["weights"], process["together"]["weights"])


def test_all_processes_end_with_the_same(seen: list[dict[str, Any]]) -> None:
    for training in ("together", "few", "whole", "resumed"):
        first, second = (process[training] for process in seen)
        assert first["history"] == second["history"]
        assert first["weights"] == second["weights"]


def test_each_case_is_seen_once_an_epoch(seen: list[dict[str, Any]]) -> None:
    for training, steps in (("together", 5), ("few", 2)):
        shares = [process[training]["seen"] for process in seen]
        assert len(shares[0]) == len(shares[1])
        for start in range(0, len(shares[0]), steps):
            cases = [case for share in shares for batch in share[start : start + steps] for case in batch]
            assert sorted(cases) == list(range(33))
    assert seen[1]["few"]["seen"][1] == []


def test_the_batches_are_those_of_one_process(seen: list[dict[str, Any]]) -> None:
    first, second = (process["together"]["seen"] for process in seen)
    assert [a + b for a, b in zip(first, second, strict=True)] == seen[0]["alone"]["seen"]


def test_random_numbers_differ(seen: list[dict[str, Any]]) -> None:
    assert seen[0]["whole"]["random"] != seen[1]["whole"]["random"]


def test_what_one_process_hears_stops_all_and_is_gone_on_with_exactly(seen: list[dict[str, Any]]) -> None:
    for process in seen:
        assert process["stopped"].startswith("stopped in epoch 4 of 4")  # asked at step 12, heard after 16
        assert process["resumed"]["history"] == process["whole"]["history"]
        assert process["resumed"]["weights"] == process["whole"]["weights"]


def test_what_one_process_finds_wrong_all_say(seen: list[dict[str, Any]]) -> None:
    assert seen[0]["failed"] == "Process 2 of 2: no such file here: ß"
    assert seen[1]["failed"] == "no such file here: ß"


def test_another_number_of_processes_cannot_go_on(seen: list[dict[str, Any]]) -> None:
    for process in seen:
        assert "begun with 2 processes and can go on only so, not with 1" in process["refused"]
        assert "Start 2 with torchrun." in process["refused"]
    with pytest.raises(InputError, match="begun with 3 processes"):
        Alone().own(torch.zeros(3, 5))


def test_without_torchrun_a_process_is_alone() -> None:
    assert isinstance(find_company({}), Alone)
    assert isinstance(find_company({"RANK": "0", "WORLD_SIZE": "2"}), Alone)
    assert isinstance(find_company({"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "1"}), Alone)


@pytest.mark.parametrize("words", [["--seeds", "2"], ["--protocol", "kfold:3"], ["--protocol", "refit"]])
def test_several_trainings_are_refused(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsattn.cli.training_view.joined", lambda: SimpleNamespace(size=2))
    done = CliRunner().invoke(app, ["train", "GunPoint", *words])
    assert isinstance(done.exception, InputError)
    assert "torchrun trains one model in all its processes" in str(done.exception)


def test_a_dead_process_ends_all_with_one_message(killed: Ended) -> None:
    assert killed.code != 0
    assert killed.output == ""
    assert len(re.findall("^Error: ", killed.errors, re.MULTILINE)) == 1
    assert f"Error: {killed.run}: another of the 2 processes that train it together ended" in killed.errors
    goes_on = f"Go on with `torchrun --nproc-per-node 2 -m tsattn train --resume {killed.run}`."
    assert goes_on in killed.errors
    assert str(ROOT / "tsattn") not in killed.errors, "a traceback of ours"


def test_a_killed_run_is_gone_on_with_and_one_process_writes_and_speaks(
    killed: Ended, gone_on: tuple[Path, str, str], tmp_path: Path
) -> None:
    _, output, errors = gone_on
    assert json.loads(output)["run"] == str(killed.run)
    assert errors.count("2 processes share every batch") == 1
    assert errors.count("JapaneseVowels: ") == 1
    whole, threads = tmp_path / "whole", torch.get_num_threads()
    try:
        assert CliRunner().invoke(app, [*WORDS, "--out", str(whole)]).exit_code == 0
    finally:
        torch.set_num_threads(threads)
    assert_same_curve(history(whole), history(killed.run))
    assert (whole / "config.yaml").read_bytes() == (killed.run / "config.yaml").read_bytes()
    assert json.loads((killed.run / "environment.json").read_text("utf-8"))["processes"] == 2
    assert_close(*(load_file(place / "model.safetensors") for place in (whole, killed.run)))
    assert sorted(path.name for path in killed.run.iterdir()) == sorted(path.name for path in whole.iterdir())

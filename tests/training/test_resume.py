"""Trainings that are killed, stopped, starved of disk and doubled: real processes, real signals."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tsattn.cli.app import main

SHAPE = ["--width", "16", "--heads", "2", "--layers", "1", "--threads", "1", "--device", "cpu"]
KILLS = 25

# Trains once whole, then forks a process a training: what is imported is there, and 25 kills take seconds.
# One thread, because the threads of a pool do not survive a fork.
KILLER = textwrap.dedent(
    """
    import json, os, random, signal, sys, time
    import tsattn.cli.app as app

    whole, first, resume = map(json.loads, sys.argv[1:4])
    kills, moments = int(sys.argv[4]), random.Random(7)

    def run(words):
        sys.argv = ["tsattn", *words]
        try:
            app.main()
        except SystemExit as leaving:
            return leaving.code or 0
        return 0

    def start(words):
        child = os.fork()
        if child == 0:
            os._exit(run(words))
        return child

    out = sys.stdout
    sys.stdout = sys.stderr
    begin = time.monotonic()
    assert run(whole) == 0
    longest = 0.06 * (time.monotonic() - begin)  # 25 lives of half of it cannot end a training
    folder, killed, saved = resume[-1], 0, 0
    while killed < kills and not os.path.exists(os.path.join(folder, "model.safetensors")):
        child = start(resume if os.path.isdir(folder) else first)
        time.sleep(moments.uniform(0.02, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
        saved += os.path.exists(os.path.join(folder, "state", "training.safetensors"))
    print(killed, saved, file=out)
    if not os.path.exists(os.path.join(folder, "model.safetensors")):
        _, status = os.waitpid(start(resume), 0)
        assert status == 0, status
    """
)


def tsattn(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tsattn", *words],
        capture_output=True,
        text=True,
        check=False,
        **more,  # type: ignore[call-overload]
    )


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tsattn", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def history(run: Path) -> list[dict[str, str]]:
    with (run / "history.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def as_one(run: Path) -> tuple[bytes, list[dict[str, str]]]:
    return (run / "model.safetensors").read_bytes(), history(run)


def test_25_kills_change_no_byte(tmp_path: Path) -> None:
    words = [
        "train",
        "JapaneseVowels",
        "--epochs",
        "100",
        "--val-fraction",
        "0.2",
        "--patience",
        "100",
        *SHAPE,
    ]
    words += ["--attention", "softmax", "--tokens", "linear"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            KILLER,
            json.dumps([*words, "--averaging", "0.9", "--out", str(whole)]),
            json.dumps([*words, "--averaging", "0.9", "--out", str(killed)]),
            json.dumps(["train", "--resume", str(killed)]),
            str(KILLS),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    kills, with_state = map(int, done.stdout.split())
    assert kills == KILLS, "the training ended before it was killed often enough"
    assert with_state >= 10
    assert as_one(killed) == as_one(whole)
    assert sorted(path.name for path in killed.iterdir()) == sorted(path.name for path in whole.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_the_state_saved_and_the_command_that_resumes(
    number: signal.Signals,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["train", "JapaneseVowels", "--epochs", "60", *SHAPE]
    run = tmp_path / "run"
    process = start(*words, "--out", str(run))
    wait_for(run / "state" / "training.safetensors", process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Nothing is lost: go on with `tsattn train --resume {run}`." in err
    assert "Traceback" not in err
    for again in (["eval", str(run)], [*words, "--out", str(run)]):
        code, _, said = here(*again, capsys=capsys, patch=monkeypatch)
        assert code == 2
        assert f"its training has not ended. `tsattn train --resume {run}` goes on with it" in said


def test_only_one_process_trains_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("train", "JapaneseVowels", "--epochs", "200", *SHAPE, "--out", str(run))
    try:
        wait_for(run / "state" / "training.safetensors", process)
        second = tsattn("train", "--resume", str(run))
        assert second.returncode == 2
        assert f"Error: {run}: another process is training it." in second.stderr
        assert process.poll() is None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def here(*words: str, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """The command in this process, which spares the seconds of importing: code, stdout, stderr."""
    patch.setattr(sys, "argv", ["tsattn", *words])
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0), *capsys.readouterr()


def test_what_cannot_be_resumed_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    words = ("train", "GunPoint", "--epochs", "1", *SHAPE, "--out", str(run))
    assert here(*words, capsys=capsys, patch=monkeypatch)[0] == 0
    for wrong, says in (
        (["--resume", str(run)], "its training has ended. `tsattn eval"),
        (["--resume", str(tmp_path / "none")], "no such run folder"),
        (["--resume", str(run), "--epochs", "3"], "leave --epochs away"),
        (["GunPoint", "--resume", str(run)], "--resume takes everything from the run folder"),
        ([], "What is to be trained on?"),
    ):
        code, _, err = here("train", *wrong, capsys=capsys, patch=monkeypatch)
        assert code == 2, wrong
        assert says in err, wrong


def test_a_run_is_reproduced_to_the_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    words = ("train", "GunPoint", "--epochs", "2", *SHAPE, "--out", str(run))
    assert here(*words, capsys=capsys, patch=monkeypatch)[0] == 0
    code, out, err = here("reproduce", str(run), "--out", str(again), capsys=capsys, patch=monkeypatch)
    assert code == 0, err
    assert "Weights: the same to the byte. Figures of the epochs: the same." in out
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("seed: 0", "seed: 1"))
    code, out, _ = here("reproduce", str(run), capsys=capsys, patch=monkeypatch)
    assert code == 3
    assert "Weights: not the same. Figures of the epochs: other from epoch 1 on." in out

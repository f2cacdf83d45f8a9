"""`tsattn bench`: what is typed, the order of cells, what a folder takes, ten kills that change nothing."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tsattn.cli.app import main
from tsattn.errors import InputError
from tsattn.sweeps.cell import read_cells
from tsattn.sweeps.estimate import parse_duration
from tsattn.sweeps.methods import parse_grid, split_words
from tsattn.sweeps.processes import Here
from tsattn.sweeps.running import held, run

DOUBLE = Path(__file__).parent / "double.py"


def bench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of a sweep in this process, whose cells the double computes."""
    assert run.__kwdefaults__ is not None
    monkeypatch.setitem(run.__kwdefaults__, "begin", partial(Here, command=(sys.executable, str(DOUBLE))))
    monkeypatch.setattr("sys.argv", ["tsattn", "bench", *words])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out, printed.err


def test_words_keep_the_commas_that_are_theirs() -> None:
    assert split_words(["softmax,sh:1,1,2,4,bn", "bn, linear"]) == ["softmax", "sh:1,1,2,4", "bn", "linear"]
    assert split_words(["bn+sh:conv,1,2"]) == ["bn+sh:conv,1,2"]
    assert parse_grid(["width=64,128", "lr=1e-3", "tokens=linear,patch:8,4"]) == {
        "width": [64, 128], "lr": [1e-3], "tokens": ["linear", "patch:8,4"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ("width", "expected an option"),
        ("width=", "expected an option"),
        ("widht=64", "Did you mean 'width'"),
        ("width=wide", "expected a whole number, 1 or more"),
        ("width=0", "expected a whole number, 1 or more"),
        ("seed=1", "no option of a grid"),
        ("dropout=2", "from 0 to below 1"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(grid: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_grid([grid])


def test_a_time_budget_is_a_duration() -> None:
    assert [parse_duration(text) for text in ("2h", "90m", "1h30m", "1d", "5s")] == [
        7200, 5400, 5400, 86400, 5,
    ]  # fmt: skip
    for text in ("", "2", "h", "2 weeks", "0s"):
        with pytest.raises(InputError, match="--time-budget"):
            parse_duration(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "On which data?"),
        (["GunPiont"], "Did you mean GunPoint"),
        (["--archive", "uae"], "Did you mean uea"),
        (["--collection", "uea"], "There are: uea10"),
        (["GunPoint", "--attention", "softmaks"], "softmax"),
        (["GunPoint", "--attention", "none"], "--baseline"),
        (["GunPoint", "--baseline", "roket"], "Did you mean 'rocket'"),
        (["GunPoint", "--grid", "heads=7"], "softmax heads=7:"),
        (["GunPoint", "--grid", "width=64,128", "--width", "32"], "--grid and --width"),
        (["GunPoint", "--protocol", "kfold:1"], "at least 2"),
        (["GunPoint", "--protocol", "refit", "--val-fraction", "0"], "more than 0"),
        (["GunPoint", "--grid", "preset=base,fats"], "Did you mean 'fast'"),
        (["GunPoint", "--grid", "preset=base,fast", "--preset", "fast"], "--grid and --preset"),
        (["GunPoint", "--grid", "preset=base,./base.yaml"], "preset=base is asked for twice"),
        (["GunPoint", "--protocol", "last", "--val-fraction", "0.2"], "both say what is held out"),
        (["GunPoint", "--attention", "mine.py:cold"], "mine.py"),
        (["GunPoint", "--augment", "jiter:0.1"], "jitter"),
        (["cases.csv"], "one file of cases"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_computed(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{case},{case % 3},{'ab'[case % 2]}" for case in range(8)]
    Path("base.yaml").write_text("preset: base\n", "utf-8")
    Path("cases.csv").write_text("\n".join(["x_0,x_1,label", *rows]) + "\n", "utf-8")
    status, out, err = bench(monkeypatch, capsys, *words, "-o", "sweep")
    assert (status, out) == (2, "")
    assert said in err
    assert not Path("sweep").exists()


def test_cheap_cells_come_first_and_typing_more_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--epochs", "60", "-o", str(tmp_path)]
    first = ["JapaneseVowels", "GunPoint", "--attention", "bn+sh", "--seeds", "2"]
    status, out, err = bench(monkeypatch, capsys, *first, *common)
    assert status == 0
    assert [line.split(":")[0] for line in err.splitlines()] == [
        "GunPoint bn+sh seed 0", "GunPoint bn+sh seed 1",
        "JapaneseVowels bn+sh seed 0", "JapaneseVowels bn+sh seed 1",
    ]  # fmt: skip
    assert out.split()[:2] == ["data", "bn+sh"]
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["JapaneseVowels", "GunPoint"]
    more = ["GunPoint", "--attention", "linear,bn+sh", "--baseline", "1nn-dtw", "--seeds", "0,2"]
    status, out, err = bench(monkeypatch, capsys, *more, *common, "--json")
    document = json.loads(out)
    assert {line.split(":")[0] for line in err.splitlines()} == {
        "GunPoint linear seed 0", "GunPoint linear seed 2", "GunPoint bn+sh seed 2",
        "GunPoint 1nn-dtw seed 0",
    }  # fmt: skip
    assert (document["cells"], len(document["done"]), document["left"]) == (5, 5, [])
    assert document["done"][0]["accuracy"] == 0.5
    noted = yaml.safe_load((tmp_path / "sweep.yaml").read_text("utf-8"))
    assert [one["name"] for one in noted["data"]] == ["JapaneseVowels", "GunPoint"]
    assert (noted["attentions"], noted["baselines"]) == (["bn+sh", "linear"], ["1nn-dtw"])
    assert noted["seeds"] == [0, 1, 2]
    assert noted["options"] == {"epochs": 60}
    status, _, err = bench(monkeypatch, capsys, *more, *common[2:], "--epochs", "2")
    assert status == 2
    assert "epochs is 60 and not 2" in err
    assert len(list(read_cells(tmp_path))) == 8


def test_several_presets_are_columns_and_one_that_changes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my own.yaml").write_text("preset: fast\ntraining:\n  epochs: 7\n", "utf-8")
    words = ["GunPoint", "--attention", "bn", "--seeds", "1", "-o", "sweep", "--grid"]
    assert bench(monkeypatch, capsys, *words, "preset=base,my own.yaml")[0] == 0
    assert bench(monkeypatch, capsys, *words, "preset=fast")[0] == 0
    cells = list(read_cells(tmp_path / "sweep"))
    assert [cell.method for cell in cells] == ["bn preset=base", "bn preset=fast", "bn preset=my own"]
    assert cells[-1].grid == {"preset": "my own"}
    noted = yaml.safe_load(Path("sweep/sweep.yaml").read_text("utf-8"))
    assert noted["grid"] == {"preset": ["base", "my own.yaml", "fast"]}
    assert noted["presets"]["my own"]["epochs"] == 7
    Path("my own.yaml").write_text("preset: fast\ntraining:\n  epochs: 8\n", "utf-8")
    status, _, err = bench(monkeypatch, capsys, *words, "preset=my own.yaml")
    assert status == 2
    assert "preset my own.epochs is 7 and not 8" in err


def test_kfold_takes_data_without_test_and_a_cell_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seeds are other parts of TRAIN, also for what has no seed of its own."""
    place = tmp_path / "cases.csv"
    place.write_text("x_0,x_1,label\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n", "utf-8")
    words = [str(place), "--label", "label", "--attention", "none", "--baseline", "1nn-dtw", "--seeds", "2"]
    status, out, _ = bench(
        monkeypatch, capsys, *words, "--protocol", "kfold:2", "-o", str(tmp_path / "sweep")
    )
    assert status == 0
    assert "TEST was not read" in out
    assert [cell.seed for cell in read_cells(tmp_path / "sweep")] == [0, 1]
    assert "protocol: kfold:2" in (tmp_path / "sweep" / "sweep.yaml").read_text("utf-8")
    status, _, err = bench(monkeypatch, capsys, *words, "-o", str(tmp_path / "sweep"))
    assert (status, "--protocol kfold:5 judges on parts of TRAIN" in err) == (2, True)


def test_a_folder_that_is_no_sweep_or_is_at_work_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").touch()
    status, _, err = bench(monkeypatch, capsys, "GunPoint", "-o", str(tmp_path))
    assert status == 2
    assert "not a sweep" in err
    with held(tmp_path / "sweep"):
        (tmp_path / "sweep" / "sweep.yaml").touch()
        status, _, err = bench(monkeypatch, capsys, "GunPoint", "-o", str(tmp_path / "sweep"))
    assert status == 2
    assert "another process" in err


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda place: (place / "sweep.yaml").write_text("grid: ["), "while parsing"),
        (lambda place: (place / "sweep.yaml").write_text("format: 1\ndata: []\n"), "'attentions' is missing"),
        (
            lambda place: (place / "sweep.yaml").write_text(
                (place / "sweep.yaml").read_text().replace("grid: {}", "grid: {width: 3}")
            ),
            "grid of width is no list",
        ),
        (
            lambda place: (place / "cells/GunPoint/bn/seed0").rename(place / "cells/GunPoint/bn/seed1"),
            "the cell of GunPoint bn seed 0, where that of GunPoint bn seed 1",
        ),
        (
            lambda place: ((place / "logs").rmdir(), (place / "logs").touch()),
            "what a cell says cannot be written there",
        ),
    ],
)
def test_what_is_spoilt_in_a_folder_is_named(
    spoil: Callable[[Path], object],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["GunPoint", "--attention", "bn", "-o", str(tmp_path), "--seeds"]
    assert bench(monkeypatch, capsys, *words, "1")[0] == 0
    spoil(tmp_path)
    status, out, err = bench(monkeypatch, capsys, *words, "2")
    assert (status, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_a_full_disk_at_the_beginning_is_no_hindrance_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["GunPoint", "--attention", "bn", "--seeds", "1", "-o", str(tmp_path / "sweep")]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        status, _, err = bench(monkeypatch, capsys, *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, "sweep.yaml cannot be written" in " ".join(err.split())) == (2, True)
    assert bench(monkeypatch, capsys, *words)[0] == 0


def test_names_that_would_share_a_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a b", "a@b"):
        (tmp_path / f"{name}.csv").write_text("x_0,x_1,label\n1,2,a\n3,4,b\n", "utf-8")
    files = [str(tmp_path / f"{name}.csv") for name in ("a b", "a@b")]
    words = ["--label", "label", "--attention", "bn", "--protocol", "kfold:2", "-o", str(tmp_path / "s")]
    status, _, err = bench(monkeypatch, capsys, *files, *words)
    assert status == 2
    assert "a b bn seed 0 and a@b bn seed 0 would share the folder" in " ".join(err.split())


def test_failed_cells_are_said_and_tried_again_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fails_TRAIN.csv").write_text("x_0,x_1,label\n1,2,a\n3,4,b\n", "utf-8")
    (tmp_path / "fails_TEST.csv").write_text("x_0,x_1,label\n1,2,a\n3,4,b\n", "utf-8")
    words = [str(tmp_path / "fails_TRAIN.csv"), "--attention", "bn", "--seeds", "1"]
    words += ["--label", "label", "-o", str(tmp_path / "sweep")]
    status, out, _ = bench(monkeypatch, capsys, *words)
    assert status == 0
    assert "failed: fails bn seed 0: the disk is full of eels" in out
    status, out, err = bench(monkeypatch, capsys, *words)
    assert not err
    tries = tmp_path / "sweep" / "cells" / "fails" / "bn" / "fails.tries"
    assert tries.read_text("utf-8") == "x"
    status, out, _ = bench(monkeypatch, capsys, *words, "--retry-failed")
    assert tries.read_text("utf-8") == "xx"


def test_the_time_budget_stops_it_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["GunPoint", "--attention", "bn,linear", "--seeds", "3", "--json", "-o", str(tmp_path)]
    clock = time.monotonic
    begun = clock()
    monkeypatch.setattr("tsattn.cli.bench.time.monotonic", lambda: begun + 10 * (clock() - begun))
    status, out, _ = bench(monkeypatch, capsys, *words, "--time-budget", "3s")
    document = json.loads(out)
    assert status == 0
    assert document["stopped"] == "time budget"
    assert document["left"]
    assert len(document["done"]) + len(document["left"]) == 6
    monkeypatch.setattr("tsattn.cli.bench.time.monotonic", clock)
    status, out, _ = bench(monkeypatch, capsys, *words)
    assert (json.loads(out)["left"], json.loads(out)["stopped"]) == ([], None)


TINY = [
    "GunPoint", "ItalyPowerDemand", "--attention", "softmax,bn+sh", "--seeds", "1", "--epochs", "40",
    "--width", "8", "--heads", "2", "--layers", "1", "--tokens", "linear", "--threads", "1",
]  # fmt: skip


def table(folder: Path) -> list[dict[str, Any]]:
    """All that a sweep keeps of its cells, but times and memory."""
    costs = ("train_seconds", "inference_cases_per_second", "peak_memory_bytes", "finished")
    return [
        {name: value for name, value in json.loads(cell.to_json()).items() if name not in costs}
        for cell in read_cells(folder)
    ]


@pytest.mark.slow
def test_ten_kills_change_nothing_in_the_table(tmp_path: Path) -> None:
    """Of the sweep, so that its cells leave by themselves, and of cells, which the sweep tries again."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    script = [sys.executable, str(Path(__file__).parent / "killing.py"), str(whole), str(killed), "10"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*script, *TINY, "-j", "2"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    at_work, states = map(int, done.stdout.split())
    assert at_work >= 5
    assert states  # trainings were interrupted, not only what comes before and after
    assert table(killed) == table(whole)
    assert len(table(whole)) == 4


@pytest.mark.slow
def test_ctrl_c_keeps_the_state_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tsattn", "bench", *TINY, "-o", str(tmp_path / "a sweep")]
    sweep = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("*/cells/*/*/seed0")) and time.monotonic() < until:
        time.sleep(0.05)
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=90)
    assert sweep.returncode == 130
    assert "4 cells" in out
    assert "Go on with `tsattn bench GunPoint" in err
    assert "'" in err.split("Go on with")[1]  # the folder with its space in quotes

"""The benchmarks of training, predicting and GPUs: they run, say where they cannot, and calculate right."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tsattn.config import ModelConfig
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.tables import read_table

FOLDER = Path(__file__).parents[1] / "benchmarks"
# Runs each script line of the arguments as Python would, in a process in which nothing can import aeon.
WITHOUT_AEON = """
import runpy, sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "aeon":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refusing())
script, *runs = sys.argv[1:]
sys.path.insert(0, script.rpartition("/")[0])
for run in runs:
    sys.argv = [script, *run.split()]
    runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scripts import each other, as Python lets them when one of them is run."""
    monkeypatch.syspath_prepend(FOLDER)


def test_gpu_says_that_there_is_none_and_walks_all_of_itself_on_a_cpu_without_aeon() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_AEON, (FOLDER / "gpu.py").as_posix(), "", "--device cpu --quick"],
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(FOLDER.parent)},
    )
    assert done.returncode == 0, done.stderr
    none, _, table = done.stdout.partition("\n")
    assert none == "no CUDA device here: nothing was measured"
    for row in ("training step, tiny", "the device at its best", "attention bn+sh, N = 64", "export, tiny"):
        assert f"| {row}" in table
    predict = next(line for line in table.splitlines() if line.startswith("| predict, tiny"))
    assert "CPU" in predict
    assert "differs by 0.0e+00" in predict


@pytest.mark.usefixtures("benchmarks")
def test_ratios_are_taken_within_a_round_and_the_least_meets_the_bar() -> None:
    from training import bars
    from training_loops import Turn
    from training_turns import Cell

    def cell(data: str, *rounds: tuple[float, float, float | None]) -> Cell:
        """Seconds of a turn of ten steps and 160 samples."""
        names = ("tsattn", "bare", "published")
        return Cell(
            data=data,
            batch=16,
            threads=1,
            published_batch=16,
            rounds=[
                {
                    name: Turn(steps=10, samples=160, seconds=seconds, cpu=2 * seconds)
                    for name, seconds in zip(names, took, strict=True)
                    if seconds is not None
                }
                for took in rounds
            ],
        )

    # The machine is half as fast in the second round; the published loop sits out in the third.
    quick = cell("JapaneseVowels", (1.0, 0.95, 2.6), (2.0, 1.9, 5.2), (1.25, 1.0, None))
    assert quick.ratio("tsattn", "bare") == pytest.approx(0.95)
    assert quick.cpu_ratio("tsattn", "bare") == pytest.approx(0.95)
    assert quick.ratio("tsattn", "published") == pytest.approx(2.6)
    assert quick.rate("tsattn") == pytest.approx(160 / 1.25)
    assert quick.rate("published") == pytest.approx((160 / 2.6 + 160 / 5.2) / 2)
    seconds, share = quick.added()
    assert seconds == pytest.approx(0.01)
    assert share == pytest.approx(0.05)
    assert quick.added(cpu=True) == pytest.approx((0.02, 0.05))
    slow = cell("SelfRegulationSCP1", (1.0, 0.9, 5.0))
    other = cell("SpokenArabicDigits", (1.0, 0.99, None))
    assert math.isnan(other.ratio("tsattn", "published"))
    bare, vowels, potentials = bars([quick, slow, other])
    assert "SelfRegulationSCP1" in bare.what
    assert [bar.found for bar in (bare, vowels, potentials)] == pytest.approx([0.9, 2.6, 5.0])
    assert [bar.holds for bar in (bare, vowels, potentials)] == [False, True, False]
    assert not bars([cell("JapaneseVowels", (1.0, 1.0, None))])[
        1
    ].holds  # what was not measured does not hold


@pytest.mark.usefixtures("benchmarks")
def test_a_published_batch_is_halved_until_memory_and_patience_bear_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import training_turns

    monkeypatch.setattr(training_turns, "available_memory", lambda: 10e9)
    assert training_turns.affordable(64, longest=26, case=0.01, patience=25) == 64
    assert training_turns.affordable(64, longest=896, case=0.01, patience=25) == 16  # 64 would take 20 GB
    assert training_turns.affordable(64, longest=26, case=2.0, patience=25) == 8


@pytest.mark.usefixtures("benchmarks")
def test_the_published_loop_learns_one_batch() -> None:
    from training_loops import Published

    cases = load_split("JapaneseVowels", "train", TableOptions()).collection.take(np.arange(0, 270, 30))
    config = ModelConfig(channels=12, classes=9, width=64, heads=4, layers=1)
    published = Published(cases, config, len(cases))
    values, padding, targets = published.collate(published.cases)
    assert values.shape == (9, int(cases.lengths.max()), 12)
    assert padding.logical_not().sum(1).tolist() == cases.lengths.tolist()
    assert cases.labels is not None
    assert [cases.classes[target] for target in targets] == list(cases.labels)
    losses = [published.step(values, padding, targets) for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
    turn = published.turn(3)
    assert (turn.steps, turn.samples) == (3, 27)


@pytest.mark.usefixtures("benchmarks")
def test_the_bare_loop_gets_the_very_batches_of_the_trainer() -> None:
    import torch
    from training_loops import config_of, model_config, pair

    cases = load_split("JapaneseVowels", "train", TableOptions()).collection.take(np.arange(20))
    device = torch.device("cpu")
    trainer, bare = pair(cases, model_config(cases, "softmax", "linear"), config_of(2, 8), device)
    once = trainer.turn(skip=1, keep=True)
    assert [len(batch.targets) for batch in trainer.batches] == [8, 8, 4] * 2
    assert (once.steps, once.samples) == (5, 32)
    batches = trainer.batches
    trainer.turn(skip=1, keep=True)  # every turn has the same
    for before, after in zip(batches, trainer.batches, strict=True):
        assert torch.equal(before.targets, after.targets)
    turn = bare.turn(batches, skip=1)
    assert (turn.steps, turn.samples) == (once.steps, once.samples)


@pytest.mark.usefixtures("benchmarks")
def test_the_bars_of_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from predict import Cell, show, write_cases

    good = Cell(
        model="small", layout="wide", parse=4000, infer=1000, write=9000, whole=900, script=300,
        first=0.5, short_peak=200, long_peak=209,
    )  # fmt: skip
    assert good.slowest == 1000
    assert 1000 / (1 + 1 / 4 + 1 / 9) < good.possible < 1000 / (1 + 1 / 4)
    assert show([good], 100) == 0
    assert "✗" not in capsys.readouterr().out
    slow = Cell(**{**vars(good), "whole": 840, "script": 290, "first": 0.9, "long_peak": 211})
    assert show([good, slow], 100) == 1
    assert capsys.readouterr().out.count("✗") == 4
    for layout in ("wide", "long"):
        write_cases(tmp_path / f"{layout}.csv", layout, 3)
    wide, long = (
        read_table(tmp_path / f"{name}.csv", TableOptions(id="case"))[0] for name in ("wide", "long")
    )
    np.testing.assert_array_equal(wide.values, long.values)
    assert wide.ids == long.ids == ("0", "1", "2")

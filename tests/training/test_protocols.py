"""What each protocol holds out and keeps; several runs, their ensemble, and the stamp of best-on-test."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from commands import Command, command_in

from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.splits import folds
from tsattn.errors import InputError
from tsattn.runs import finish_run, load_predictor, read_config, read_run
from tsattn.training import workflow
from tsattn.training.holdout import Holding
from tsattn.training.protocols import WORDS, parse_protocol, settle
from tsattn.training.several import parse_seeds

SHAPE = ["--width", "8", "--heads", "2", "--layers", "1", "--tokens", "linear", "--attention", "softmax"]
SMALL = [*SHAPE, "--threads", "1", "--device", "cpu"]
VOWELS = "JapaneseVowels"


@pytest.fixture
def tsattn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """tsattn(*words): the command in `tmp_path`."""
    return command_in(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("holdut", "Did you mean 'holdout'?"),
        ("kfold", "at least 2, as in kfold:5"),
        ("kfold:1", "at least 2"),
        ("kfold:x", "at least 2"),
        ("last:3", "'last' takes no option, write 'last'"),
        ("", "There are: auto, holdout, last, refit, kfold, best-on-test"),
    ],
)
def test_a_word_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=r"--protocol") as error:
        parse_protocol(text)
    assert says in str(error.value)


@pytest.mark.parametrize("word", ["last", "best-on-test", "kfold:3"])
@pytest.mark.parametrize("holding", [Holding(latest=True), Holding(file=Path("x.csv"))])
def test_two_that_say_what_is_held_out(word: str, holding: Holding) -> None:
    with pytest.raises(InputError, match="both say what is held out"):
        settle(parse_protocol(word), {}, holding)
    with pytest.raises(InputError, match="--val-fraction"):
        settle(parse_protocol(word), {"validation": 0.2}, Holding())


def test_what_each_word_means_for_a_run() -> None:
    assert set(WORDS) == {"auto", "holdout", "last", "refit", "kfold", "best-on-test"}
    assert settle(parse_protocol("auto"), {}, Holding()) == ({}, Holding())
    assert settle(parse_protocol("holdout"), {}, Holding())[0] == {"validation": 0.2}
    assert settle(parse_protocol("holdout"), {"validation": 0.3}, Holding())[0] == {"validation": 0.3}
    assert settle(parse_protocol("last"), {}, Holding())[0] == {"validation": 0.0}
    assert settle(parse_protocol("best-on-test"), {}, Holding())[1] == Holding(test=True)
    with pytest.raises(InputError, match="more than 0"):
        settle(parse_protocol("holdout"), {"validation": 0.0}, Holding())


def test_folds_hold_every_case_out_once_and_groups_whole() -> None:
    labels = [str(case % 3) for case in range(40)]
    groups = [str(case // 4) for case in range(40)]
    for found in (folds(labels, 5, 0), folds(labels, 5, 0, groups)):
        assert sorted(np.concatenate([held_out for _, held_out in found])) == list(range(40))
        assert all(not set(training) & set(held_out) for training, held_out in found)
    for training, held_out in folds(labels, 5, 0, groups):
        assert not {groups[i] for i in training} & {groups[i] for i in held_out}
    with pytest.raises(InputError, match="3 groups cannot be shared out to 4 parts"):
        folds(labels[:12], 4, 0, groups[:12])
    with pytest.raises(InputError, match="leave class 'rare' nothing to learn from"):
        folds(["rare", *labels], 3, 0)
    with pytest.raises(InputError, match="No class has 7 cases"):
        folds([str(case // 2) for case in range(12)], 7, 0)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", [0, 1, 2]), ("4,1", [4, 1]), ("1", [0]), ("7,", None), ("0", None), ("1,1", None)],
)
def test_seeds(text: str, seeds: list[int] | None) -> None:
    if seeds is None:
        with pytest.raises(InputError, match="--seeds"):
            parse_seeds(text)
    else:
        assert parse_seeds(text) == seeds


def test_best_on_test_is_stamped_wherever_it_goes(tsattn: Command, tmp_path: Path) -> None:
    words = ["--protocol", "best-on-test", "--epochs", "2", *SMALL, "--out", "run"]
    done = tsattn("train", VOWELS, *words)
    assert done.code == 0, done.err
    assert (
        "protocol best-on-test: all 270 cases of TRAIN, the epoch of the highest accuracy on TEST" in done.out
    )
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["protocol"].startswith("best-on-test")
    judged = tsattn("eval", "run")
    assert "best-on-test" in judged.out
    assert json.loads(tsattn("eval", "run", "--json").out)["protocol"].startswith("best-on-test")
    assert tsattn("export", "onnx", "run").code == 0
    model = onnxruntime.InferenceSession(tmp_path / "run" / "model.onnx")
    card = json.loads(model.get_modelmeta().custom_metadata_map["tsattn"])
    assert card["protocol"].startswith("best-on-test")
    assert "best-on-test" in tsattn("eval", "run/model.onnx").out
    figures = [metrics["validation"]["accuracy"], json.loads(tsattn("eval", "run", "--json").out)["accuracy"]]
    assert figures[0] == pytest.approx(figures[1])


def test_a_preset_makes_one_model_of_several(tsattn: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "model: {width: 8, heads: 2, layers: 1}\ntraining: {epochs: 1}\n"
        "ensemble: {members: 3, member_tokens: 'conv, linear'}\n",
        "utf-8",
    )
    words = ["train", "GunPoint", "--preset", "mine.yaml", "--seed", "2", "--out", "several"]
    done = tsattn(*words)
    assert done.code == 0, done.err
    assert "one model of them all" in done.out
    configs = [read_config(tmp_path / "several" / f"seed{n}") for n in (6, 7, 8)]  # the third three
    assert [config.model.tokens for config in configs] == ["conv", "linear", "conv"]
    assert json.loads(tsattn("eval", "several", "--json").out)["protocol"].startswith("ensemble of 3")
    typed = tsattn("train", "GunPoint", "--preset", "mine.yaml", "--tokens", "patch:9", "--print-config")
    assert "tokens: patch:9" in typed.out
    listed = tsattn("train", "GunPoint", "--preset", "mine.yaml", "--seeds", "4,9", "--print-config")
    assert listed.out.startswith("# 2 trainings that are one model: seed 4 (conv), seed 9 (linear). Here is")
    assert "seed: 4" in listed.out
    (tmp_path / "slip.yaml").write_text("ensemble: {members: 2, member_tokens: 'conv, wobble'}\n", "utf-8")
    slip = tsattn("train", "GunPoint", "--preset", "slip.yaml", "--out", "slip")
    assert slip.code == 2
    assert "there is no token stage 'wobble'" in slip.err
    assert not (tmp_path / "slip").exists()
    refused = tsattn(*words, "--protocol", "kfold:3")
    assert refused.code == 2
    assert "kfold:3 judges single models" in refused.err


def test_seeds_become_one_model(tsattn: Command, tmp_path: Path) -> None:
    words = ["train", VOWELS, "--seeds", "3,5", "--ensemble", "--epochs", "2", *SMALL, "--out", "both"]
    done = tsattn(*words)
    assert done.code == 0, done.err
    assert "mean" in done.out
    assert "std" in done.out
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "both").rglob("*.safetensors")}
    assert len(before) == 2
    again = tsattn(*words)
    assert again.err.count("finished already") == 2
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "both").rglob("*.safetensors")}

    values = load_split(VOWELS, "test", TableOptions()).collection.values[:30]
    one, two = (load_predictor(tmp_path / "both" / f"seed{n}", "cpu").probabilities(values) for n in (3, 5))
    together = load_predictor(tmp_path / "both", "cpu").probabilities(values)
    np.testing.assert_allclose(together, (one + two) / 2, atol=1e-6)
    assert np.abs(one - two).max() > 1e-3

    found = json.loads(tsattn("eval", "both", "--json").out)
    shares = [member["accuracy"] for member in found["members"]]
    assert found["over_members"]["accuracy"]["mean"] == pytest.approx(sum(shares) / 2)
    assert found["protocol"].startswith("ensemble of 2, each: last")
    assert tsattn("export", "onnx", "both").code == 0
    session = onnxruntime.InferenceSession(tmp_path / "both" / "model.onnx")
    np.testing.assert_allclose(session.run(None, {"values": values})[0], together, atol=1e-5)
    assert tsattn("eval", "both", "--heads").code == 2
    assert "--seed and --seeds both" in tsattn(*words, "--seed", "1").err

    place = words.index("--epochs") + 1
    other = tsattn(*words[:place], "3", *words[place + 1 :])
    assert other.code == 2
    assert "seed3: another training is there, its training.epochs is 2 and not 3" in other.err
    inside = tsattn(*words[:-1], "both/seed3")
    assert "both/seed3: the folder of one run, which cannot hold several" in inside.err
    assert not (tmp_path / "both" / "seed3" / "members.json").exists()


def test_a_cross_validation_holds_every_case_out_once(tsattn: Command, tmp_path: Path) -> None:
    done = tsattn("train", VOWELS, "--protocol", "kfold:3", "--epochs", "1", *SMALL, "--out", "cv")
    assert done.code == 0, done.err
    held_out: list[int] = []
    for part in (1, 2, 3):
        split = json.loads((tmp_path / "cv" / f"part{part}" / "split.json").read_text())
        assert sorted(split["train"] + split["validation"]) == list(range(270))
        held_out += split["validation"]
    assert sorted(held_out) == list(range(270))
    assert read_run(tmp_path / "cv" / "part1").card.protocol.startswith(
        "kfold: part 1 of 3 held out (90 cases)"
    )
    refused = tsattn("export", "onnx", "cv")
    assert refused.code == 2
    assert "holds 3 runs and no model of its own" in refused.err


def test_refit_trains_on_all_cases_for_the_epochs_that_held_out_ones_chose(
    tsattn: Command, tmp_path: Path
) -> None:
    done = tsattn("train", VOWELS, "--protocol", "refit", "--epochs", "4", *SMALL, "--out", "runs/refit")
    assert done.code == 0, done.err
    search, final = tmp_path / "runs" / "refit-search", tmp_path / "runs" / "refit"
    chosen = json.loads((search / "metrics.json").read_text())["epoch"]
    metrics = json.loads((final / "metrics.json").read_text())
    assert (metrics["epoch"], metrics["epochs"]) == (chosen, chosen)
    assert json.loads((final / "split.json").read_text())["train"] == list(range(270))
    assert f"epoch {chosen} of {chosen}" in done.out
    assert metrics["protocol"] == f"refit: all 270 cases of TRAIN, {chosen} epochs as refit-search found"


def test_a_signal_too_late_for_one_of_several_keeps_the_others_from_beginning(
    tsattn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = finish_run

    def finish_while_ctrl_c_comes(*given: Any, **named: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        finish(*given, **named)

    monkeypatch.setattr(workflow, "finish_run", finish_while_ctrl_c_comes)
    done = tsattn("train", "BasicMotions", "--seeds", "2", "--epochs", "1", *SMALL, "--out", "two")
    assert done.code == 130
    assert "two/seed0 is finished. Type the same command again to go on." in done.err
    assert not (tmp_path / "two" / "seed1").exists()

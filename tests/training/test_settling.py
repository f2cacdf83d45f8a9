"""Members that are each trained without another part of TRAIN, and what that part says of their ensemble."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from commands import Command, command_in
from safetensors.torch import load_file
from torch.nn import functional as F

from tsattn.config import EnsembleConfig
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.splits import dealt
from tsattn.errors import InputError
from tsattn.models.attention import parts, registry
from tsattn.models.classifier import TRUST
from tsattn.runs import load_predictor, read_run, read_split_places
from tsattn.training.settling import SAYS, TEMPERATURES, settle, settled

VOWELS = "JapaneseVowels"
RECIPE = """model: {width: 8, heads: 2, layers: 1, tokens: linear, convolutions: 700}
training: {epochs: 1}
ensemble: {members: 2, parts: 3}
"""


@pytest.fixture
def tsattn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """tsattn(*words): the command in `tmp_path`, where mine.yaml is RECIPE."""
    (tmp_path / "mine.yaml").write_text(RECIPE, "utf-8")
    return command_in(tmp_path, monkeypatch, capsys)


def log_probabilities(cases: int, classes: int, sure: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a classifier that is often right, and the classes."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(classes, (cases,), generator=generator)
    logits = torch.randn(cases, classes, generator=generator)
    logits[torch.arange(cases), targets] += 2
    return torch.log_softmax(sure * logits, dim=1), targets


class TestSettled:
    def test_the_say_is_the_mean_of_all_by_how_likely_they_make_the_classes(self) -> None:
        own, targets = log_probabilities(12, 4, 3.0, 0)
        beside = torch.log_softmax(torch.randn(12, 4), dim=1)
        found = settled(own, beside, targets)
        pairs = list(itertools.product(SAYS, TEMPERATURES))
        smooth = 0.25 / 13 + F.one_hot(targets, 4).double() * 12 / 13
        weights = np.array(
            [
                torch.exp((smooth * torch.log_softmax(TRUST * (say * own + beside) / t, dim=1)).sum()).item()
                for say, t in pairs
            ]
        )
        assert found.say == pytest.approx(weights @ [say for say, _ in pairs] / weights.sum(), rel=1e-4)
        logits = TRUST * (found.say * own + beside).double()
        losses = [F.cross_entropy(logits / t, targets, label_smoothing=1 / 13).item() for t in TEMPERATURES]
        assert found.temperature == TEMPERATURES[int(np.argmin(losses))]
        assert found.loss == pytest.approx(min(losses), rel=1e-4)
        right = (TRUST * (found.say * own + beside)).argmax(1) == targets
        assert found.accuracy == pytest.approx(right.float().mean().item())
        assert found.cases == 12

    def test_few_cases_settle_on_middling_values(self) -> None:
        own, targets = log_probabilities(2, 3, 5.0, 1)
        found = settled(own, torch.log_softmax(torch.randn(2, 3), dim=1), targets)
        assert 0.3 < found.say < 1.2

    def test_a_transformer_that_guesses_has_no_say(self) -> None:
        beside, targets = log_probabilities(300, 3, 1.0, 0)
        own = torch.log_softmax(5 * torch.randn(300, 3), dim=1)
        assert settled(own, beside, targets).say < 0.1

    def test_probabilities_become_what_they_should(self) -> None:
        """Log-probabilities that are four times too large are divided by about four."""
        logits = torch.randn(4000, 3)
        targets = torch.distributions.Categorical(logits=logits).sample()
        found = settled(4 * logits, torch.zeros(4000, 3), targets)
        assert found.say == 1
        assert found.temperature == pytest.approx(4, rel=0.2)

    def test_few_cases_that_were_all_right_are_no_reason_to_be_sure(self) -> None:
        targets = torch.arange(10) % 2
        sure = torch.log_softmax(20.0 * F.one_hot(targets, 2), dim=1)
        found = settled(sure, sure, targets)
        shown = torch.softmax(TRUST * (found.say * sure + sure) / found.temperature, dim=1)
        assert 0.9 < shown.amax(dim=1).min() <= shown.amax() < 0.99


def test_members_are_trained_without_a_part_and_settled_by_it(tsattn: Command, tmp_path: Path) -> None:
    words = ["train", VOWELS, "--preset", "mine.yaml", "--threads", "1", "--seed", "1", "--out", "all"]
    done = tsattn(*words)
    assert done.code == 0, done.err
    folder = tmp_path / "all"
    train = load_split(VOWELS, "train", TableOptions()).collection
    assert train.labels is not None
    parts = dealt(train.labels, 3, seed=2)
    for part, name in zip(parts, ("seed2", "seed3"), strict=False):
        assert read_split_places(folder / name) == {
            "train": part[0].tolist(),
            "validation": part[1].tolist(),
        }
        assert read_run(folder / name).card.protocol.startswith("parts: part")
    found = json.loads((folder / "members.json").read_text("utf-8"))["settled"]
    assert found["cases"] == len(parts[0][1]) + len(parts[1][1])
    assert f"{found['cases']} cases held out" in done.out
    assert settle(folder, ["seed2", "seed3"]).__dict__ == found, "the same again"

    values = load_split(VOWELS, "test", TableOptions()).collection.values[:40]
    each = []
    for name in ("seed2", "seed3"):
        model = read_run(folder / name).single()
        assert model.beside is not None
        x = torch.from_numpy(values)
        observed = ~x.isnan().all(dim=1)
        with torch.inference_mode():
            own = torch.log_softmax(model.transformer(x, observed), dim=1)
            logits = TRUST * (found["say"] * own + model.beside(x, observed))
        each.append(torch.softmax(logits / found["temperature"], dim=1).numpy())
    together = load_predictor(folder, "cpu").probabilities(values)
    np.testing.assert_allclose(together, (each[0] + each[1]) / 2, atol=1e-5)

    assert tsattn("export", "onnx", "all").code == 0
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    np.testing.assert_allclose(session.run(None, {"values": values})[0], together, atol=1e-4)

    before = (folder / "members.json").read_bytes()
    assert tsattn(*words).err.count("finished already") == 2
    assert (folder / "members.json").read_bytes() == before
    shown = json.loads(tsattn(*words, "--json").out)
    assert shown["settled"] == found


@pytest.mark.parametrize(
    "words", [["--protocol", "last"], ["--val-fraction", "0.2"], ["--protocol", "holdout"]]
)
def test_what_is_typed_goes_before_the_parts(tsattn: Command, words: list[str]) -> None:
    shown = tsattn("train", VOWELS, "--preset", "mine.yaml", "--print-config", *words).out
    assert shown.startswith("# 2 trainings that are one model: seed 0, seed 1. Here is")
    assert "part 1 of 3" not in shown
    assert (
        "each without another of 3 parts of TRAIN"
        in tsattn("train", VOWELS, "--preset", "mine.yaml", "--print-config").out
    )


def test_an_ensemble_is_not_calibrated_on_what_it_was_trained_on(tsattn: Command) -> None:
    assert tsattn("train", VOWELS, "--preset", "mine.yaml", "--threads", "1", "--out", "all").code == 0
    assert tsattn("data", "convert", VOWELS, "--split", "train", "-o", "same.npz").code == 0
    for called in (VOWELS, "same.npz"):
        refused = tsattn("export", "onnx", "all", "--temperature", "--calibrate", called)
        assert refused.code == 2
        assert f"--temperature: {called} was trained on" in refused.err


def test_nothing_of_a_member_is_of_cases_that_it_holds_out(tsattn: Command, tmp_path: Path) -> None:
    """Statistics, thresholds, transformer and ridge stay the same to the last bit when those are others."""
    assert tsattn("data", "convert", VOWELS, "--split", "train", "-o", "x.npz").code == 0
    arrays = dict(np.load(tmp_path / "x.npz"))
    weights = []
    for out in ("before", "after"):
        assert tsattn("train", "x.npz", "--preset", "mine.yaml", "--threads", "1", "--out", out).code == 0
        found = load_file(tmp_path / out / "seed0" / "model.safetensors")
        other = load_file(tmp_path / out / "seed1" / "model.safetensors")
        weights.append((found, other))
        held_out = read_split_places(tmp_path / out / "seed0")["validation"]
        arrays["X"][held_out] = 1e4 - 50 * arrays["X"][held_out] ** 2
        np.savez(tmp_path / "x.npz", **arrays)
    (before, others_before), (after, others_after) = weights
    assert any(name.startswith("beside.common.thresholds") for name in before)
    assert [name for name in before if not torch.equal(before[name], after[name])] == []
    assert not torch.equal(others_before["beside.weight"], others_after["beside.weight"])


def test_a_folder_of_members_that_is_not_whole(tsattn: Command, tmp_path: Path) -> None:
    words = ["train", VOWELS, "--preset", "mine.yaml", "--threads", "1", "--out", "all"]
    assert tsattn(*words).code == 0
    folder = tmp_path / "all"
    listed = (folder / "members.json").read_bytes()
    weights = {place: place.read_bytes() for place in folder.glob("*/model.safetensors")}

    (folder / "members.json").unlink()  # as a kill leaves it before the last line
    for reading in (["eval", "all"], ["show", "all"], ["train", "--resume", "all"]):
        refused = tsattn(*reading)
        assert refused.code == 2
        assert "is missing; it holds the runs seed0, seed1. Name one of them; if" in refused.err
    shutil.rmtree(folder / "seed1")
    (folder / "members.json").write_bytes(listed)
    assert "members.json: names seed1, which is not there. Put it back" in tsattn("eval", "all").err
    assert tsattn(*words).code == 0
    assert (folder / "members.json").read_bytes() == listed
    assert {place: place.read_bytes() for place in folder.glob("*/model.safetensors")} == weights

    other = ["BasicMotions", "--preset", "mine.yaml", "--threads", "1", "--seed", "1", "--out", "other"]
    assert tsattn("train", *other).code == 0
    shutil.move(tmp_path / "other" / "seed2", folder)
    (folder / "members.json").write_bytes(listed.replace(b"seed1", b"seed2"))
    refused = tsattn("show", "all")
    assert refused.code == 2
    assert "names seed2, whose classes or channels are not those of seed0" in refused.err


@pytest.mark.parametrize("parts", [1, 4])
def test_too_few_parts(parts: int) -> None:
    with pytest.raises(InputError, match=rf"parts {parts}: expected 0, .* at least 5, one a member"):
        EnsembleConfig(members=5, parts=parts)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"say": -1},
        {"temperature": 0},
        {"temperature": float("inf")},
        {"say": "much"},
        {"say": 1e300},
        {"more": 1},
    ],
)
def test_a_spoilt_list_of_members(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    good = {"say": 1.0, "temperature": 1.0, "cases": 3, "loss": 0.1, "accuracy": 1.0}
    content = {"format": 1, "ensemble": True, "members": ["seed0"], "settled": {**good, **spoilt}}
    (tmp_path / "members.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match=r"members\.json: not a list of runs .* Type the training again"):
        read_run(tmp_path)


COLD = """\
from torch.nn import functional as F

from tsattn.models.attention.contract import Mechanism
from tsattn.models.attention.registry import core


@core("chilly", summary="softmax at a low temperature", cost="N²", source="an example", option="T")
class Chilly(Mechanism):
    def __init__(self, heads, option=None):
        super().__init__()

    def forward(self, q, k, v, observed):
        mask = None if observed is None else observed[:, None, None, :].expand(-1, 1, q.shape[2], -1)
        return F.scaled_dot_product_attention(2 * q, k, v, attn_mask=mask)
"""


def test_members_of_an_attention_of_ones_own(
    tsattn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user named the file, so what the folders hold of it needs no other word, also when typed again."""
    ours = {part.name: part for part in parts() if part.origin is None}
    (tmp_path / "chilly.py").write_text(COLD, "utf-8")
    words = ["train", VOWELS, "--preset", "mine.yaml", "--threads", "1", "--seed", "1", "--out", "all"]
    for _ in range(2):
        monkeypatch.setattr(registry, "_PARTS", dict(ours))
        done = tsattn(*words, "--attention", "chilly.py:chilly")
        assert done.code == 0, done.err
        assert "cases held out" in done.out
    monkeypatch.setattr(registry, "_PARTS", dict(ours))
    assert "type --allow-code" in tsattn("eval", "all").err
    inside = tsattn("attention", "weights", "all", "--case", "0", "-o", "w.npz", "--allow-code")
    assert f"Name one of its members, e.g. {Path('all') / 'seed2'}." in inside.err

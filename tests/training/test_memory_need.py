"""What a step needs of memory, beside what real steps take; and trainings that have too little."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tsattn import host
from tsattn.config import ModelConfig
from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.models.classifier import TransformerClassifier
from tsattn.training import fitting, memory_free
from tsattn.training.fitting import Series, largest_batch, needs_of, refuse_too_large
from tsattn.training.memory_free import free_bytes
from tsattn.training.memory_need import bytes_of_a_step
from tsattn.training.plan import parse_batch_size, plan

CPU = torch.device("cpu")
TWO = ModelConfig(channels=2, classes=2)
SMALL = replace(TWO, width=16, heads=2, layers=1, attention="softmax", tokens="linear")
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks are told by Linux")


def taken(*words: str) -> Any:
    script = Path(__file__).with_name("memory_steps.py")
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cases(count: int, timepoints: int) -> Collection:
    labels = tuple("ab"[case % 2] for case in range(count))
    values = np.zeros((count, 2, timepoints), np.float32)
    ids = tuple(map(str, range(count)))
    return Collection(values=values, ids=ids, channels=("x", "y"), labels=labels, classes=("a", "b"))


@linux
def test_real_steps_take_what_is_estimated() -> None:
    for one in taken("measure"):
        assert 1 / 1.6 < one["peak"] / one["estimate"] < 1.6, one


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return dict(taken("limited", str(tmp_path_factory.mktemp("limited"))))


@linux
def test_what_cannot_fit_is_refused_with_what_would(limited: dict[str, Any]) -> None:
    message = limited["refusal"]
    assert "one case of 17,984 timepoints would need about" in message
    assert not limited["began"]
    free = int(re.search(r"(\d+) MB are free", message)[1])  # type: ignore[index]
    patch, needs = re.search(r"--tokens (patch:\d+) \(needs (\d+) MB\)", message).groups()  # type: ignore[union-attr]
    series = Series(channels=2, timepoints=17_984, complete=True)
    config = ModelConfig(channels=2, classes=2, attention="softmax", tokens=patch, dropout=0.0)
    estimate = needs_of(config, 1, series, CPU)
    assert estimate is not None
    assert round(estimate / 1e6) == int(needs) <= free


@linux
def test_fewer_cases_at_once_where_a_batch_does_not_fit(limited: dict[str, Any]) -> None:
    (said,) = limited["fewer"]
    assert re.fullmatch(r"A step on 16 cases of up to 600 .* beginning with [1-8] at once .*", said)


@linux
def test_training_survives_that_memory_runs_out(limited: dict[str, Any]) -> None:
    assert limited["ran_out"]
    assert all(said.startswith("Memory ran out with") for said in limited["ran_out"])


@linux
def test_gradients_of_parts_train_the_same(limited: dict[str, Any]) -> None:
    assert not limited["free"]
    assert max(limited["differences"]) < 1e-4


@pytest.mark.parametrize("spec", ["softmax", "local:32"])
@pytest.mark.parametrize("complete", [True, False])
def test_the_fused_kernel_is_counted_and_no_matrix_of_all_tokens(spec: str, complete: bool) -> None:
    model = TransformerClassifier(ModelConfig(channels=2, classes=2, attention=spec))
    short, long = (bytes_of_a_step(model, 1, 2, length, complete) for length in (4096, 16_384))
    assert short is not None
    assert long is not None
    assert long < 4.1 * short


def test_neither_the_model_nor_the_generator_changes() -> None:
    model = TransformerClassifier(TWO).eval()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    assert bytes_of_a_step(model, 3, 2, 50, False)
    assert torch.equal(torch.get_rng_state(), state)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_the_model_need_not_be_there() -> None:
    series = Series(channels=2, timepoints=50, complete=True)
    assert needs_of(TWO, 3, series, CPU) == bytes_of_a_step(TransformerClassifier(TWO), 3, 2, 50, True)


def test_what_looks_at_values_cannot_be_estimated() -> None:
    class Curious(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(5, 2)

        def forward(self, values: Tensor, complete: bool) -> Tensor:
            return self.head(values[:, 0] / (1.0 if values.sum().item() > 0 else 2.0))

    assert bytes_of_a_step(Curious(), 3, 2, 5, True) is None


def test_auto_fits_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    many = cases(400, 100)
    asked = {"width": 16, "heads": 2, "layers": 1, "attention": "softmax", "tokens": "linear"}
    series = Series(channels=2, timepoints=100, complete=True)
    needs = {size: needs_of(SMALL, size, series, CPU) or 0 for size in (8, 16)}
    for free, expected in (
        (10**15, 64),
        (2 * needs[16], 16),
        (2 * needs[16] - 2, 8),
        (2 * needs[8], 8),
        (0, 1),
    ):
        monkeypatch.setattr(fitting, "free_bytes", lambda device, free=free: free)
        assert largest_batch(SMALL, many, CPU) == expected
    monkeypatch.setattr(fitting, "free_bytes", lambda device: 10**15)
    assert largest_batch(SMALL, cases(40, 100), CPU) == 8  # at most a quarter of the cases
    assert plan(many, "base", {**asked, "batch_size": "auto"}).training.batch_size == 64
    monkeypatch.setattr(fitting, "free_bytes", lambda device: None)
    assert plan(many, "base", {**asked, "batch_size": "auto"}).training.batch_size == 16  # the rule


def test_words_for_a_batch() -> None:
    assert (parse_batch_size("auto"), parse_batch_size("7")) == ("auto", 7)


@pytest.mark.parametrize("word", ["0", "-1", "many", "AUTO", "1.5", "", "9" * 30])
def test_bad_words_for_a_batch(word: str) -> None:
    with pytest.raises(InputError, match=r"--batch-size .*auto"):
        parse_batch_size(word)


@linux
@pytest.mark.parametrize(
    ("line", "folder", "names"),
    [
        ("0::/job/part", ".", ("memory.max", "memory.current", "inactive_file")),
        (
            "4:memory:/job/part",
            "memory",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
)
@pytest.mark.parametrize("group", ["job", "job/part", "."])
def test_limits_of_control_groups(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    line: str,
    folder: str,
    names: tuple[str, ...],
    group: str,
) -> None:
    place = tmp_path / folder / group
    place.mkdir(parents=True, exist_ok=True)
    for name, text in zip(
        (*names[:2], "memory.stat"), ("5000", "4000", f"anon 9\n{names[2]} 700"), strict=True
    ):
        (place / name).write_text(f"{text}\n")
    lines = host._lines
    monkeypatch.setattr(host, "CGROUPS", tmp_path)
    monkeypatch.setattr(host, "_lines", lambda f: [line] if f == "/proc/self/cgroup" else lines(f))
    monkeypatch.setattr(memory_free, "kept_bytes", lambda: 300)
    assert free_bytes(CPU) == 2000
    (place / names[0]).write_text("max\n")
    assert (free_bytes(CPU) or 0) > 10**7


def test_a_model_too_large_for_this_machine_is_refused_before_it_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = replace(SMALL, layers=7)
    weights = sum(parameter.numel() for parameter in TransformerClassifier(shape).parameters())
    monkeypatch.setattr(fitting, "free_bytes", lambda device: 16 * weights)
    refuse_too_large(shape, CPU)
    monkeypatch.setattr(fitting, "free_bytes", lambda device: 16 * weights - 1)
    with pytest.raises(InputError, match=f"7 layers of width 16 has {weights:,} weights"):
        refuse_too_large(shape, CPU)
    with pytest.raises(InputError, match="--width or --layers"):
        refuse_too_large(replace(shape, width=32_000, layers=400), CPU)

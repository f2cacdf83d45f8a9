"""Every core, every pair of core and wrapper, and every token word: ONNX Runtime says what torch says.

Real series, lengths and batch sizes that the trace never saw, gaps, and cases with nothing observed.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.errors import InputError
from tsattn.export.attention_law import untrained
from tsattn.export.onnx import write_onnx
from tsattn.export.parity import compare
from tsattn.inference.session import open_model
from tsattn.models.attention import parse, parts
from tsattn.models.tokens import token_words
from tsattn.runs import TorchPredictor

NEEDS_OPTION = {"patch": "patch:5,3"}


def core_and_wrapper_pairs() -> list[str]:
    """Every core alone and in every wrapper that it can stand in, and some of three and four parts."""
    cores = [part.name for part in parts("core")]
    pairs = [f"{core}+{wrapper.name}" for core in cores for wrapper in parts("wrapper")]
    return [*cores, *filter(makes_sense, pairs), "bn+sh", "bn:learn+sh:conv,1,3", "local:4+sh+conv+bn"]


def makes_sense(spec: str) -> bool:
    try:
        parse(spec)
    except InputError:
        return False
    return True


@pytest.fixture(scope="module")
def vowels() -> Collection:
    return load_split("JapaneseVowels", "test", TableOptions()).collection


@pytest.mark.parametrize(
    ("attention", "tokens"),
    [(spec, "linear") for spec in core_and_wrapper_pairs()]
    + [("bn", NEEDS_OPTION.get(word.name, word.name)) for word in token_words()],
)
def test_the_model_file_agrees(attention: str, tokens: str, vowels: Collection, tmp_path: Path) -> None:
    run = untrained(vowels, attention, tokens)
    path = tmp_path / "model.onnx"
    write_onnx(run.model, run.card, path)
    exported = open_model(path, "cpu")
    parity = compare(TorchPredictor(run, torch.device("cpu")), exported, vowels)
    assert parity.holds, (parity.difference, parity.changed)
    assert {(one.cases) for one in parity.comparisons} == {1, 3, 64}
    assert len({one.length for one in parity.comparisons}) == 3
    assert exported.card == run.card
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]  # no data beside the file


def test_the_file_says_nothing_of_the_machine_it_was_made_on(vowels: Collection, tmp_path: Path) -> None:
    run = untrained(vowels, "softmax", "linear")
    write_onnx(run.model, run.card, tmp_path / "model.onnx")
    content = (tmp_path / "model.onnx").read_bytes()
    assert b"site-packages" not in content
    assert b".py" not in content
    assert str(Path(__file__).parents[2]).encode() not in content


def test_batch_and_time_are_free(vowels: Collection, tmp_path: Path) -> None:
    run = untrained(vowels, "bn", "linear")
    write_onnx(run.model, run.card, tmp_path / "model.onnx")
    graph = onnx.load(tmp_path / "model.onnx").graph
    (values,) = graph.input
    batch, channels, time = values.type.tensor_type.shape.dim
    assert (batch.dim_param, channels.dim_value, time.dim_param) == ("batch", 12, "time")


def test_a_difference_is_seen(vowels: Collection) -> None:
    """The comparison itself can fail: two models that differ in one weight do not hold."""
    run, other = untrained(vowels, "bn", "linear"), untrained(vowels, "bn", "linear")
    with torch.no_grad():
        other.single().head.bias[0] += 0.01
    cpu = torch.device("cpu")
    assert compare(TorchPredictor(run, cpu), TorchPredictor(run, cpu), vowels).holds
    assert not compare(TorchPredictor(run, cpu), TorchPredictor(other, cpu), vowels).holds
    with torch.no_grad():
        other.single().head.bias[0] = float("nan")
    assert not compare(TorchPredictor(run, cpu), TorchPredictor(other, cpu), vowels).holds

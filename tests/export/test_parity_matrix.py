"""Attention × tokens × dtype × opset: ONNX Runtime says what torch says.

Real series, lengths and batch sizes that the trace never saw, gaps, and cases with nothing observed. The
words come from the registries. Every one of them occurs in some file here, since a file takes ten seconds to
export; every two occur together in those of `make test-slow`; `make test-exhaustive` makes all there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.errors import InputError
from tsattn.export.attention_law import untrained
from tsattn.export.half import in_half
from tsattn.export.onnx import save, to_proto, write_onnx
from tsattn.export.opsets import DEFAULT_OPSET, IR_VERSION, OLDEST_RUNTIME
from tsattn.export.parity import Parity, compare
from tsattn.export.quantise import quantised
from tsattn.inference.session import open_model
from tsattn.models.attention import parse, parts
from tsattn.models.tokens import token_words
from tsattn.runs import Run, TorchPredictor

NEEDS_OPTION = {"patch": "patch:5,3"}
OF_SEVERAL_PARTS = ("bn+sh", "bn:learn+sh:conv,1,3", "local:4+sh+conv+bn")
CORES = [part.name for part in parts("core")]
WRAPPERS = ["", *(part.name for part in parts("wrapper"))]
TOKENS = [NEEDS_OPTION.get(word.name, word.name) for word in token_words()]
DTYPES = ("fp32", "fp16", "int8 dynamic", "int8 static")
OPSETS = [str(opset) for opset in OLDEST_RUNTIME]

Row = tuple[str, ...]


def spec_of(core: str, wrapper: str) -> str:
    return f"{core}+{wrapper}" if wrapper else core


def makes_sense(row: Row) -> bool:
    try:
        parse(spec_of(row[0], row[1]))
    except InputError:
        return False
    return True


def together_in(row: Row, count: int) -> set[tuple[tuple[int, str], ...]]:
    """Every `count` of its words, each with the place of its factor."""
    return set(itertools.combinations(enumerate(row), count))


def covering(factors: Sequence[Sequence[str]], allowed: Callable[[Row], bool], count: int) -> list[Row]:
    """Rows of one word a factor, each time the one with most of what is missing: every `count` words."""
    rows = [row for row in itertools.product(*factors) if allowed(row)]
    missing = set().union(*(together_in(row, count) for row in rows))
    chosen: list[Row] = []
    while missing:
        chosen.append(max(rows, key=lambda row: len(together_in(row, count) & missing)))
        missing -= together_in(chosen[-1], count)
    return chosen


FACTORS = (CORES, WRAPPERS, TOKENS, DTYPES, OPSETS)
EVERY_WORD, EVERY_TWO = (covering(FACTORS, makes_sense, count) for count in (1, 2))


@pytest.fixture(scope="module")
def vowels() -> Collection:
    return load_split("JapaneseVowels", "test", TableOptions()).collection


def in_dtype(run: Run, dtype: str, opset: int, series: Collection) -> onnx.ModelProto:
    model = in_half(run.model, wide_attention=True) if dtype == "fp16" else run.model
    proto = to_proto(model, run.card, opset)
    if dtype == "int8 static":
        return quantised(proto, [series.values[:32, :, :15], series.values[32:64]])
    return quantised(proto) if dtype == "int8 dynamic" else proto


def parity_of(run: Run, proto: onnx.ModelProto, series: Collection, path: Path) -> Parity:
    save(proto, run.card, path)
    exported = open_model(path, "cpu")
    assert exported.card == run.card
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # no data beside the file
    return compare(TorchPredictor(run, torch.device("cpu")), exported, series)


def holds(parity: Parity, dtype: str) -> bool:
    """Smaller types are judged by accuracy, which random weights do not have: here only by what is coarse."""
    if dtype == "fp32":
        return parity.holds
    return bool(np.isfinite(parity.difference)) and parity.changed <= parity.cases // 10


@pytest.mark.parametrize(
    ("attention", "tokens", "dtype", "opset"),
    [
        *((spec_of(*row[:2]), *row[2:]) for row in EVERY_WORD),
        *(
            pytest.param(spec_of(*row[:2]), *row[2:], marks=pytest.mark.slow)
            for row in EVERY_TWO
            if row not in EVERY_WORD
        ),
        *((spec, "linear", "fp32", str(DEFAULT_OPSET)) for spec in OF_SEVERAL_PARTS),
    ],
)
def test_the_model_file_agrees(
    attention: str, tokens: str, dtype: str, opset: str, vowels: Collection, tmp_path: Path
) -> None:
    run = untrained(vowels, attention, tokens)
    proto = in_dtype(run, dtype, int(opset), vowels)
    parity = parity_of(run, proto, vowels, tmp_path / "model.onnx")
    assert holds(parity, dtype), (parity.difference, parity.changed, parity.cases)
    assert {one.cases for one in parity.comparisons} == {1, 3, 64}
    assert len({one.length for one in parity.comparisons}) == 3
    (imported,) = (one.version for one in proto.opset_import if not one.domain)
    assert (imported, proto.ir_version) == (int(opset), IR_VERSION[int(opset)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize(
    "attention",
    [
        *(spec_of(*row) for row in itertools.product(CORES, WRAPPERS) if makes_sense(row)),
        *OF_SEVERAL_PARTS,
    ],
)
def test_every_model_file_agrees(attention: str, tokens: str, vowels: Collection, tmp_path: Path) -> None:
    run = untrained(vowels, attention, tokens)
    for opset, dtype in itertools.product(OPSETS, DTYPES):
        proto = in_dtype(run, dtype, int(opset), vowels)
        parity = parity_of(run, proto, vowels, tmp_path / "model.onnx")
        assert holds(parity, dtype), (opset, dtype, parity.difference, parity.changed, parity.cases)


def test_rows_that_cover_hold_every_pair_and_are_few() -> None:
    for rows, count, most in ((EVERY_WORD, 1, 12), (EVERY_TWO, 2, 40)):
        wanted = set().union(
            *(together_in(row, count) for row in itertools.product(*FACTORS) if makes_sense(row))
        )
        assert set().union(*(together_in(row, count) for row in rows)) == wanted
        assert len(rows) < most


def test_the_file_says_nothing_of_the_machine_it_was_made_on(vowels: Collection, tmp_path: Path) -> None:
    """And batch and time are free in it."""
    run = untrained(vowels, "bn", "linear")
    write_onnx(run.model, run.card, tmp_path / "model.onnx")
    content = (tmp_path / "model.onnx").read_bytes()
    assert b"site-packages" not in content
    assert b".py" not in content
    assert str(Path(__file__).parents[2]).encode() not in content
    (values,) = onnx.load(tmp_path / "model.onnx").graph.input
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


def test_no_number_in_one_batch_is_seen(vowels: Collection) -> None:
    ours = TorchPredictor(untrained(vowels, "bn", "linear"), torch.device("cpu"))
    same = compare(ours, ours, vowels)
    for place in range(len(same.comparisons)):
        spoilt = list(same.comparisons)
        spoilt[place] = replace(spoilt[place], difference=float("nan"))
        assert not Parity(comparisons=tuple(spoilt)).holds

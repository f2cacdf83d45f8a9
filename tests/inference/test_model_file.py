"""Opening a model file: the card, the device really in use, and what is no model of ours."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tsattn.errors import CheckFailed, InputError
from tsattn.inference import cuda
from tsattn.inference.bound import BoundSession
from tsattn.inference.session import INPUT, OUTPUT, open_model

MakeModel = Callable[..., Path]


def reference(values: np.ndarray, model: Path) -> np.ndarray:
    constants = {w.name: numpy_helper.to_array(w) for w in onnx.load(model).graph.initializer}
    seen = ~np.isnan(values)
    mean = np.where(seen, values, 0).sum(2, dtype=np.float64) / np.maximum(seen.sum(2), 1)
    logits = mean @ constants["weights"].astype(np.float64)
    exp = np.exp(logits - logits.max(1, keepdims=True))
    return exp / exp.sum(1, keepdims=True)


def test_card_and_probabilities_come_from_the_file(make_model: MakeModel) -> None:
    path = make_model(("b", "A"), ("x", "y"), {"id": "case"})
    predictor = open_model(path, "cpu")
    assert predictor.card.classes == ("b", "A")
    assert predictor.card.table == {"id": "case"}
    assert predictor.provider == "CPUExecutionProvider"
    rng = np.random.default_rng(1)
    for shape in [(1, 2, 1), (3, 2, 7), (64, 2, 29)]:
        values = rng.normal(size=shape).astype(np.float32)
        values[rng.random(shape) < 0.2] = np.nan
        np.testing.assert_allclose(predictor.probabilities(values), reference(values, path), atol=1e-6)


def test_nothing_observed_and_no_timepoint_are_the_same(make_model: MakeModel) -> None:
    predictor = open_model(make_model(("a", "b", "c"), ("x",)), "cpu")
    unobserved = predictor.probabilities(np.full((2, 1, 5), np.nan, np.float32))
    assert np.isfinite(unobserved).all()
    np.testing.assert_array_equal(predictor.probabilities(np.empty((2, 1, 0), np.float32)), unobserved)
    assert predictor.probabilities(np.empty((0, 1, 5), np.float32)).shape == (0, 3)


def test_parallel_calls_share_the_cores(make_model: MakeModel) -> None:
    path = make_model(("a", "b"), ("x",))
    assert open_model(path, "cpu", 4).callers == 1
    assert open_model(path, "cpu", 4, parallel_calls=True).callers == 4
    assert open_model(path, "cpu", 64, parallel_calls=True).callers == 8


def test_wrong_number_of_channels_names_the_right_ones(make_model: MakeModel) -> None:
    predictor = open_model(make_model(("a", "b"), ("x", "y")), "cpu")
    with pytest.raises(InputError, match=r"3 channels.*trained on 2: x, y"):
        predictor.probabilities(np.zeros((1, 3, 4), np.float32))


def test_what_is_no_model_of_ours_is_refused_with_one_message(make_model: MakeModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model file"):
        open_model(tmp_path / "absent.onnx")
    with pytest.raises(InputError, match="is a folder"):
        open_model(tmp_path)
    for name, content in [
        ("empty.onnx", b""),
        ("text.onnx", b"id,x\n1,2\n"),
        ("noise.onnx", bytes(range(256)) * 9),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            open_model(tmp_path / name)
    whole = make_model(("a", "b"), ("x",)).read_bytes()
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cut\.onnx"):
        open_model(tmp_path / "cut.onnx")


def test_a_foreign_onnx_file_is_told_from_ours(make_model: MakeModel, tmp_path: Path) -> None:
    foreign = onnx.load(make_model(("a", "b"), ("x",)))
    del foreign.metadata_props[:]
    onnx.save(foreign, tmp_path / "foreign.onnx")
    with pytest.raises(InputError, match=r"not one of tsattn's.*no model card"):
        open_model(tmp_path / "foreign.onnx")


def test_a_card_of_another_format_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(InputError, match=r"model\.onnx: model card of format 99"):
        open_model(make_model(("a", "b"), ("x",), format=99))


def test_devices(make_model: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_model(("a", "b"), ("x",))
    with pytest.raises(InputError, match="mps: onnxruntime runs on cpu and cuda only"):
        open_model(path, "mps")
    monkeypatch.setattr(cuda, "obstacle", lambda: "no driver")
    with pytest.raises(CheckFailed, match=r"cannot be had: no driver.*--device cpu"):
        open_model(path, "cuda")
    assert open_model(path, "auto").provider == "CPUExecutionProvider"


@pytest.mark.skipif(cuda.obstacle() is None, reason="this machine has a GPU")
def test_providers_are_had_or_refused(make_model: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_model(("a", "b"), ("x",))
    assert open_model(path, providers="cpu").provider == "CPUExecutionProvider"
    for device, providers, said in (
        ("auto", "cuda,fast", "'fast' is none"),
        ("auto", "cuda,cuda", "each once"),
        ("cpu", "cuda", "do not go together"),
        ("cuda:x", None, "cuda:x: onnxruntime runs on cpu and cuda only"),
    ):
        with pytest.raises(InputError, match=said):
            open_model(path, device, providers=providers)
    monkeypatch.setattr(cuda, "obstacle", lambda: None)
    for device, providers in (("cuda:1", None), ("auto", "cuda"), ("auto", "tensorrt,cuda")):
        asked = f"--providers {providers}" if providers else "--device cuda:1"
        with pytest.raises(CheckFailed, match=f"{asked} was asked for and cannot be had"):
            open_model(path, device, providers=providers)
    options = cuda.asked_for("cuda:1", "tensorrt,cuda").with_options()
    assert [(name, choice["device_id"]) for name, choice in options] == [
        (cuda.TENSORRT, "1"),
        (cuda.CUDA, "1"),
    ]


def test_bound_batches_get_the_answers_of_plain_ones(make_model: MakeModel) -> None:
    """On the CPU: the slots and their buffers, from several threads, batches growing and shrinking."""
    predictor = open_model(make_model(("a", "b", "c"), ("x", "y")), "cpu")
    bound = BoundSession(predictor._session, INPUT, OUTPUT)
    generator = np.random.default_rng(0)
    batches = [generator.normal(size=(n % 7 + 1, 2, 3 + n % 11)).astype(np.float32) for n in range(60)]
    with ThreadPoolExecutor(4) as pool:
        for values, found in zip(batches, pool.map(bound.run, batches), strict=True):
            np.testing.assert_allclose(found, predictor.probabilities(values), atol=1e-6)


@pytest.mark.skipif(cuda.obstacle() is None, reason="this machine has a GPU")
def test_a_driver_without_its_libraries_is_no_gpu(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without an obstacle known beforehand, the provider of the session made is what counts."""
    path = make_model(("a", "b"), ("x",))
    monkeypatch.setattr(cuda, "obstacle", lambda: None)
    with pytest.raises(CheckFailed, match="cannot be had"):
        open_model(path, "cuda")
    assert open_model(path, "auto").provider == "CPUExecutionProvider"
    assert "it is not used" in caplog.text


class Runtime:
    """Stands for CUDA's: notes what is locked."""

    def __init__(self) -> None:
        self.locked: set[int] = set()
        self.calls = 0

    def cudaHostRegister(self, address: Any, size: Any, flags: int) -> int:
        assert size.value > 0
        self.locked.add(address.value)
        self.calls += 1
        return 0

    def cudaHostUnregister(self, address: Any) -> int:
        self.locked.remove(address.value)
        return 0


def test_memory_of_a_gpu_session_is_locked_and_let_go(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    monkeypatch.setattr("tsattn.inference.bound._cuda_runtime", lambda: runtime)
    predictor = open_model(make_model(("a", "b"), ("x",)), "cpu")
    bound = BoundSession(predictor._session, INPUT, OUTPUT)
    for length in (4, 400, 3, 4000):
        values = np.ones((2, 1, length), np.float32)
        np.testing.assert_allclose(bound.run(values), predictor.probabilities(values), atol=1e-6)
    assert 1 < runtime.calls < 5
    assert len(runtime.locked) == 2  # one a slot
    del bound
    gc.collect()
    assert not runtime.locked


def test_no_timepoint_is_one_that_nobody_saw(make_model: MakeModel) -> None:
    """Kernels divide by the length, so none may get a length of zero."""
    predictor = open_model(make_model(("a", "b"), ("x", "y")), "cpu")
    expected = predictor.probabilities(np.full((3, 2, 1), np.nan, np.float32))
    asked: list[tuple[int, ...]] = []

    class Noting:
        def run(self, outputs: list[str], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
            asked.append(feed["values"].shape)
            return session.run(outputs, feed)

    session = predictor._session
    predictor._session = Noting()
    np.testing.assert_array_equal(predictor.probabilities(np.empty((3, 2, 0), np.float32)), expected)
    assert asked == [(3, 2, 1)]

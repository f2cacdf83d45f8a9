"""tsattn doctor: engines that work, lie, crash and hang; packages and places that are not as they should."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from typer.testing import CliRunner

from tsattn import host
from tsattn.cli.app import app
from tsattn.doctor import engines, machine, packages, trials
from tsattn.doctor.findings import Finding
from tsattn.doctor.onnx_trial import MODEL, try_provider
from tsattn.errors import CheckFailed

GOOD_TORCH = {
    "version": "2.13.0+cu130",
    "cuda": "13.0",
    "cudnn": 91000,
    "threads": 2,
    "import_seconds": 2.0,
    "why_no_cuda": None,
    "devices": [
        {"device": "cpu", "name": "CPU", "bytes": None, "right": True, "said": ""},
        {"device": "cuda:0", "name": "A GPU", "bytes": 24 * 10**9, "right": True, "said": ""},
    ],
}
HERE = {
    "version": "1.31.1",
    "cuda": "13.0",
    "providers": ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
}
COMPUTES = {"right": True, "said": "", "took": 0.3}


def named(findings: Any, name: str) -> Finding:
    (found,) = [one for one in findings if one.name == name]
    return found


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What the trials say: all is well on a GPU with a driver for CUDA 13.2."""
    said: dict[str, dict[str, Any]] = {"torch": GOOD_TORCH, "onnxruntime": HERE}
    said |= {provider: {**COMPUTES, "used": provider} for provider in HERE["providers"]}
    monkeypatch.setattr(engines, "tried", lambda *words: said[words[-1]])
    monkeypatch.setattr(engines, "driver_cuda", lambda: (13, 2))
    return said


def test_this_machine_can_do_everything_in_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert document["jobs"] == {"train": True, "export": True, "predict": True}
    findings = {one["name"]: one for one in document["findings"]}
    assert findings["CPUExecutionProvider"]["value"].startswith("computes")
    assert findings["torch on cpu"]["value"] == "CPU, computes"
    assert findings["torch"]["value"].startswith(importlib.metadata.version("torch"))
    if engines.driver_cuda() is None and "TensorrtExecutionProvider" in findings:
        for provider in ("CUDAExecutionProvider", "TensorrtExecutionProvider"):
            assert findings[provider]["state"] == "absent"
            assert "it computes with CPUExecutionProvider and says nothing" in findings[provider]["value"]


def test_the_model_of_the_trial_is_sound() -> None:
    model = onnx.load_from_string(MODEL)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Conv", "MatMul"]
    assert (model.ir_version, model.opset_import[0].version) == (8, 17)  # what old runtimes read too
    assert try_provider("CPUExecutionProvider") == {"used": "CPUExecutionProvider", "right": True, "said": ""}


def test_a_gpu_that_works(answers: dict[str, dict[str, Any]]) -> None:
    found = list(engines.engines(("train", "predict")))
    assert {one.state for one in found} == {"good"}
    assert named(found, "torch on cuda:0").value == "A GPU, 24.0 GB, computes"


@pytest.mark.parametrize(
    ("answer", "driver", "why"),
    [
        (
            {"used": "CPUExecutionProvider", "said": "Failed to load libcudnn.so.9"},
            (13, 0),
            "libcudnn.so.9; it",
        ),
        (
            {"used": "CPUExecutionProvider"},
            (12, 4),
            "runs CUDA 12.4 and older, onnxruntime is built for 13.0",
        ),
        ({"used": "CUDAExecutionProvider", "right": False}, (13, 0), "its result is wrong"),
        ({"failed": "the process was ended by SIGSEGV"}, (13, 0), "not usable: the process was ended by"),
        ({"used": "CPUExecutionProvider"}, None, "no NVIDIA driver"),
    ],
)
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_gpu_that_onnxruntime_does_not_use(
    answer: dict[str, Any],
    driver: tuple[int, int] | None,
    why: str,
    device: str,
    answers: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers["CUDAExecutionProvider"] = {**COMPUTES, **answer}
    monkeypatch.setattr(engines, "driver_cuda", lambda: driver)
    found = named(engines.engines(("predict",), device), "CUDAExecutionProvider")
    assert why in found.value
    assert found.state == ("broken" if device == "cuda" else "note" if driver else "absent")
    assert ("onnxruntime-gpu[cuda,cudnn]" in found.advice) == (driver is not None)


def test_engines_that_do_not_work(answers: dict[str, dict[str, Any]]) -> None:
    answers["torch"] = {"failed": "ImportError: libgomp", "took": 1}
    answers["CPUExecutionProvider"] = {"failed": "the process was ended by SIGILL", "took": 1}
    found = list(engines.engines(("train", "predict")))
    assert named(found, "torch").jobs == ("train", "export")
    assert named(found, "CPUExecutionProvider").value == "not usable: the process was ended by SIGILL"
    assert [one.name for one in found if one.state == "broken"] == ["torch", "CPUExecutionProvider"]
    answers["onnxruntime"] = {"failed": "ImportError: DLL", "took": 1}
    assert "--force-reinstall onnxruntime" in named(engines.engines(("predict",)), "onnxruntime").advice


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        ("import os; os.abort()", "the process was ended by SIGABRT"),
        ("raise ImportError('no libcudart')", "ImportError: no libcudart"),
        ("import time; time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_a_trial_that_goes_wrong(
    code: str, failed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnxruntime.py").write_text(code, "utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(trials.__file__).parents[2]}")
    monkeypatch.setattr(trials, "PATIENCE", 1.0 if "sleep" in code else 60.0)
    assert trials.tried("onnxruntime")["failed"] == failed


def test_both_runtimes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnxruntime", "onnxruntime_gpu"):
        place = tmp_path / f"{name}-1.31.1.dist-info"
        place.mkdir()
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.31.1\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = named(packages.packages(), "onnxruntime twice")
    assert found.state == "broken"
    assert found.advice.endswith(
        "`pip uninstall -y onnxruntime onnxruntime-gpu`, then `pip install onnxruntime-gpu`"
    )


def test_packages_that_are_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"numpy": "1.26.4", "onnxruntime": "1.31.1", "rich": "15.0.0"}
    asked = ["numpy>=2.0", "torch>=2.9", "rich>=13", "onnxruntime-gpu>=1.23", 'ray>=2; extra == "ray"', "?"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: asked)
    monkeypatch.setattr(packages, "_version", there.get)
    found = list(packages.packages())
    assert named(found, "numpy").value == "1.26.4, asked for is >=2.0"
    assert named(found, "numpy").advice == "`pip install 'numpy>=2.0'`"
    assert named(found, "torch").jobs == ("train", "export")
    assert named(found, "extras").value == "ray not installed"
    assert named(found, "onnxruntime").state == "good"  # the plain wheel stands in for the other
    assert [one.name for one in found if one.state == "broken"] == ["numpy", "torch"]


def in_a_file(tmp_path: Path) -> str:
    (tmp_path / "file").write_text("", "utf-8")
    return str(tmp_path / "file" / "cache")


@pytest.mark.parametrize("place", [in_a_file, lambda _: "/proc/tsattn"])
def test_a_cache_that_cannot_be_written_is_broken(
    place: Callable[[Path], str],
    tmp_path: Path,
    answers: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not sys.platform.startswith("linux") and place is not in_a_file:
        pytest.skip("there is no /proc")
    monkeypatch.setenv("TSATTN_HOME", place(tmp_path))
    with pytest.raises(CheckFailed, match=r"Broken here: cache folder\."):
        CliRunner().invoke(app, ["doctor"], catch_exceptions=False)
    done = CliRunner().invoke(app, ["doctor", "--for", "predict"], catch_exceptions=False)
    assert done.exit_code == 0  # no concern of predicting with a model file
    assert done.stdout.endswith("predict: yes\n")


def test_settings_that_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "cores", lambda: 4)
    monkeypatch.setattr(host, "share_of_cores", lambda: 1.5)
    monkeypatch.setattr(host, "free_memory", lambda: 10**9)
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    found = list(machine.machine())
    assert named(found, "CPU cores").advice.endswith("--threads 1.")
    assert {one.name for one in found if one.state == "note"} >= {
        "CPU cores",
        "OMP_WAIT_POLICY",
        "OMP_NUM_THREADS",
        "free memory",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
def test_the_share_of_cores_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = host._lines
    monkeypatch.setattr(host, "CGROUPS", tmp_path)
    monkeypatch.setattr(host, "_lines", lambda f: ["0::/"] if f == "/proc/self/cgroup" else lines(f))
    (tmp_path / "cpu.max").write_text("max 100000\n", "utf-8")
    assert host.share_of_cores() is None
    (tmp_path / "cpu.max").write_text("150000 100000\n", "utf-8")
    assert host.share_of_cores() == 1.5

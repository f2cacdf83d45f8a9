"""What `tsattn predict` refuses, and that nothing half-written stays, in real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

MakeModel = Callable[..., Path]
CHANNELS = tuple(f"c{i}" for i in range(12))
CLASSES = tuple("123456789")


def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tsattn", "predict", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, cwd=cwd, env=environment
    )


WRONG: dict[str, tuple[tuple[str, ...], int, str]] = {
    "model missing": (("absent.onnx", "good.csv"), 2, "absent.onnx"),
    "model not ONNX": (("good.csv", "good.csv"), 2, "not an ONNX file"),
    "input missing": (("model.onnx", "good.csv", "absent.csv"), 2, "absent.csv"),
    "input empty": (("model.onnx", "empty.csv"), 2, "empty.csv"),
    "input header only": (("model.onnx", "header.csv", "--id", "case", "--time", "t"), 2, "header.csv"),
    "input binary": (("model.onnx", "binary.csv"), 2, "binary.csv"),
    "input a folder without data": (("model.onnx", "place"), 2, "folder"),
    "too few channels": (("model.onnx", "narrow.csv", "--id", "case", "--time", "t"), 2, "narrow.csv"),
    "unknown column": (("model.onnx", "good.csv", "--id", "nobody"), 2, "nobody"),
    "text among numbers": (("model.onnx", "text.csv", "--id", "case", "--time", "t"), 2, "text.csv"),
    "bad after good": (("model.onnx", "good.csv", "text.csv", "--id", "case", "--time", "t"), 2, "text.csv"),
    "output folder missing": (("model.onnx", "good.csv", "-o", "nowhere/o.csv"), 2, "nowhere"),
    "output is a folder": (("model.onnx", "good.csv", "-o", "place"), 2, "folder"),
    "output unwritable": (("model.onnx", "good.csv", "-o", "/proc/o.csv"), 2, "/proc/o.csv"),
    "output is a device": (("model.onnx", "good.csv", "-o", "/dev/null"), 2, "/dev/null"),
    "output is the input": (("model.onnx", "good.csv", "-o", "good.csv"), 2, "one of the files"),
    "output is the model": (("model.onnx", "good.csv", "-o", "model.onnx"), 2, "is the model"),
    "mps": (("model.onnx", "good.csv", "--device", "mps"), 2, "mps"),
    "no such batch": (("model.onnx", "good.csv", "--batch-size", "0"), 2, "batch-size"),
}


@pytest.fixture
def bench(make_model: MakeModel, tmp_path: Path) -> Path:
    """A folder with a model of two channels, one good file and several bad ones."""
    make_model(("a", "b"), ("x", "y"))
    good = "case,t,x,y\n" + "".join(f"{n},{t},{n}.5,{t}\n" for n in range(200) for t in range(3))
    contents = {
        "good.csv": good.encode(),
        "empty.csv": b"",
        "header.csv": b"case,t,x,y\n",
        "binary.csv": bytes(range(256)) * 40,
        "narrow.csv": b"case,t,x\n1,0,2.5\n1,1,2.5\n",
        "text.csv": good.encode() + b"201,0,high,2\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "place").mkdir()
    return tmp_path


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_once_and_nothing_is_left(case: str, bench: Path) -> None:
    words, code, said = WRONG[case]
    before = {path: path.read_bytes() for path in bench.rglob("*") if path.is_file()}
    result = run(*words, *(() if "-o" in words else ("-o", "out.csv")), cwd=bench)
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in bench.rglob("*") if path.is_file()} == before
    if "batch-size" not in said:
        assert result.stderr.count("Error") == 1


def test_an_older_output_survives_a_failed_run(bench: Path) -> None:
    (bench / "out.csv").write_text("precious\n")
    assert (
        run("model.onnx", "text.csv", "-o", "out.csv", "--id", "case", "--time", "t", cwd=bench).returncode
        == 2
    )
    assert (bench / "out.csv").read_text() == "precious\n"


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files with resource")
def test_a_disk_that_is_full_is_said_once(bench: Path) -> None:
    words = "'predict', 'model.onnx', 'good.csv', '-o', 'out.csv', '--id', 'case', '--time', 't'"
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        f"sys.argv = ['tsattn', {words}]\n"
        "from tsattn.cli.app import main; main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        cwd=bench,
        env=environment,
    )
    assert result.returncode == 2, result.stderr
    assert "out.csv cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(bench.glob("*out.csv*"))


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_cuda_asked_for_and_not_had_leaves_with_3(bench: Path) -> None:
    result = run("model.onnx", "good.csv", "-o", "out.csv", "--device", "cuda", cwd=bench)
    assert result.returncode == 3
    assert "cannot be had" in result.stderr
    assert "--device cpu" in result.stderr
    assert not (bench / "out.csv").exists()


def hears_ctrl_c() -> None:
    """A suite that runs in the background may have been told to ignore it, and so its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_leaves_nothing_half_written(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model(CLASSES, CHANNELS)
    source = tmp_path / "big.csv"
    row = ",".join(["0.25"] * 348) + "\n"
    with source.open("w") as file:
        file.write("case," + ",".join(f"{c}_{t}" for c in CHANNELS for t in range(29)) + "\n")
        file.writelines(f"{n},{row}" for n in range(30_000))
    words = [model, source, "-o", tmp_path / "o.csv", "--id", "case", "--batch-size", "4"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tsattn", "predict", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hears_ctrl_c,  # noqa: PLW1509 - it sets one signal and takes no lock
    )
    deadline = time.monotonic() + 30
    while not any(p.stat().st_size for p in tmp_path.glob(".o.csv.*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert b"Traceback" not in stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.csv", "model.onnx"]

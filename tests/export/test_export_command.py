"""`tsattn export onnx` and `tsattn show` on a run that was trained for them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commands import Command, command_in, document

from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.export import making
from tsattn.export.temperature import COLDEST, fit
from tsattn.inference.calibration import expected_calibration_error
from tsattn.inference.session import open_model
from tsattn.runs import load_predictor
from tsattn.training import preparing, workflow

ROOT = Path(__file__).parents[2]
SET = "JapaneseVowels"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`, which held cases out, and `all`, which did not."""
    place = tmp_path_factory.mktemp("export")
    for name, share in (("run", 0.25), ("all", 0.0)):
        prepared = preparing.prepare(
            SET,
            asked={
                "epochs": 4 if share else 1,
                "width": 16,
                "heads": 2,
                "layers": 1,
                "attention": "softmax",
                "tokens": "linear",
                "validation": share,
            },
            preset="base",
            device="cpu",
            threads=None,
            out=place / name,
            table=TableOptions(),
        )
        workflow.train(prepared, lambda epoch: None)
    return place


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """command(*words): `tsattn WORDS…` in `place`."""
    return command_in(place, monkeypatch, capsys)


def ten_lines() -> str:
    text = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    (code,) = re.findall(r"<!-- python -->\n```python\n(.*?)```", text, re.DOTALL)
    return str(code)


def test_a_file_with_a_temperature_speaks_and_runs_without_tsattn(command: Command, place: Path) -> None:
    wanted = ("--temperature", "--unknown-below", 0.5, "--opset", 18)
    exported = document(command("export", "onnx", "run", "-o", "warm.onnx", *wanted, "--json"))
    fitted = exported["calibration"]
    assert exported["temperature"] == fitted["temperature"] != 1
    assert fitted["loss_after"] < fitted["loss_before"]
    assert "held out of" in fitted["origin"]
    assert exported["measured"]["origin"].startswith(f"{SET}_TEST")
    assert exported["measured"]["cases"] == 370

    values = load_split(SET, "test", TableOptions()).collection.values
    plain = load_predictor(place / "run", "cpu").probabilities(values).astype(np.float64)
    warmed = plain ** (1 / fitted["temperature"])
    warmed /= warmed.sum(1, keepdims=True)
    np.testing.assert_allclose(
        open_model(place / "warm.onnx", "cpu").probabilities(values), warmed, atol=1e-4
    )

    shown = document(command("show", "warm.onnx", "--json"))
    assert (shown["dtype"], shown["opset"], shown["onnxruntime"]) == ("fp32", 18, "1.15")
    assert (shown["unknown_below"], shown["calibration"]) == (0.5, fitted)
    assert shown["measured"]["forms"][-1]["accuracy"] == shown["measured"]["forms"][-2]["accuracy"]
    for word in ("warm.onnx", "12 channels", "9 classes", "7–15–26", "1.15 or newer", "held out of"):
        assert word in command("show", "warm.onnx").out

    np.save(place / "cases.npy", values[:5])
    (place / "model.onnx").write_bytes((place / "warm.onnx").read_bytes())
    code = "import sys\nsys.modules['tsattn'] = None\n" + ten_lines()
    alone = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    said = [line.split() for line in alone.stdout.splitlines()]
    assert [word for word, _ in said] == [shown["classes"][best] for best in warmed[:5].argmax(1)]
    np.testing.assert_allclose([float(share) for _, share in said], warmed[:5].max(1), atol=1e-4)


def test_a_file_in_float16_takes_and_gives_float32(command: Command, place: Path) -> None:
    exported = document(command("export", "onnx", "run", "-o", "half.onnx", "--dtype", "fp16", "--json"))
    graph = onnx.load(place / "half.onnx").graph
    assert {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)} == {
        onnx.TensorProto.FLOAT
    }
    assert onnx.TensorProto.FLOAT16 in {weight.data_type for weight in graph.initializer}
    assert abs(exported["measured"]["drop"]) <= 0.5
    assert document(command("show", "half.onnx", "--json"))["dtype"] == "fp16"


def test_int8_with_ranges_of_real_cases(command: Command, place: Path) -> None:
    asked = ("--dtype", "int8", "--calibrate", SET, "--max-drop", 5)
    done = command("export", "onnx", "run", "-o", "bytes.onnx", *asked)
    assert done.code == 0, done.err
    for word in ("ONNX Runtime in int8", "fp32", "bytes.onnx", "cases/s"):
        assert word in done.out
    assert "DequantizeLinear" in {node.op_type for node in onnx.load(place / "bytes.onnx").graph.node}


def test_what_costs_too_much_accuracy_is_not_written(
    command: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(run: Any, asked: Any, plain: onnx.ModelProto) -> list[onnx.ModelProto]:
        for weight in plain.graph.initializer:
            if weight.data_type == onnx.TensorProto.FLOAT and min(weight.dims, default=0) > 1:
                weight.raw_data = bytes(len(weight.raw_data))
        return [plain]

    monkeypatch.setattr(making, "_attempts", spoilt)
    before = sorted(place.iterdir())
    done = command("export", "onnx", "all", "-o", "gone.onnx", "--dtype", "int8")
    assert done.code == 3
    assert "gone.onnx: not written. With int8 accuracy falls from" in done.err
    assert "--max-drop 0.5" in done.err
    assert sorted(place.iterdir()) == before


REFUSED = {
    "an opset": (("run", "--opset", 17), "written in opset 18 to 23"),
    "nothing to calibrate": (("run", "--calibrate", SET), "ranges for --dtype int8 and --temperature"),
    "nothing held out": (("all", "--temperature"), "held no cases out to fit it on"),
    "fitted on what was trained on": (("all", "--temperature", "--calibrate", SET), "was trained on"),
    "fitted on what is measured": (
        ("run", "--temperature"),
        "these are the cases that the file is measured on",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_one_message(case: str, command: Command, place: Path) -> None:
    words, expected = REFUSED[case]
    if case == "fitted on what is measured":
        from tsattn.data.sources import embedded_folder

        folder = embedded_folder(SET)
        assert folder is not None
        test = folder / f"{SET}_TEST.ts"
        words = ("run", "--temperature", "--calibrate", test)
    done = command("export", "onnx", *words, "-o", "no.onnx")
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert "Traceback" not in done.err
    assert not (place / "no.onnx").exists()


def test_a_place_that_cannot_be_written(
    command: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    done = command("export", "onnx", "run", "-o", "a" * 300 + ".onnx")
    assert (done.code, "File name too long" in done.err) == (2, True)
    monkeypatch.setattr(making, "to_proto", lambda *_: onnx.ModelProto())
    monkeypatch.setattr(making, "save", full)
    before = sorted(place.iterdir())
    done = command("export", "onnx", "run", "-o", "full.onnx")
    assert (done.code, "cannot be written: No space left" in done.err) == (2, True)
    assert sorted(place.iterdir()) == before


def test_a_run_speaks_too(command: Command) -> None:
    shown = document(command("show", "run", "--json"))
    assert (shown["kind"], shown["attention"], shown["tokens"]) == ("run", "softmax", "linear")
    assert (len(shown["channels"]), len(shown["classes"]), shown["opset"]) == (12, 9, None)
    assert command("show", "nowhere.onnx").code == 2
    assert command("show", ".").code == 2


def test_the_temperature_is_found_that_logits_were_multiplied_by() -> None:
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(20_000, 4))
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    truth = (shares.cumsum(1) < generator.random((len(logits), 1))).sum(1)
    assert fit(3 * logits, truth) == pytest.approx(3, rel=0.05)
    assert fit(100 * logits, logits.argmax(1)) == pytest.approx(COLDEST)
    assert expected_calibration_error(shares, truth) < 0.02
    assert expected_calibration_error(np.eye(4)[truth], (truth + 1) % 4) == 1

"""The workflow behind `tsattn export onnx`: export, prove, measure, and only then let the file appear."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tsattn.card import ModelCard
from tsattn.errors import CheckFailed, InputError
from tsattn.export.asked import Asked
from tsattn.export.cases import RealCases, calibration_cases, held_out_cases, measuring_cases, proving_cases
from tsattn.export.making import drafts, make
from tsattn.export.measure import Measured
from tsattn.export.onnx import save
from tsattn.export.opsets import OLDEST_RUNTIME
from tsattn.export.parity import Parity
from tsattn.export.temperature import Calibration, calibrate
from tsattn.inference.output import refuse_model, writing
from tsattn.runs import Run, read_run


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A model file that agrees with its run. size: in bytes; card: as it stands in the file.

    parity: of the engines, on series of all sorts. measured: on held-out cases.
    """

    path: Path
    size: int
    card: ModelCard
    parity: Parity
    measured: Measured
    calibration: Calibration | None


def export_onnx(run_path: Path, output: Path | None, asked: Asked, *, allow_code: bool = False) -> Exported:
    """Exports a run to `output` (default: model.onnx in the run folder), proves and measures it.

    allow_code: see `tsattn.runs.read_run`.
    CheckFailed, and no file, where the two engines disagree or accuracy drops by more than allowed.
    """
    run = read_run(run_path, allow_code=allow_code)
    output = output or run_path / "model.onnx"
    with writing(output):
        is_no_place = output.is_dir() or not output.absolute().parent.is_dir()
    if is_no_place:
        raise InputError(
            f"{output}: not a place for a file. Name one in a folder that exists, e.g. -o model.onnx."
        )
    refuse_model(output, run_path, but=(".onnx",))
    series, real = proving_cases(run, asked.data), measuring_cases(run, asked.data)
    calibration = _calibration(run, asked, real)
    card = replace(run.card, unknown_below=asked.unknown_below)
    if calibration is not None:
        card = replace(card, temperature=calibration.temperature, calibration=calibration.to_dict())
    with drafts(output) as place:
        try:
            made = make(replace(run, card=card), asked, series, real, place)
        except CheckFailed as failed:
            raise CheckFailed(f"{output}: not written. {failed}") from None
        card = replace(card, export=_facts(asked, made.measured))
        with writing(output):
            save(made.draft.proto, card, made.draft.path)
            made.draft.path.replace(output)
    return Exported(
        path=output,
        size=output.stat().st_size,
        card=card,
        parity=made.parity,
        measured=made.measured,
        calibration=calibration,
    )


def _facts(asked: Asked, measured: Measured) -> dict[str, object]:
    """What the card says of the file itself."""
    return {
        "dtype": asked.dtype,
        "opset": asked.opset,
        "onnxruntime": OLDEST_RUNTIME[asked.opset],
        "calibrated_on": asked.calibrate if asked.dtype == "int8" else None,
        "measured": measured.to_dict(),
    }


def _calibration(run: Run, asked: Asked, real: RealCases) -> Calibration | None:
    """The temperature, where one is asked for. InputError where it would be fitted on the wrong cases."""
    given = None if asked.calibrate is None else calibration_cases(run, asked.calibrate)
    if given is not None and given.cases.fingerprint() == real.cases.fingerprint():
        raise InputError(
            f"--calibrate {asked.calibrate}: these are the cases that the file is measured on. "
            "Name others, e.g. those of TRAIN."
        )
    if not asked.temperature:
        return None
    held_out = held_out_cases(run) or given
    if held_out is None or held_out.trained_on:
        what = "" if held_out is None else f"{held_out.origin} was trained on, and "
        raise InputError(
            f"--temperature: {what}{run.path} held no cases out to fit it on. Train with "
            "--val-fraction 0.2, or name labelled cases that were not trained on with --calibrate SOURCE."
        )
    return calibrate(run, held_out.cases, held_out.origin)

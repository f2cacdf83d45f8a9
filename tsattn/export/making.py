"""Makes drafts of a run's model file, in the type asked for, until one holds what it is held to."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from tsattn.data.collection import Collection
from tsattn.errors import CheckFailed, InputError
from tsattn.export.asked import Asked
from tsattn.export.cases import RealCases, calibration_cases
from tsattn.export.half import in_half
from tsattn.export.measure import Measured, measure
from tsattn.export.onnx import save, to_proto
from tsattn.export.parity import TOLERANCE, Parity, compare
from tsattn.inference.cases import batches
from tsattn.inference.output import writing
from tsattn.inference.predictor import Predictor
from tsattn.inference.session import OnnxPredictor, open_model
from tsattn.runs import Run, TorchPredictor

MOST_CALIBRATED, CALIBRATION_BATCH = 512, 16


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A file that was written and opened."""

    proto: onnx.ModelProto
    path: Path
    predictor: OnnxPredictor

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size


@dataclass(frozen=True, kw_only=True)
class Made:
    """A draft that holds. parity: on series of all sorts; measured: on held-out cases."""

    draft: Draft
    parity: Parity
    measured: Measured


def make(run: Run, asked: Asked, series: Collection, real: RealCases, place: Callable[[], Path]) -> Made:
    """A draft of the type asked for.

    series: what the engines are compared on. real: what is measured. place: gives a new file's place.
    CheckFailed with what is wrong if torch and ONNX Runtime disagree, or a smaller type costs too much.
    """
    ours = TorchPredictor(run, torch.device("cpu"))
    plain = _written(to_proto(run.model, run.card, asked.opset), run, place())
    parity = _parity(run, ours, plain.predictor, series)
    if not parity.holds:
        raise CheckFailed(
            f"torch and ONNX Runtime disagree: largest difference {parity.difference:.2e} (allowed "
            f"{TOLERANCE:.0e}), {parity.changed} of {parity.cases} classes changed."
        )
    forms: dict[str, tuple[Predictor, int | None]] = {}
    if run.card.temperature != 1:
        unscaled = replace(run, card=replace(run.card, temperature=1.0))
        forms["run, torch, temperature 1"] = (TorchPredictor(unscaled, torch.device("cpu")), None)
    forms |= {"run, torch": (ours, None), "fp32": (plain.predictor, plain.size)}
    if asked.dtype == "fp32":
        return Made(draft=plain, parity=parity, measured=measure(forms, real))
    failure = ""
    for proto in _attempts(run, asked, plain.proto):
        draft = _written(proto, run, place())
        parity = compare(ours, draft.predictor, series)
        if not np.isfinite(parity.difference):
            failure = f"{asked.dtype} gives no finite probabilities for some series. Take --dtype fp32."
            continue
        measured = measure({**forms, asked.dtype: (draft.predictor, draft.size)}, real)
        failure = _failure(asked, measured)
        if not failure:
            return Made(draft=draft, parity=parity, measured=measured)
    raise CheckFailed(failure)


def _parity(run: Run, ours: Predictor, exported: Predictor, series: Collection) -> Parity:
    """Of the file with the run; where their roundings add up, with the run in float64, which hardly rounds.

    Attention-BN divides by deviations: of keys that hardly differ, float32 leaves three digits, in either
    engine other ones.
    """
    parity = compare(ours, exported, series)
    if parity.holds or not np.isfinite(parity.difference):
        return parity
    try:
        exact = TorchPredictor(replace(run, model=copy.deepcopy(run.model).double()), torch.device("cpu"))
        return compare(exact, exported, series)
    except RuntimeError:  # an attention of others that knows float32 only
        return parity


@contextmanager
def drafts(output: Path) -> Iterator[Callable[[], Path]]:
    """Gives places beside `output` for files that are gone in the end, but for what was renamed."""
    made: list[Path] = []

    def place() -> Path:
        try:
            handle, name = tempfile.mkstemp(
                prefix=f".{output.name}.", suffix=".onnx", dir=output.absolute().parent
            )
        except OSError as error:
            raise InputError(f"{output}: cannot be written ({error.strerror}).") from None
        os.close(handle)
        made.append(Path(name))
        made[-1].chmod(0o644)
        return made[-1]

    try:
        yield place
    finally:
        for path in made:
            path.unlink(missing_ok=True)


def _written(proto: onnx.ModelProto, run: Run, path: Path) -> Draft:
    with writing(path):
        save(proto, run.card, path)
    return Draft(proto=proto, path=path, predictor=open_model(path, "cpu"))


def _attempts(run: Run, asked: Asked, plain: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """Ways to make the graph smaller, the smallest first."""
    if asked.dtype == "int8":
        from tsattn.export.quantise import quantised

        yield quantised(plain, _ranges(run, asked.calibrate))
        return
    for wide in (False, True):
        yield to_proto(in_half(run.model, wide_attention=wide), run.card, asked.opset)


def _ranges(run: Run, source: str | None) -> list[NDArray[np.float32]] | None:
    """Batches of real values that static quantisation looks at; None for dynamic."""
    if source is None:
        return None
    cases = calibration_cases(run, source).cases
    some = np.unique(np.linspace(0, len(cases) - 1, MOST_CALIBRATED).astype(np.int64))
    return [values for _, values in batches(cases.take(some), CALIBRATION_BATCH)]


def _failure(asked: Asked, measured: Measured) -> str:
    """What stands against a smaller file, '' if nothing."""
    if measured.drop <= asked.max_drop:
        return ""
    before, after = (form.accuracy for form in measured.forms[-2:])
    if before is None or after is None:
        figures = f"{measured.changed} of {measured.cases} cases without labels change their class"
    else:
        figures = f"accuracy falls from {100 * before:.2f} % to {100 * after:.2f} %"
    return (
        f"With {asked.dtype} {figures} on {measured.origin}; --max-drop {asked.max_drop:g} percentage "
        "points are allowed. Allow more, or take another --dtype."
    )

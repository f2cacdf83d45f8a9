"""The workflow behind `tsattn export onnx`: export, prove, and only then let the file appear."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.heads import is_table
from tsattn.data.preparation import Preparation, prepare_cases
from tsattn.data.sources import load_file, load_split
from tsattn.errors import CheckFailed, InputError
from tsattn.export.onnx import write_onnx
from tsattn.export.parity import TOLERANCE, Parity, compare
from tsattn.inference.output import refuse_model
from tsattn.inference.pipeline import roles_of
from tsattn.inference.session import open_model
from tsattn.runs import Run, TorchPredictor, read_run


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A model file that agrees with its run. size: in bytes."""

    path: Path
    size: int
    parity: Parity


def export_onnx(
    run_path: Path, output: Path | None, data: str | None, *, allow_code: bool = False
) -> Exported:
    """Exports a run to `output` (default: model.onnx in the run folder) and proves it.

    data: the source whose series are compared; the run's own training cases where None.
    allow_code: see `tsattn.runs.read_run`.
    CheckFailed, and no file, where the two engines disagree.
    """
    run = read_run(run_path, allow_code=allow_code)
    output = output or run_path / "model.onnx"
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise InputError(
            f"{output}: not a place for a file. Name one in a folder that exists, e.g. -o model.onnx."
        )
    refuse_model(output, run_path, but=(".onnx",))
    series = _series(run, data)
    draft = _draft_beside(output)
    try:
        write_onnx(run.model, run.card, draft)
        parity = compare(TorchPredictor(run, torch.device("cpu")), open_model(draft, "cpu"), series)
        if not parity.holds:
            raise CheckFailed(
                f"{output}: not written. torch and ONNX Runtime disagree: largest difference "
                f"{parity.difference:.2e} (allowed {TOLERANCE:.0e}), {parity.changed} of {parity.cases} "
                "classes changed."
            )
        draft.replace(output)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return Exported(path=output, size=output.stat().st_size, parity=parity)


def _series(run: Run, data: str | None) -> Collection:
    """What is compared: the run's own training cases, or those of another source of the same channels.

    A file needs no labels for that, and its columns may be called as in training.
    """
    how = Preparation.from_dict(run.config.preparation)
    label_of = None if how.window is None else "timepoint"
    if data is None:
        options = replace(TableOptions.of(run.config.table), label_of=label_of)
        try:
            registry = Path(run.config.registry) if run.config.registry else None
            series = load_split(run.config.source, "train", options, registry).collection
        except InputError as error:
            raise InputError(
                f"{error} The run's training cases are what the model file is proved on; name other series "
                "of the same channels with --data SOURCE."
            ) from None
    elif (path := Path(data)).is_file():
        known = roles_of(path, TableOptions(), run.card) if is_table(path) else TableOptions()
        series = load_file(path, replace(known, label_of=label_of)).collection
    else:
        series = load_split(data, "train", TableOptions()).collection
    if len(series.channels) != len(run.card.channels):
        raise InputError(
            f"{data}: {len(series.channels)} channels, the run was trained on {len(run.card.channels)} "
            f"({', '.join(run.card.channels)})."
        )
    return prepare_cases(series, how).cases


def _draft_beside(output: Path) -> Path:
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{output.name}.", suffix=".onnx", dir=output.absolute().parent
        )
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror}).") from None
    os.close(handle)
    Path(name).chmod(0o644)
    return Path(name)

"""A model file opened with onnxruntime: the card from its metadata, probabilities from its graph."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from tsattn.card import ModelCard
from tsattn.errors import CheckFailed, InputError
from tsattn.inference import cuda
from tsattn.inference.bound import IN_FLIGHT, BoundSession

CARD_KEY = "tsattn"
INPUT = "values"
OUTPUT = "probabilities"

# More calls at once than this only add memory; further cores then work inside each call.
MAX_CALLERS = 8
FATAL = 4

logger = logging.getLogger(__name__)


class OnnxPredictor:
    """A Predictor over an onnxruntime session; safe to call from several threads.

    card: from the file's metadata. provider: the one the session really uses.
    callers: how many threads may usefully call `probabilities` at once.
    """

    def __init__(self, session: ort.InferenceSession, card: ModelCard, callers: int) -> None:
        self.card = card
        self.provider: str = session.get_providers()[0]
        self.callers = callers
        self._session = session
        self._bound: BoundSession | None = None
        if self.provider in (cuda.CUDA, cuda.TENSORRT):
            self._bound = BoundSession(session, INPUT, OUTPUT)

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """(cases, channels, timepoints), NaN where not observed → (cases, classes).

        InputError if the number of channels is not the model's, or memory does not suffice.
        """
        cases, channels, timepoints = values.shape
        if channels != len(self.card.channels):
            raise InputError(
                f"The data have {channels} channels, the model was trained on {len(self.card.channels)}: "
                f"{', '.join(self.card.channels)}."
            )
        if cases == 0:
            return np.empty((0, len(self.card.classes)), np.float32)
        if timepoints == 0:  # kernels divide by the length; one unobserved timepoint means the same
            values = np.full((cases, channels, 1), np.nan, np.float32)
        try:
            if self._bound is not None:
                return self._bound.run(values)
            result: NDArray[np.float32] = self._session.run([OUTPUT], {INPUT: values})[0]
        except (ort_errors.RuntimeException, ort_errors.Fail) as error:
            if "alloc" not in str(error):
                raise
            raise InputError(
                f"Memory does not suffice for {cases} cases of {timepoints} timepoints at once. "
                "Take a smaller --batch-size."
            ) from None
        return result


def open_model(
    path: Path,
    device: str = "auto",
    threads: int | None = None,
    *,
    parallel_calls: bool = False,
    providers: str | None = None,
) -> OnnxPredictor:
    """Opens a model file that tsattn exported.

    device: auto, cpu, cuda or cuda:N; CheckFailed if cuda is asked for and not had.
    providers: words of `cuda.PROVIDERS` joined by commas, the best first, instead of a device's own;
        CheckFailed if one is not had.
    threads: CPU threads in all; None takes every core this process may use.
    parallel_calls: the caller will call from several threads (`OnnxPredictor.callers`), so that
        each call gets one core; for small batches faster than one call on all of them.
    InputError if the file is missing, is no ONNX file or was not exported by tsattn.
    """
    asked = cuda.asked_for(device, providers)
    _check_file(path)
    threads = threads or _cores()
    callers = min(threads, MAX_CALLERS) if parallel_calls else 1
    session = _session(path, asked, threads // callers)
    card = _card(path, session)
    if session.get_providers()[0] != cuda.CPU:
        callers = IN_FLIGHT if parallel_calls else 1  # one computes while the other is copied
    return OnnxPredictor(session, card, callers)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder, a model file (.onnx) was expected.")
    if not path.is_file():
        raise InputError(f"{path}: no such model file. `tsattn export onnx RUN -o {path}` makes one.")
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(f"{path}: the model file cannot be read ({error.strerror}).") from None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _session(path: Path, asked: cuda.Asked, threads: int) -> ort.InferenceSession:
    """A session on what was asked for, quiet, CPU where auto finds no CUDA."""
    ort.set_default_logger_severity(FATAL)
    reason = None if asked.names == (cuda.CPU,) else cuda.obstacle()
    if asked.names == (cuda.CPU,) or (asked.may_be_cpu and reason):
        return _create(path, [cuda.CPU], threads)[0]
    if reason is None:
        missing = cuda.load_libraries()
        session, said = _create(path, [*asked.with_options(), cuda.CPU], threads)
        had = tuple(session.get_providers())
        if had[: len(asked.names)] == asked.names:
            return session
        reason = missing or said or f"onnxruntime-gpu {ort.__version__} did not load its CUDA libraries"
        if asked.may_be_cpu:
            logger.warning("There is a GPU, but it is not used: %s. Computing on the CPU.", reason)
            return session
    raise CheckFailed(
        f"{asked.typed} was asked for and cannot be had: {reason}. "
        "onnxruntime-gpu 1.31 needs an NVIDIA GPU, CUDA 13 and cuDNN 9. Type --device cpu to do without."
    )


def _create(path: Path, providers: Sequence[Any], threads: int) -> tuple[ort.InferenceSession, str]:
    """The session and what onnxruntime said about a provider it did not get."""
    options = ort.SessionOptions()
    options.log_severity_level = FATAL
    options.intra_op_num_threads = threads
    # Spinning threads stop each other on a machine that does other work too.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The fused kernels of the higher levels are slower here (measured: 0.66 to 0.84 of BASIC's speed).
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # A pattern is kept for every shape ever seen; lengths vary, so they would pile up.
    options.enable_mem_pattern = False
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):  # onnxruntime prints when it falls back to the CPU
            session = ort.InferenceSession(os.fspath(path), options, providers=providers)
    except (ort_errors.InvalidProtobuf, ort_errors.NoModel, ort_errors.InvalidArgument):
        raise InputError(
            f"{path} is not an ONNX file. Expected a model made by `tsattn export onnx`, or a run folder."
        ) from None
    except (ort_errors.Fail, ort_errors.InvalidGraph, ort_errors.NotImplemented) as error:
        raise InputError(
            f"{path}: onnxruntime {ort.__version__} cannot load this ONNX file ({_first_line(error)}). "
            "Export the run again with this version of tsattn."
        ) from None
    return session, " ".join(line for line in said.getvalue().splitlines() if line.startswith("EP Error"))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _card(path: Path, session: ort.InferenceSession) -> ModelCard:
    text = session.get_modelmeta().custom_metadata_map.get(CARD_KEY)
    inputs = ", ".join(node.name for node in session.get_inputs()) or "nothing"
    outputs = ", ".join(node.name for node in session.get_outputs()) or "nothing"
    if text is None or inputs != INPUT or outputs != OUTPUT:
        raise InputError(
            f"{path} is an ONNX file, but not one of tsattn's: it takes {inputs}, gives {outputs} and has "
            f"{'no' if text is None else 'a'} model card in its metadata. "
            "Make one with `tsattn export onnx RUN`."
        )
    card = ModelCard.from_json(text, str(path))
    (given,), (result,) = session.get_inputs(), session.get_outputs()
    for node, rank, at, told in ((given, 3, 1, card.channels), (result, 2, 1, card.classes)):
        fits = len(node.shape) == rank and (isinstance(node.shape[at], str) or node.shape[at] == len(told))
        if node.type != "tensor(float)" or not fits or isinstance(node.shape[0], int):
            raise InputError(
                f"{path}: {node.name} is {node.type} of {node.shape}, and the model card says {len(told)} "
                f"{'channels' if rank == 3 else 'classes'}. Export the run again."
            )
    return card

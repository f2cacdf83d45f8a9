"""A model as the user names it: a run folder or a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tsattn.cli import interrupts
from tsattn.errors import InputError, looking_at

if TYPE_CHECKING:
    from tsattn.inference.predictor import Predictor


def open_predictor(
    path: str,
    device: str = "auto",
    threads: int | None = None,
    *,
    parallel_calls: bool = False,
    allow_code: bool = False,
    providers: str | None = None,
) -> Predictor:
    """A folder is a run and is computed with torch; anything else must be a model file.

    threads: CPU threads; None leaves the choice to the engine.
    parallel_calls, providers: see `tsattn.inference.session.open_model`; runs take no notice of the
        first and refuse the second.
    allow_code: see `tsattn.runs.read_run`; a model file holds no code.
    InputError and CheckFailed as the two loaders raise them.
    """
    place = Path(path)
    with looking_at(place):
        is_run = place.is_dir()
    if is_run:
        if providers is not None:
            raise InputError(
                f"--providers {providers} are onnxruntime's, and {path} is a run. Export it first."
            )
        with interrupts.held():
            from tsattn.runs import load_predictor

        predictor: Predictor = load_predictor(place, device, allow_code=allow_code)
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        return predictor

    with interrupts.held():
        from tsattn.inference.session import open_model

    return open_model(place, device, threads, parallel_calls=parallel_calls, providers=providers)


def refuse_model_file(path: Path, who: str) -> None:
    """InputError where `path` is a file and `who`, as typed, has to look inside a model."""
    if path.is_file():
        raise InputError(
            f"{path}: {who} looks inside the model, and a model file shows only its answers. Give the run "
            "folder that it was exported from."
        )

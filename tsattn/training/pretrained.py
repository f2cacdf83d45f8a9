"""Beginning with the weights of another run, where they fit."""

from __future__ import annotations

import logging
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from tsattn.errors import InputError
from tsattn.models.classifier import TransformerClassifier
from tsattn.runs.files import STATE, WEIGHTS
from tsattn.training.state import FILE

logger = logging.getLogger(__name__)

NEVER_TAKEN = ("standardise.", "beside.")
"""Statistics of the data and what is fitted in closed form: those of the new training cases."""


def weights_of(run: Path) -> Path:
    """The file that holds a run's weights, finished or not. InputError where there is none."""
    for path in (run / WEIGHTS, run / STATE / FILE):
        if path.is_file():
            return path
    raise InputError(
        f"--pretrained {run}: no run folder with weights ({WEIGHTS}). Type one that was trained."
    )


def begin_with(model: TransformerClassifier, run: Path) -> None:
    """Puts the weights of `run` into `model` where name and shape fit, and says which did not.

    InputError where no matrix fits or the file is no weights.
    """
    path, own, taken = weights_of(run), model.state_dict(), {}
    prefix = "" if path.name == WEIGHTS else "model/"
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                bare = name.removeprefix(prefix)
                if not name.startswith(prefix) or bare.startswith(NEVER_TAKEN) or bare not in own:
                    continue
                if tuple(file.get_slice(name).get_shape()) == tuple(own[bare].shape):
                    taken[bare] = file.get_tensor(name)
    except SafetensorError as error:
        raise InputError(f"--pretrained {path}: the weights cannot be read ({error}).") from None
    wanted = [name for name in own if not name.startswith(NEVER_TAKEN)]
    if not any(tensor.ndim > 1 for tensor in taken.values()):
        raise InputError(
            f"--pretrained {run}: none of its matrices has the name and the shape of one of this model. "
            "Train with the attention, tokens and width of that run."
        )
    with torch.no_grad():
        model.load_state_dict({**own, **taken})
    left = [name for name in wanted if name not in taken]
    logger.warning(
        "Begun with %d of %d tensors of %s%s.",
        len(taken),
        len(wanted),
        run,
        f"; new are {', '.join(left)}" if left else "",
    )

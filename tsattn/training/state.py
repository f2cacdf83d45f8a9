"""The state of a training on disk, from which it goes on to the byte: written whole or not at all, no pickle.

One file of tensors; what is not a tensor is JSON in the file's own metadata.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tsattn.errors import InputError

FILE, KEY, OF = "training.safetensors", "training", "of"
LARGEST_SHARE = 0.02
"""Of the time, that saving may take at the ends of epochs."""


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that the next step depends on. facts: JSON; tensors: by name, on the CPU when read."""

    facts: dict[str, Any]
    tensors: dict[str, Tensor]


class StateFile:
    """Where a training keeps its state.

    folder: made by the caller, deleted when the training is done. within_epoch: seconds after which a state
    is also saved before an epoch has ended. of: what the training is, see `RunConfig.identity`; a state of
    another one is refused.
    """

    def __init__(self, folder: Path, within_epoch: float = 300.0, of: str = "") -> None:
        self.path, self.of = folder / FILE, of
        self.within_epoch = within_epoch
        self._saved_at, self._took = time.monotonic(), 0.0

    def due(self, *, epoch_ended: bool) -> bool:
        """Whether it is time: at the end of an epoch unless saving would cost more than it protects."""
        passed = time.monotonic() - self._saved_at
        return passed * LARGEST_SHARE >= self._took if epoch_ended else passed >= self.within_epoch

    def save(self, state: State) -> None:
        """Replaces what was saved before. InputError where that fails; what was saved before then stays."""
        start = time.monotonic()
        draft = self.path.with_suffix(".part")
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.tensors.items()}
        content = save(tensors, metadata={KEY: json.dumps(state.facts), OF: self.of})
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            what = (
                "the state before it is kept. Make room and go on with `tsattn train --resume "
                f"{self.path.parent.parent}`."
                if self.path.exists()
                else "there is none before it. Make room and train again."
            )
            raise InputError(
                f"{self.path}: the training's state cannot be saved ({error.strerror or error}); {what}"
            ) from None
        self._saved_at = time.monotonic()
        self._took = self._saved_at - start

    def load(self) -> State | None:
        """What was saved last, None if nothing was.

        InputError for a file that is not such a state, or is one of another training.
        """
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                said = file.metadata() or {}
                self._check_of(said.get(OF, self.of))
                facts = json.loads(said[KEY])
                return State(facts=facts, tensors={name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, json.JSONDecodeError) as error:
            raise self.unfit(error) from None

    def unfit(self, error: Exception) -> InputError:
        """What to say of a file that is not the state of this training."""
        return InputError(
            f"{self.path}: not the state of a training ({error}). Without it the run can only begin "
            "anew: train again with another --out."
        )

    def _check_of(self, found: str) -> None:
        if found != self.of:
            raise InputError(
                f"{self.path}: not the state of the training that {self.path.parent.parent} now describes. "
                "Put back the file, or the settings below 'model:' and 'training:' in config.yaml, that were "
                "changed since; other settings are another training, with an --out of its own."
            )


class BorrowedStateFile(StateFile):
    """The state that another process keeps: to be gone on with, not to be written."""

    def due(self, *, epoch_ended: bool) -> bool:
        """Never: its keeper says when."""
        return False

    def save(self, state: State) -> None:
        """Leaves it to its keeper."""

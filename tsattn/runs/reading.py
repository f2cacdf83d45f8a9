"""Reading run folders, without pickle; what is not whole or not what was written is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from tsattn.card import EACH, ModelCard
from tsattn.config import RunConfig
from tsattn.errors import InputError
from tsattn.models.attention import foreign
from tsattn.models.attention.installed import find_installed
from tsattn.models.classifier import Probabilities, TransformerClassifier
from tsattn.models.devices import resolve_device
from tsattn.runs.files import CARD_KEY, CODE, CONFIG, MEMBERS, METRICS, SPLIT, STATE, WEIGHTS
from tsattn.runs.members import Ensemble, Members, read_members

MOST_NAMED = 5
"""Runs that a message names."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run folder that was read; the model is on the CPU and in evaluation mode.

    config: of an ensemble that of its first member.
    """

    path: Path
    config: RunConfig
    card: ModelCard
    model: TransformerClassifier | Ensemble

    def single(self) -> TransformerClassifier:
        """The model, to look inside it. InputError for an ensemble."""
        if isinstance(self.model, Ensemble):
            members = read_members(self.path)
            one = self.path / (members.names[0] if members else "seed0")
            raise InputError(f"{self.path}: an ensemble. Name one of its members, e.g. {one}.")
        return self.model


class TorchPredictor:
    """A Predictor over a run's own weights. run: the run, whose model is now on the device."""

    def __init__(self, run: Run, device: torch.device) -> None:
        self.run = run
        self.card = run.card
        self.provider = f"torch {device.type}"
        self._device = device
        self._model = Probabilities(run.model, run.card.temperature).to(device).eval()

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """(cases, channels, timepoints) with NaN where not observed → (cases, classes)."""
        cases, channels, timepoints = values.shape
        if timepoints == 0:  # nothing observed: one unobserved timepoint means the same
            values = np.full((cases, channels, 1), np.nan, np.float32)
        with torch.inference_mode():
            result: NDArray[np.float32] = self._model(torch.from_numpy(values).to(self._device)).cpu().numpy()
        return result


def read_run(path: Path, *, allow_code: bool = False) -> Run:
    """Reads a run folder. InputError naming the file that is missing or unreadable.

    allow_code: the user's word that the attention code in the folder may be run; without it a
    folder that holds any is refused.
    """
    if (members := read_members(path)) is not None:
        return _read_together(path, members, allow_code)
    config = read_config(path, allow_code=allow_code)
    card = _own_card(path)
    model = TransformerClassifier(config.model)
    where = str(path / WEIGHTS)
    try:
        with safe_open(path / WEIGHTS, framework="pt") as file:
            model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{where}: the weights cannot be read ({error}).") from None
    except RuntimeError as error:
        raise InputError(
            f"{where}: the weights do not fit {CONFIG} ({str(error).splitlines()[-1].strip()})."
        ) from None
    return Run(path=path, config=config, card=card, model=model.eval())


def read_card(path: Path) -> ModelCard:
    """What a run says of itself; no code of it is run. InputError as `read_run`."""
    if (members := read_members(path)) is not None:
        return _card_together(path, members, [_own_card(path / name) for name in members.names])
    if not path.is_dir():
        raise InputError(f"{path}: no such run folder. `tsattn train SOURCE --out {path}` would make it.")
    return _own_card(path)


def _own_card(path: Path) -> ModelCard:
    """The card of one finished run, with the test split's figures."""
    if not is_finished(path):
        if not (path / STATE).is_dir():
            raise _no_run(path, WEIGHTS)
        raise InputError(
            f"{path}: its training has not ended. `tsattn train --resume {path}` goes on with it."
        )
    where = str(path / WEIGHTS)
    try:
        with safe_open(path / WEIGHTS, framework="pt") as file:
            card = ModelCard.from_json((file.metadata() or {}).get(CARD_KEY, ""), where)
    except SafetensorError as error:
        raise InputError(f"{where}: the weights cannot be read ({error}).") from None
    return dataclasses.replace(card, test=_metrics(path).get("test", {}))


def _no_run(path: Path, missing: str) -> InputError:
    """Of a folder in which that file is missing."""
    runs = sorted(one.parent.name for one in path.glob(f"*/{CONFIG}"))
    named = ", ".join(runs[:MOST_NAMED]) + ", …" * (len(runs) > MOST_NAMED)
    return InputError(
        f"{path}: not a run folder, {missing} is missing; it holds the runs {named}. Name one of them; if "
        "they are to be one model, type their training again, which goes on with what has not ended."
        if runs
        else f"{path}: not a whole run folder, {missing} is missing. Train again with another --out."
    )


def _card_together(path: Path, members: Members, cards: list[ModelCard]) -> ModelCard:
    if not members.ensemble:
        raise InputError(
            f"{path}: holds {len(members.names)} runs and no model of its own. Name one of them, e.g. "
            f"{path / members.names[0]}, or type the training again with --ensemble."
        )
    for name, card in zip(members.names, cards, strict=True):
        if (card.classes, card.channels) != (cards[0].classes, cards[0].channels):
            raise InputError(
                f"{path / MEMBERS}: names {name}, whose classes or channels are not those of "
                f"{members.names[0]}, so they are no one model. Type the training again to mend it."
            )
    protocol = f"ensemble of {len(cards)}, {EACH}{cards[0].protocol}"
    return dataclasses.replace(cards[0], protocol=protocol, test=_metrics(path).get("test", {}))


def _read_together(path: Path, members: Members, allow_code: bool) -> Run:
    card = read_card(path)
    runs = [read_run(path / name, allow_code=allow_code) for name in members.names]
    model = Ensemble([run.single() for run in runs], members.settled).eval()
    return Run(path=path, config=runs[0].config, card=card, model=model)


def load_predictor(path: Path, device: str = "auto", *, allow_code: bool = False) -> TorchPredictor:
    """The run at `path` as a Predictor. InputError for an unreadable run, CheckFailed for no such device."""
    return TorchPredictor(read_run(path, allow_code=allow_code), resolve_device(device))


def read_config(path: Path, *, allow_code: bool = False) -> RunConfig:
    """The configuration of a run that may still be under way; attentions of others are then known.

    InputError for what is no run folder, and as `read_run` for code.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such run folder. `tsattn train SOURCE --out {path}` would make it.")
    if not (path / CONFIG).is_file():
        raise _no_run(path, CONFIG)
    try:
        text = (path / CONFIG).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path / CONFIG}: cannot be read as text ({error}).") from None
    config = RunConfig.from_yaml(text, str(path / CONFIG))
    _load_code(path, config, allow_code)
    return config


def read_split_places(path: Path) -> dict[str, list[int]]:
    """Which cases of the source a run trains on and holds out. InputError where the file is not such."""
    place = path / SPLIT
    try:
        split = json.loads(place.read_text("utf-8"))
        return {str(part): [int(case) for case in cases] for part, cases in split.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{place}: not the split of a run ({error}). Train again with another --out."
        ) from None


def is_finished(path: Path) -> bool:
    """Whether the weights are there; they are written last."""
    return (path / WEIGHTS).is_file()


def record_test(path: Path, figures: Mapping[str, Any]) -> None:
    """Notes the test split's figures in metrics.json, from where export takes them."""
    metrics = {**_metrics(path), "test": dict(figures)}
    draft = path / f".{METRICS}.draft"
    draft.write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n", "utf-8")
    draft.replace(path / METRICS)


def _load_code(path: Path, config: RunConfig, allowed: bool) -> None:
    """Registers the attentions of others that a run needs; a file only if unchanged and allowed.

    What this process has run already, because its user named the file, needs no other word.
    """
    for code in config.code:
        if not code.file:
            find_installed(code, str(path))
            continue
        place = path / CODE / Path(code.file).name  # whatever the configuration says, inside the folder
        if not place.is_file():
            raise InputError(f"{place}: missing; it holds the attention '{code.part}' that the run needs.")
        content = place.read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != code.sha256:
            raise InputError(
                f"{place}: not the code that was trained with. Its sha256 is {found}, {CONFIG} says "
                f"{code.sha256}. Put the original back, or train again."
            )
        if not allowed and not foreign.has_run(code):  # of a file that the user named as it trains
            raise InputError(
                f"{path}: its attention '{code.part}' is code of its own, {place} (sha256 {found}). Reading "
                "the run would run that code: read it first, then type --allow-code."
            )
        foreign.load_file(place, content)


def _metrics(path: Path) -> dict[str, Any]:
    place = path / METRICS
    if not place.is_file():
        return {}
    try:
        metrics = json.loads(place.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{place}: not readable as JSON ({error}).") from None
    return metrics if isinstance(metrics, dict) else {}

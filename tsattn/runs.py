"""Run folders: what a training leaves behind, written whole or not at all, read without pickle.

config.yaml        everything resolved, enough to repeat the run
model.safetensors  weights; the model card stands in the file's own metadata
history.csv        one row an epoch
metrics.json       what the run came to; evaluation adds the test split's figures
split.json         which cases of the source were trained on and which were held out
environment.json   packages, platform, device, threads
code/              where the attention is a file of the user: that file
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from tsattn.card import ModelCard
from tsattn.config import Code, RunConfig
from tsattn.errors import InputError
from tsattn.models.attention import foreign
from tsattn.models.attention.installed import find_installed
from tsattn.models.classifier import Probabilities, TransformerClassifier
from tsattn.models.devices import resolve_device

CONFIG, WEIGHTS, HISTORY = "config.yaml", "model.safetensors", "history.csv"
METRICS, SPLIT, ENVIRONMENT = "metrics.json", "split.json", "environment.json"
CODE, CARD_KEY = "code", "tsattn"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run folder that was read; the model is on the CPU and in evaluation mode."""

    path: Path
    config: RunConfig
    card: ModelCard
    model: TransformerClassifier


class TorchPredictor:
    """A Predictor over a run's own weights. run: the run, whose model is now on the device."""

    def __init__(self, run: Run, device: torch.device) -> None:
        self.run = run
        self.card = run.card
        self.provider = f"torch {device.type}"
        self._device = device
        self._model = Probabilities(run.model).to(device).eval()

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """(cases, channels, timepoints) with NaN where not observed → (cases, classes)."""
        cases, channels, timepoints = values.shape
        if timepoints == 0:  # nothing observed: one unobserved timepoint means the same
            values = np.full((cases, channels, 1), np.nan, np.float32)
        with torch.inference_mode():
            result: NDArray[np.float32] = self._model(torch.from_numpy(values).to(self._device)).cpu().numpy()
        return result


def check_free(path: Path) -> None:
    """InputError where a run folder cannot be written at `path`, before any work is done."""
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path}: exists already and is not empty. Choose another folder with --out.")
        parent = next(folder for folder in path.absolute().parents if folder.exists())
        Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=parent)).rmdir()
    except OSError as error:
        raise _not_writable(path, error) from None


def write_run(
    path: Path,
    *,
    config: RunConfig,
    card: ModelCard,
    model: TransformerClassifier,
    history: Sequence[Any],
    metrics: Mapping[str, Any],
    split: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> None:
    """Writes a run folder beside its place and renames it when whole.

    history: dataclass instances of one type, an epoch each. The other mappings become JSON.
    """
    check_free(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise _not_writable(path, error) from None
    try:
        (draft / CONFIG).write_text(config.to_yaml(), "utf-8")
        for code in filter(_is_file, config.code):
            (draft / code.file).parent.mkdir(exist_ok=True)
            (draft / code.file).write_bytes(foreign.content_of(code))
        weights = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
        save_file(weights, draft / WEIGHTS, metadata={CARD_KEY: card.to_json()})
        with (draft / HISTORY).open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow([field.name for field in dataclasses.fields(history[0])])
            rows.writerows(dataclasses.astuple(epoch) for epoch in history)
        for name, content in ((METRICS, metrics), (SPLIT, split), (ENVIRONMENT, environment)):
            (draft / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
        draft.chmod(0o755)
        if path.exists():  # empty, or check_free would have refused it
            path.rmdir()
        draft.replace(path)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise _not_writable(path, error) from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def read_run(path: Path, *, allow_code: bool = False) -> Run:
    """Reads a run folder. InputError naming the file that is missing or unreadable.

    allow_code: the user's word that the attention code in the folder may be run; without it a
    folder that holds any is refused.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such run folder. `tsattn train SOURCE --out {path}` would make it.")
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            raise InputError(
                f"{path}: not a whole run folder, {name} is missing. Train again with another --out."
            )
    config = RunConfig.from_yaml((path / CONFIG).read_text("utf-8"), str(path / CONFIG))
    _load_code(path, config, allow_code)
    model = TransformerClassifier(config.model)
    where = str(path / WEIGHTS)
    try:
        with safe_open(path / WEIGHTS, framework="pt") as file:
            card = ModelCard.from_json((file.metadata() or {}).get(CARD_KEY, ""), where)
            model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{where}: the weights cannot be read ({error}).") from None
    except RuntimeError as error:
        raise InputError(
            f"{where}: the weights do not fit {CONFIG} ({str(error).splitlines()[-1].strip()})."
        ) from None
    test = _metrics(path).get("test", {})
    return Run(path=path, config=config, card=dataclasses.replace(card, test=test), model=model.eval())


def load_predictor(path: Path, device: str = "auto", *, allow_code: bool = False) -> TorchPredictor:
    """The run at `path` as a Predictor. InputError for an unreadable run, CheckFailed for no such device."""
    return TorchPredictor(read_run(path, allow_code=allow_code), resolve_device(device))


def record_test(path: Path, figures: Mapping[str, Any]) -> None:
    """Notes the test split's figures in metrics.json, from where export takes them."""
    metrics = {**_metrics(path), "test": dict(figures)}
    draft = path / f".{METRICS}.draft"
    draft.write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n", "utf-8")
    draft.replace(path / METRICS)


def _load_code(path: Path, config: RunConfig, allowed: bool) -> None:
    """Registers the attentions of others that a run needs; a file only if unchanged and allowed."""
    for code in config.code:
        if not _is_file(code):
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
        if not allowed:
            raise InputError(
                f"{path}: its attention '{code.part}' is code of its own, {place} (sha256 {found}). Reading "
                "the run would run that code: read it first, then type --allow-code."
            )
        foreign.load_file(place, content)


def _is_file(code: Code) -> bool:
    return bool(code.file)


def _not_writable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path}: the run folder cannot be written ({error.strerror or error}). Choose another with --out."
    )


def _metrics(path: Path) -> dict[str, Any]:
    place = path / METRICS
    if not place.is_file():
        return {}
    try:
        metrics = json.loads(place.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{place}: not readable as JSON ({error}).") from None
    return metrics if isinstance(metrics, dict) else {}

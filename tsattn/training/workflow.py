"""The workflow behind `tsattn train`: a source in, a run folder out. The test split is not looked at."""

from __future__ import annotations

import importlib.metadata
import itertools
import logging
import platform
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tsattn import __version__
from tsattn.card import ModelCard
from tsattn.config import ModelConfig, RunConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.preparation import parse_preparation, prepare_cases
from tsattn.data.sources import LoadedSplit, load_split
from tsattn.errors import InputError
from tsattn.models.attention.foreign import recorded, resolve
from tsattn.models.classifier import TransformerClassifier
from tsattn.models.devices import resolve_device
from tsattn.models.memory import keep_freed_memory
from tsattn.runs import check_free, write_run
from tsattn.training.holdout import BY_SHARE, Divided, Holding, divide, groups_of, with_file
from tsattn.training.loop import Epoch, Fit, fit
from tsattn.training.plan import VALIDATION_SHARE, plan
from tsattn.training.resident import ResidentCases

logger = logging.getLogger(__name__)

SMALLEST_SPREAD = 1e-8
"""Of a channel, relative to its mean; below it float32 values are all the same."""
PACKAGES = ("torch", "numpy", "aeon", "pandas", "pyarrow", "onnx", "safetensors")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A training that is about to start: everything decided, nothing computed."""

    config: RunConfig
    out: Path
    model: TransformerClassifier
    train: Collection
    validation: Collection | None
    split: dict[str, list[int]]
    protocol: str

    @property
    def parameters(self) -> int:
        """Trainable numbers of the model."""
        return sum(p.numel() for p in self.model.parameters())


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished training: where its run folder is and what it came to."""

    out: Path
    metrics: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cutting:
    """How recordings become cases, as typed: see `tsattn.data.preparation.parse_preparation`."""

    resample: str | None = None
    window: int | None = None
    stride: int | None = None


AS_THEY_ARE = Cutting()


def prepare(
    source: str,
    *,
    asked: Mapping[str, Any],
    preset: str,
    device: str,
    threads: int | None,
    out: Path | None,
    table: TableOptions,
    registry: Path | None = None,
    cutting: Cutting = AS_THEY_ARE,
    holding: Holding = BY_SHARE,
) -> Prepared:
    """Loads the training cases and resolves the configuration.

    asked: fields of ModelConfig and TrainingConfig that the user named, None elsewhere.
    InputError for anything that cannot be, CheckFailed for a device that is not there.
    """
    if holding.file is not None and asked.get("validation") is not None:
        raise InputError("--val-fraction and --val-file both say what is held out: type one of them.")
    if threads is not None:
        torch.set_num_threads(threads)
    chosen_device = resolve_device(device)
    if asked.get("attention") is not None:
        asked = {**asked, "attention": resolve(asked["attention"])}
    if out is not None:
        check_free(out)
    if cutting.window is not None:
        table = replace(table, label_of="timepoint")
    loaded = load_split(source, "train", table, registry)
    how = parse_preparation(cutting.resample, cutting.window, cutting.stride, loaded.collection)
    cut = prepare_cases(loaded.collection, how)
    if holding.file is not None:
        asked = {**asked, "validation": 0.0}
    elif holding.latest and asked.get("validation") is None:
        asked = {**asked, "validation": VALIDATION_SHARE}
    model_config, training = plan(cut.cases, preset, asked, groups_of(cut))
    if holding.file is not None:
        divided = with_file(cut, holding.file, table, how)
    else:
        divided = divide(cut, training.validation, training.seed, holding, how.window)
    torch.manual_seed(training.seed)
    model = TransformerClassifier(model_config)
    config = RunConfig(
        source=source,
        registry="" if registry is None else str(registry),
        preset=preset,
        device=chosen_device.type,
        threads=torch.get_num_threads(),
        model=model_config,
        training=training,
        table=loaded.table,
        preparation=how.as_dict(),
        code=recorded(model_config.attention),
    )
    return Prepared(
        config=config,
        out=out or _fresh_folder(loaded, model_config, training),
        model=model,
        train=divided.train,
        validation=divided.validation,
        split=divided.split,
        protocol=_protocol(training, divided),
    )


def train(prepared: Prepared, watch: Callable[[Epoch], None]) -> Trained:
    """Trains and writes the run folder; `watch` hears of every epoch."""
    config, device = prepared.config, torch.device(prepared.config.device)
    keep_freed_memory()
    _take_statistics(prepared.model, prepared.train)
    model = prepared.model.to(device)
    classes = prepared.train.classes
    train_cases = ResidentCases(prepared.train, classes, device)
    held_out = None if prepared.validation is None else ResidentCases(prepared.validation, classes, device)
    result = fit(model, train_cases, held_out, config.training, watch)
    metrics = _metrics(result, prepared)
    write_run(
        prepared.out,
        config=config,
        card=_card(prepared, result),
        model=model.cpu(),
        history=result.history,
        metrics=metrics,
        split=prepared.split,
        environment=_environment(config),
    )
    return Trained(out=prepared.out, metrics=metrics)


def _protocol(training: TrainingConfig, divided: Divided) -> str:
    cases = len(divided.train)
    if divided.validation is None:
        return f"last: all {cases} cases of TRAIN, epoch {training.epochs} of a fixed schedule"
    return (
        f"holdout: {len(divided.validation)} cases held out ({divided.how}), {cases} trained on, "
        "the epoch of the highest held-out accuracy"
    )


def _take_statistics(model: TransformerClassifier, train: Collection) -> None:
    """Mean and deviation of every channel over what was observed in training, in float64."""
    values = train.values.astype(np.float64)
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=(0, 2)), 1)
    mean = np.where(seen, values, 0).sum(axis=(0, 2)) / count
    centred = np.where(seen, values - mean[:, None], 0)
    std = np.sqrt((centred**2).sum(axis=(0, 2)) / count)
    model.standardise.mean.copy_(torch.from_numpy(mean))
    # A channel that never changes says nothing: it becomes zero instead of being divided by zero.
    constant = std <= np.maximum(SMALLEST_SPREAD * np.abs(mean), np.finfo(np.float32).tiny)
    model.standardise.std.copy_(torch.from_numpy(np.where(constant, 1.0, std)))
    if constant.any():
        names = ", ".join(name for name, same in zip(train.channels, constant, strict=True) if same)
        logger.warning("Channels that never change in the training cases and so say nothing: %s.", names)


def _card(prepared: Prepared, result: Fit) -> ModelCard:
    lengths = prepared.train.lengths
    config, model = prepared.config, prepared.model
    chosen = "" if prepared.validation is None else f", epoch {result.chosen.epoch} of {len(result.history)}"
    return ModelCard(
        classes=prepared.train.classes,
        channels=prepared.train.channels,
        attention=config.model.attention,
        tokens=config.model.tokens,
        preset=config.preset,
        lengths=(int(lengths.min()), int(np.median(lengths)), int(lengths.max())),
        mean=tuple(model.standardise.mean.tolist()),
        std=tuple(model.standardise.std.tolist()),
        source=config.source,
        registry=config.registry,
        protocol=prepared.protocol + chosen,
        majority=_majority(prepared.train),
        fingerprint=prepared.train.fingerprint(),
        table=config.table,
        preparation=config.preparation,
        versions=_versions(),
    )


def _majority(cases: Collection) -> str:
    assert cases.labels is not None
    counts = Counter(cases.labels)
    return max(cases.classes, key=lambda label: counts[label])


def _metrics(result: Fit, prepared: Prepared) -> dict[str, Any]:
    last = result.chosen
    validation = None
    if prepared.validation is not None:
        validation = {"loss": last.validation_loss, "accuracy": last.validation_accuracy}
    return {
        "protocol": prepared.protocol,
        "epoch": last.epoch,
        "epochs": len(result.history),
        "train": {"loss": last.train_loss, "accuracy": last.train_accuracy},
        "validation": validation,
        "parameters": prepared.parameters,
        "seconds": result.history[-1].seconds,
    }


def _versions() -> dict[str, str]:
    return {"tsattn": __version__, **{name: importlib.metadata.version(name) for name in PACKAGES}}


def _environment(config: RunConfig) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": config.device,
        "device_name": torch.cuda.get_device_name() if config.device == "cuda" else platform.machine(),
        "threads": config.threads,
        "versions": _versions(),
    }


def _fresh_folder(loaded: LoadedSplit, model: ModelConfig, training: TrainingConfig) -> Path:
    """runs/NAME-SPEC-seedN, numbered where that exists."""
    words = f"{loaded.name}-{model.attention}-seed{training.seed}"
    stem = re.sub(r"[^\w.+-]", "-", words)[-100:]
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return next(path for path in (Path("runs") / name for name in names) if not path.exists())

"""From what was typed, or from a run folder, to a training about to start: all decided, nothing computed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tsattn.card import BEST_ON_TEST
from tsattn.config import TEST, WORDS, ModelConfig, RunConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.preparation import Preparation, PreparedCases, parse_preparation, prepare_cases
from tsattn.data.sources import LoadedSplit, load_split
from tsattn.errors import InputError
from tsattn.models.attention.foreign import recorded, resolve
from tsattn.models.classifier import TransformerClassifier
from tsattn.models.devices import resolve_device
from tsattn.presets.reading import load_preset
from tsattn.runs import check_free, is_finished, read_config, read_split_places
from tsattn.runs.files import CONFIG
from tsattn.training import tracking
from tsattn.training.augment import parse_augmentation
from tsattn.training.fitting import refuse_too_large
from tsattn.training.holdout import BY_SHARE, Divided, Holding, divide, groups_of, with_file, with_test
from tsattn.training.plan import plan
from tsattn.training.pretrained import weights_of
from tsattn.training.protocols import parse_protocol, settle
from tsattn.training.threads import threads_for


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A training that is about to start.

    split: places among the source's cases. groups: of the training cases, where some may not be torn apart.
    stem: what names of its folders begin with. begun: whether the
    run folder is there already.
    """

    config: RunConfig
    out: Path
    model: TransformerClassifier
    train: Collection
    validation: Collection | None
    split: dict[str, list[int]]
    groups: tuple[str, ...] | None = None
    stem: str = ""
    begun: bool = False

    @property
    def parameters(self) -> int:
        """Trainable numbers of the model."""
        return sum(p.numel() for p in self.model.parameters())

    def untracked(self) -> Prepared:
        """The same training, reported to no tracker."""
        return replace(self, config=replace(self.config, training=replace(self.config.training, track="")))


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
    protocol: str = "auto",
) -> Prepared:
    """Loads the training cases and resolves the configuration.

    protocol: one of `tsattn.training.protocols`; of kfold with the fold in `holding`.
    asked: fields of ModelConfig and TrainingConfig that the user named, None elsewhere.
    InputError for anything that cannot be, CheckFailed for a device that is not there.
    """
    asked, holding = settle(parse_protocol(protocol), asked, holding)
    chosen_device = resolve_device(device)
    recipe = load_preset(preset)  # its mistakes are said before data are read
    if (attention := asked.get("attention") or recipe.model.get("attention")) is not None:
        asked = {**asked, "attention": resolve(attention)}
    if out is not None:
        check_free(out)
    TrainingConfig(epochs=1, batch_size=1, **{name: asked[name] for name in WORDS if asked.get(name)})
    parse_augmentation(asked.get("augment") or "")
    tracking.require(tracking.parse_trackers(asked.get("track") or recipe.training.get("track") or ""))
    if asked.get("pretrained"):
        weights_of(Path(asked["pretrained"]))
    if cutting.window is not None:
        table = replace(table, label_of="timepoint")
    loaded = load_split(source, "train", table, registry)
    how = parse_preparation(cutting.resample, cutting.window, cutting.stride, loaded.collection)
    cut = prepare_cases(loaded.collection, how)
    planned = plan(cut.cases, preset, asked, groups_of(cut), chosen_device.type)
    model_config, training = planned.model, planned.training
    usual = int(np.median(cut.cases.lengths))
    torch.set_num_threads(threads or threads_for(training.batch_size, usual, model_config.width))
    if holding.file is not None:
        divided = with_file(cut, holding.file, table, how)
    elif holding.test:
        divided = with_test(cut, load_split(source, "test", TableOptions.of(loaded.table), registry), how)
    else:
        divided = divide(cut, training.validation, training.seed, holding, how.window)
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
        held_out=TEST if holding.test else "" if holding.file is None else str(holding.file),
        protocol=_protocol(training, divided, holding),
        fingerprint=divided.train.fingerprint(),
        code=recorded(model_config.attention),
        rules=planned.rules,
    )
    stem = _stem(loaded, model_config)
    return Prepared(
        config=config,
        out=out or _fresh_folder(stem, training.seed),
        stem=stem,
        model=_fresh_model(config),
        train=divided.train,
        validation=divided.validation,
        split=divided.split,
        groups=_groups(cut, divided),
    )


def prepare_again(run: Path, *, out: Path, allow_code: bool = False) -> Prepared:
    """The training of a run folder as it was prepared the first time, to be written to `out`.

    It goes on in the folder itself where `out` is `run`. InputError where the data are no longer there or no
    longer the same, CheckFailed for a device that is not there.
    """
    config = read_config(run, allow_code=allow_code)
    if out == run and is_finished(run):
        raise InputError(f"{run}: its training has ended. `tsattn eval {run}` judges it.")
    torch.set_num_threads(config.threads)
    resolve_device(config.device)
    table = TableOptions.of(config.table)
    how = Preparation.from_dict(config.preparation)
    if how.window is not None:
        table = replace(table, label_of="timepoint")
    registry = Path(config.registry) if config.registry else None
    cut = prepare_cases(load_split(config.source, "train", table, registry).collection, how)
    split = read_split_places(run)
    divided = _divided_again(cut, split, config, table, how)
    if divided.train.fingerprint() != config.fingerprint:
        raise InputError(
            f"{config.source}: not the cases that {run} was begun with; their fingerprint is "
            f"{divided.train.fingerprint()}, {run} says {config.fingerprint}. Put the data back as they "
            "were, or train anew."
        )
    shape = len(divided.train.channels), len(divided.train.classes)
    if (config.model.channels, config.model.classes) != shape:
        raise InputError(
            f"{run / CONFIG}: says {config.model.channels} channels and {config.model.classes} classes, the "
            f"cases have {shape[0]} and {shape[1]}. Put these numbers back as they were."
        )
    return Prepared(
        config=config,
        out=out,
        model=_fresh_model(config),
        train=divided.train,
        validation=divided.validation,
        split=split,
        groups=_groups(cut, divided),
        begun=out == run,
    )


def _divided_again(
    cut: PreparedCases,
    split: Mapping[str, list[int]],
    config: RunConfig,
    table: TableOptions,
    how: Preparation,
) -> Divided:
    if config.held_out == TEST:
        registry = Path(config.registry) if config.registry else None
        return with_test(cut, load_split(config.source, "test", table, registry), how)
    if config.held_out:
        return with_file(cut, Path(config.held_out), table, how)
    cases = cut.cases
    places = [np.array(split.get(part, []), np.int64) for part in ("train", "validation")]
    if any(len(chosen) and chosen.max() >= len(cases) for chosen in places):
        raise InputError(
            f"{config.source}: has {len(cases)} cases, less than the run was begun with. Put the data back "
            "as they were, or train anew."
        )
    training, held_out = places
    return Divided(
        train=cases.take(training),
        validation=cases.take(held_out) if len(held_out) else None,
        split=dict(split),
        how="",
    )


def _groups(cut: PreparedCases, divided: Divided) -> tuple[str, ...] | None:
    groups = groups_of(cut)
    return None if groups is None else tuple(groups[place] for place in divided.split["train"])


def _fresh_model(config: RunConfig) -> TransformerClassifier:
    """With the weights that the seed gives; the generator is left as training goes on with it."""
    refuse_too_large(config.model, torch.device(config.device))
    torch.manual_seed(config.training.seed)
    return TransformerClassifier(config.model)


def _protocol(training: TrainingConfig, divided: Divided, holding: Holding) -> str:
    cases = len(divided.train)
    if holding.test:
        return (
            f"{BEST_ON_TEST}: all {cases} cases of TRAIN, the epoch of the highest accuracy on TEST; "
            "comparable with tables made so, and no estimate of what new cases will show"
        )
    if holding.fold is not None and divided.validation is not None:
        held_out = f"{divided.how} held out ({len(divided.validation)} cases)"
        word = "kfold" if holding.together is None else "parts"
        return f"{word}: {held_out}, {cases} trained on, epoch {training.epochs} of a fixed schedule"
    if divided.validation is None:
        return f"last: all {cases} cases of TRAIN, epoch {training.epochs} of a fixed schedule"
    return (
        f"holdout: {len(divided.validation)} cases held out ({divided.how}), {cases} trained on, "
        "the epoch of the highest held-out accuracy"
    )


def _stem(loaded: LoadedSplit, model: ModelConfig) -> str:
    """What a folder's name begins with: NAME-SPEC."""
    return re.sub(r"[^\w.+-]", "-", f"{loaded.name}-{model.attention}")[-90:]


def _fresh_folder(stem: str, seed: int) -> Path:
    """runs/NAME-SPEC-seedN, numbered where that exists."""
    words = f"{stem}-seed{seed}"
    names = itertools.chain([words], (f"{words}-{number}" for number in itertools.count(2)))
    return next(path for path in (Path("runs") / name for name in names) if not path.exists())

"""The workflow behind `tsattn train`: a source in, a run folder out. The test split is not looked at."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tsattn import __version__
from tsattn.card import ModelCard
from tsattn.config import RunConfig
from tsattn.data.collection import Collection
from tsattn.errors import CheckFailed, InputError, Interrupted
from tsattn.models.memory import keep_freed_memory
from tsattn.runs import abandon, begin_run, finish_run, held
from tsattn.runs.files import METRICS, STATE
from tsattn.training.closed_form import fit_beside
from tsattn.training.fitting import micro_batch
from tsattn.training.loop import Fit, fit, measure, never
from tsattn.training.parallel import Alone, Company, ProcessLost
from tsattn.training.preparing import Prepared
from tsattn.training.pretrained import begin_with
from tsattn.training.progress import Epoch
from tsattn.training.resident import ResidentCases, placed
from tsattn.training.state import FILE, BorrowedStateFile, StateFile
from tsattn.training.statistics import ranges, take_statistics
from tsattn.training.tracking import reported
from tsattn.training.trial import weigh_by_trial

PACKAGES = ("torch", "numpy", "aeon", "pandas", "pyarrow", "onnx", "safetensors")


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished training: where its run folder is and what it came to."""

    out: Path
    metrics: dict[str, Any]

    @classmethod
    def read(cls, out: Path) -> Trained:
        """Of a run folder that is finished. InputError where its metrics are spoilt."""
        place = out / METRICS
        try:
            metrics = json.loads(place.read_text("utf-8"))
            if not isinstance(metrics, dict) or not {"epoch", "parameters", "seconds"} <= set(metrics):
                raise ValueError("figures are missing")
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{place}: not the metrics of a run ({error}). Train again with another --out."
            ) from None
        return cls(out=out, metrics=metrics)


def train(
    prepared: Prepared,
    watch: Callable[[Epoch], None],
    asked_to_stop: Callable[[], bool] = never,
    company: Company | None = None,
) -> Trained:
    """Trains and writes the run folder; `watch` hears of every epoch.

    company: the processes that train it together, of which the first writes; all of them call this.
    Interrupted when asked to stop and CheckFailed when the weights diverged or a process of the company
    ended: the folder then holds the state that was saved last. InputError where another training has it, and
    where there is not enough memory for a single case.
    """
    company = company or Alone()
    keep_freed_memory()
    config, out = prepared.config, prepared.out
    device = company.device(torch.device(config.device))
    take_statistics(prepared.model, prepared.train)
    saved = prepared.begun and (out / STATE / FILE).is_file()
    if config.training.pretrained and not saved:
        begin_with(prepared.model, Path(config.training.pretrained))
    model = prepared.model.to(device)
    beside, model.beside = model.beside, None  # fitted when the transformer is trained
    classes = prepared.train.classes
    train_cases = placed(prepared.train, classes, device)
    held_out = None if prepared.validation is None else placed(prepared.validation, classes, device)
    at_once = config.training.batch_size
    if not saved:
        with company.alike():
            at_once = micro_batch(model, config.model, at_once, train_cases)
    training = partial(
        fit,
        model,
        train_cases,
        held_out,
        config.training,
        asked_to_stop=asked_to_stop,
        micro_batch=at_once,
        company=company,
    )
    if not company.leads:
        result = training(watch, state=BorrowedStateFile(out / STATE, of=config.identity))
        return Trained(out=out, metrics=_metrics(result, prepared))
    if not prepared.begun:
        begin_run(out, config=config, split=prepared.split, environment=_environment(config, company.size))
    with held(out), reported(config, out, resumed=prepared.begun) as reports:
        state = StateFile(out / STATE, of=config.identity)
        with _saying_what_is_kept(out, state, company):
            result = training(reports.beside(watch), state=state)
            metrics = _metrics(result, prepared)
            if beside is not None:
                model.beside = beside
                metrics |= _fit_beside(prepared, train_cases, held_out, result, asked_to_stop)
        finish_run(
            out,
            card=_card(prepared, result),
            weights=model.state_dict(),
            history=result.history,
            metrics=metrics,
        )
        reports.end(metrics)
    return Trained(out=out, metrics=metrics)


def _fit_beside(
    prepared: Prepared,
    train_cases: ResidentCases,
    held_out: ResidentCases | None,
    trained: Fit,
    asked_to_stop: Callable[[], bool],
) -> dict[str, Any]:
    """Fits what stands beside the trained transformer; the metrics that so become others."""
    model, training = prepared.model, prepared.config.training
    assert model.beside is not None
    begun = time.perf_counter()
    fitted = fit_beside(model, train_cases, training.seed, trained.at_once)
    by_trial = None
    if training.trial:
        by_trial = weigh_by_trial(prepared, train_cases, fitted, asked_to_stop, trained.at_once)
    if by_trial is not None:
        model.beside.say.fill_(by_trial.say)
    ridge = fitted.ridge
    changed: dict[str, Any] = {
        "convolutions": {
            "left_out": {"loss": ridge.loss, "accuracy": ridge.accuracy},
            "say_of_transformer": model.beside.say.item(),
            "cases_of_trial": 0 if by_trial is None else by_trial.cases,
        },
        "seconds": trained.history[-1].seconds + time.perf_counter() - begun,
    }
    if held_out is not None:
        loss, accuracy = measure(model, held_out, trained.at_once)
        changed["validation"] = {"loss": loss, "accuracy": accuracy}
    return changed


@contextmanager
def _saying_what_is_kept(out: Path, state: StateFile, company: Company) -> Iterator[None]:
    """Around a training: whatever ends it early leaves its state, or nothing where there is none yet."""
    try:
        yield
    except Interrupted as stop:
        raise Interrupted(
            f"{out}: {stop}. Nothing is lost: go on with `{company.command} --resume {out}`."
        ) from None
    except ProcessLost as lost:
        if not state.path.exists():
            abandon(out)
            raise ProcessLost(f"{out}: {lost} Nothing had been saved: begin again.") from None
        raise ProcessLost(f"{out}: {lost} Go on with `{company.command} --resume {out}`.") from None
    except BaseException as failure:
        if not state.path.exists():  # nothing that could be gone on with
            abandon(out)
        elif isinstance(failure, CheckFailed):
            raise CheckFailed(
                f"{failure} The last good weights are kept: --pretrained {out} begins with them."
            ) from failure
        raise


def _card(prepared: Prepared, result: Fit) -> ModelCard:
    lengths = prepared.train.lengths
    least, greatest, missing = ranges(prepared.train)
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
        least=least,
        greatest=greatest,
        missing=missing,
        source=config.source,
        registry=config.registry,
        protocol=prepared.config.protocol + chosen,
        majority=_majority(prepared.train),
        fingerprint=config.fingerprint,
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
        "protocol": prepared.config.protocol,
        "epoch": last.epoch,
        "epochs": len(result.history),
        "train": {"loss": last.train_loss, "accuracy": last.train_accuracy},
        "validation": validation,
        "parameters": prepared.parameters,
        "seconds": result.history[-1].seconds,
    }


def _versions() -> dict[str, str]:
    return {"tsattn": __version__, **{name: importlib.metadata.version(name) for name in PACKAGES}}


def _environment(config: RunConfig, processes: int) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": config.device,
        "device_name": torch.cuda.get_device_name() if config.device == "cuda" else platform.machine(),
        "threads": config.threads,
        "processes": processes,
        "versions": _versions(),
    }

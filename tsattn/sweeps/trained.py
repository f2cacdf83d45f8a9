"""The cell of a transformer: trained where that is not done yet, then judged on TEST or on parts of TRAIN.

CELL/                 the run folder; of kfold:K none, but one for each part:
CELL/fold0 …          a run folder that part 1 of TRAIN is held out from, and so on
CELL/seed0 …          of a preset that makes one model of several: the run folders of these
CELL-search/          of refit: the run that found the number of epochs
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tsattn import __version__
from tsattn.errors import InputError, Interrupted
from tsattn.host import peak_memory
from tsattn.sweeps.cell import METRICS, Cell
from tsattn.sweeps.job import Job, now, versions

if TYPE_CHECKING:
    from tsattn.data.collection import Collection
    from tsattn.inference.predictor import Predictor
    from tsattn.training.holdout import Holding
    from tsattn.training.preparing import Prepared


class Timed:
    """A Predictor that counts the seconds of another, once that has warmed up."""

    def __init__(self, inner: Predictor) -> None:
        self.inner, self.card, self.provider = inner, inner.card, inner.provider
        inner.probabilities(np.zeros((1, len(inner.card.channels), inner.card.lengths[1]), np.float32))
        self.seconds = 0.0

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """As the other one."""
        begun = time.perf_counter()
        answer = self.inner.probabilities(values)
        self.seconds += time.perf_counter() - begun
        return answer


def transformer(job: Job) -> Cell:
    """Trains what is not trained yet and judges it; TEST is read last, and not at all by kfold."""
    return _crossed(job) if job.folds else _judged_on_test(job)


def _judged_on_test(job: Job) -> Cell:
    from tsattn.evaluation.evaluate import evaluate
    from tsattn.runs import is_finished, load_predictor, read_config, read_split_places, record_test

    here = is_finished(job.first(job.place))
    with _asked_to_stop() as stopping:
        metrics = _refitted(job, stopping) if job.protocol == "refit" else _trained(job, stopping)
    config = read_config(job.first(job.place), allow_code=job.allow_code)
    predictor = Timed(load_predictor(job.place, config.device, allow_code=job.allow_code))
    card = predictor.card
    train, test = job.split("train").collection, job.split("test").collection
    report = evaluate(predictor, test, majority=card.majority or None)
    figures = report.figures()
    record_test(job.place, figures)
    return Cell(
        **_common(job),
        protocol=card.protocol,
        metrics={name: figures[name] for name in METRICS},
        train_cases=sum(map(len, read_split_places(job.first(job.place)).values())),
        test_cases=len(test),
        length=int(train.lengths.max()),  # the card knows those that were not held out
        channels=len(card.channels),
        classes=len(card.classes),
        parameters=metrics["parameters"],
        train_seconds=metrics["seconds"],
        inference_cases_per_second=len(test) / max(predictor.seconds, 1e-9),
        peak_memory_bytes=None if here else peak_memory(),  # what training took is not known any more
        threads=config.threads,
        fingerprint=card.fingerprint,
    )


def _crossed(job: Job) -> Cell:
    """Every part of TRAIN is answered by the model that was trained on the others."""
    from tsattn.evaluation.metrics import report
    from tsattn.inference.cases import predict_all
    from tsattn.runs import is_finished, load_predictor, read_config, read_split_places
    from tsattn.training.holdout import Holding

    places = [job.place / f"fold{fold}" for fold in range(job.folds)]
    here = all(map(is_finished, places))
    with _asked_to_stop() as stopping:
        metrics = [
            _trained(job, stopping, place, holding=Holding(fold=(fold, job.folds)))
            for fold, place in enumerate(places)
        ]
    train = job.split("train").collection
    assert train.labels is not None
    probabilities = np.zeros((len(train), len(train.classes)), np.float32)
    seconds = 0.0
    for place in places:
        config, split = read_config(place, allow_code=job.allow_code), read_split_places(place)
        predictor = Timed(load_predictor(place, config.device, allow_code=job.allow_code))
        held_out = _places(train, split.get("validation", []))
        if train.take(_places(train, split.get("train", []))).fingerprint() != config.fingerprint:
            raise InputError(f"{job.source}: not the cases that {place} was trained on. Put them back.")
        probabilities[held_out] = predict_all(predictor, train.take(held_out))
        seconds += predictor.seconds
    majority = max(train.classes, key=train.labels.count)
    figures = report(probabilities, train.labels, train.classes, majority).figures()
    return Cell(
        **_common(job),
        folds=job.folds,
        protocol=f"{job.crossed(len(train))}, epoch {config.training.epochs} of a fixed schedule",
        metrics={name: figures[name] for name in METRICS},
        train_cases=len(train),
        length=int(train.lengths.max()),
        channels=len(train.channels),
        classes=len(train.classes),
        parameters=metrics[0]["parameters"],
        train_seconds=sum(of["seconds"] for of in metrics),
        inference_cases_per_second=len(train) / max(seconds, 1e-9),
        peak_memory_bytes=None if here else peak_memory(),
        threads=config.threads,
        fingerprint=train.fingerprint(),
    )


def _common(job: Job) -> dict[str, Any]:
    """What every cell of a transformer says beside its figures."""
    return {
        "data": job.data,
        "method": job.method,
        "kind": "transformer",
        "seed": job.seed,
        "grid": job.grid,
        "status": "done",
        "tsattn": __version__,
        "packages": versions(),
        "finished": now(),
    }


def _refitted(job: Job, stopping: list[int]) -> dict[str, Any]:
    """Held-out cases find the number of epochs, then all of TRAIN is trained on; seconds are of both."""
    from tsattn.training.several import as_refit

    search = job.place.with_name(f"{job.place.name}-search")
    alone = job if job.members == 1 else next(iter(job.each().values()))
    found = _one(replace(alone, protocol="holdout"), stopping, search)
    whole = replace(job, protocol="last", asked={**job.asked, "epochs": found["epoch"], "validation": None})
    metrics = _trained(whole, stopping, finish=lambda prepared: as_refit(prepared, found["epoch"], search))
    return {**metrics, "seconds": found["seconds"] + metrics["seconds"]}


def _trained(
    job: Job,
    stopping: list[int],
    place: Path | None = None,
    *,
    holding: Holding | None = None,
    finish: Callable[[Prepared], Prepared] = lambda prepared: prepared,
) -> dict[str, Any]:
    """Metrics of the model at `place`, the cell's folder if not given, trained as far as it is not yet.

    finish: what is still to be said of a training that begins. Of several as one model their parameters and
    seconds are added up.
    """
    from tsattn.runs.writing import write_members
    from tsattn.training.settling import settle

    place = place or job.place
    if job.members == 1:
        return _one(job, stopping, place, holding, finish)
    of_members = job.each()
    found = [
        _one(member, stopping, place / name, holding or job.held_out_of(number), finish)
        for number, (name, member) in enumerate(of_members.items())
    ]
    # What is held out to choose epochs, TEST for one, is not what settles an ensemble.
    settled = settle(place, list(of_members), allow_code=job.allow_code) if job.parts else None
    write_members(place, list(of_members), ensemble=True, settled=settled)
    return {**found[0], **{name: sum(one[name] for one in found) for name in ("parameters", "seconds")}}


def _one(
    job: Job,
    stopping: list[int],
    place: Path,
    holding: Holding | None = None,
    finish: Callable[[Prepared], Prepared] = lambda prepared: prepared,
) -> dict[str, Any]:
    from tsattn.runs import is_finished
    from tsattn.runs.files import CONFIG
    from tsattn.training import preparing, workflow
    from tsattn.training.holdout import BY_SHARE

    if not is_finished(place):
        if (place / CONFIG).is_file():
            prepared = preparing.prepare_again(place, out=place, allow_code=job.allow_code)
        else:
            prepared = finish(
                preparing.prepare(
                    job.source,
                    asked={**job.asked, "attention": job.word, "seed": job.seed},
                    preset=job.preset,
                    device=job.device,
                    threads=job.threads,
                    out=place,
                    table=job.roles,
                    registry=job.own,
                    holding=holding or BY_SHARE,
                    protocol=job.protocol,
                )
            )
        workflow.train(prepared, lambda epoch: None, lambda: bool(stopping))
    return workflow.Trained.read(place).metrics


def _places(cases: Collection, places: list[int]) -> NDArray[np.int64]:
    """Those of `places` that there are."""
    found = np.array(places, np.int64)
    return found[found < len(cases)]


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """Not empty once SIGTERM or SIGINT came; outside the block either ends the process."""
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came and sys.exc_info()[0] is None:
            raise Interrupted("stopped")

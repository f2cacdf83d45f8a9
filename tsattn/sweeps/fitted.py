"""The cell of a baseline: fitted on TRAIN and judged on TEST, or on each part of TRAIN by the others."""

from __future__ import annotations

import numpy as np

from tsattn import __version__
from tsattn.data.collection import Collection
from tsattn.data.splits import folds
from tsattn.errors import InputError
from tsattn.host import peak_memory
from tsattn.sweeps.baselines import Baseline, Judged, find_baseline, judge
from tsattn.sweeps.cell import METRICS, OF_PROBABILITIES, Cell
from tsattn.sweeps.job import Job, now, versions


def baseline(job: Job) -> Cell:
    """Fits a classifier of aeon and judges it; kfold reads no TEST."""
    from tsattn.evaluation.metrics import report

    found, threads = find_baseline(job.word), job.threads or job.cores
    train = job.split("train").collection
    test = train if job.folds else job.split("test").collection
    if train.labels is None or test.labels is None:
        raise InputError(
            f"{found.word} takes cases with a label each, and here labels hold for timepoints. "
            "Cut the recordings into cases first."
        )
    if job.folds:
        judged = _crossed(job, found, train, threads)
        how = f"{job.crossed(len(train))}; {judged.how}"
    else:
        judged = judge(found, train, test, job.seed, threads)
        how = f"{judged.how}: all {len(train)} cases of TRAIN"
    majority = max(train.classes, key=train.labels.count)
    figures = report(judged.probabilities, test.labels, train.classes, majority).figures()
    job.place.mkdir(parents=True, exist_ok=True)
    return Cell(
        data=job.data,
        method=job.method,
        kind="baseline",
        seed=job.seed,
        status="done",
        folds=job.folds,
        protocol="; ".join([how, *judged.done]),
        metrics={
            name: figures[name] if found.probabilities or name not in OF_PROBABILITIES else None
            for name in METRICS
        },
        train_cases=len(train),
        test_cases=None if job.folds else len(test),
        length=int(train.lengths.max()),
        channels=len(train.channels),
        classes=len(train.classes),
        train_seconds=judged.train_seconds,
        inference_cases_per_second=len(test) / max(judged.inference_seconds, 1e-9),
        peak_memory_bytes=peak_memory(),
        threads=threads,
        tsattn=__version__,
        packages=versions(),
        fingerprint=train.fingerprint(),
        finished=now(),
    )


def _crossed(job: Job, found: Baseline, train: Collection, threads: int) -> Judged:
    """Every case of TRAIN answered by a classifier that was fitted on the other parts; times are of all."""
    probabilities = np.zeros((len(train), len(train.classes)))
    each = []
    for fitting, held_out in folds(train.labels or (), job.folds, job.seed, train.groups):
        each.append(judge(found, train.take(fitting), train.take(held_out), job.seed, threads))
        probabilities[held_out] = each[-1].probabilities
    return Judged(
        probabilities=probabilities,
        train_seconds=sum(one.train_seconds for one in each),
        inference_seconds=sum(one.inference_seconds for one in each),
        how=each[0].how,
        done=tuple(dict.fromkeys(what for one in each for what in one.done)),
    )

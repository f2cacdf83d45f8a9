"""One cell of a sweep, in a process of its own: `python -m tsattn.sweeps.one`, the job on stdin.

The first line of stdin is the job; when stdin ends, the sweep is gone and so is this process. SIGTERM keeps
the state of a training. A cell that is done is written; why another could not be done stands at the end of
stderr, and the sweep writes that down.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from tsattn import __version__
from tsattn.errors import InputError, Interrupted, TsattnError
from tsattn.host import peak_memory
from tsattn.sweeps.cell import Cell, Kind, write_cell

if TYPE_CHECKING:
    from tsattn.data.columns import TableOptions
    from tsattn.data.sources import LoadedSplit
    from tsattn.inference.predictor import Predictor
    from tsattn.training.preparing import Prepared

PATIENCE = 120.0
"""Seconds for the process of a sweep that was killed to leave the cell."""
PACKAGES = ("aeon", "numpy", "scikit-learn", "torch")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A cell to be computed, as it travels to its process.

    folder: the cell's. lock: a file that is held meanwhile. word: of the attention or baseline, as typed.
    asked: values by field, with those of the grid. threads: as typed, None for as many as pay, of which
    there may be `cores`.
    """

    folder: str
    lock: str
    data: str
    source: str
    method: str
    kind: Kind
    word: str
    seed: int
    preset: str
    protocol: str
    device: str
    threads: int | None
    cores: int
    grid: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    table: dict[str, str] = field(default_factory=dict)
    registry: str = ""
    allow_code: bool = False

    def to_json(self) -> str:
        """On one line."""
        return json.dumps(dataclasses.asdict(self))

    @property
    def place(self) -> Path:
        """The cell's folder."""
        return Path(self.folder)

    def split(self, name: str) -> LoadedSplit:
        """TRAIN or TEST of the data."""
        from tsattn.data.sources import load_split

        return load_split(self.source, "train" if name == "train" else "test", self.roles, self.own)

    @property
    def roles(self) -> TableOptions:
        """The columns, as typed."""
        from tsattn.data.columns import TableOptions

        return TableOptions.of(self.table)

    @property
    def own(self) -> Path | None:
        """The user's registry, if one was typed."""
        return Path(self.registry) if self.registry else None


class Timed:
    """A Predictor that counts the seconds of another."""

    def __init__(self, inner: Predictor) -> None:
        self.inner, self.card, self.provider = inner, inner.card, inner.provider
        self.seconds = 0.0

    def probabilities(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """As the other one."""
        begun = time.perf_counter()
        answer = self.inner.probabilities(values)
        self.seconds += time.perf_counter() - begun
        return answer


def transformer(job: Job) -> Cell:
    """Trains what is not trained yet, then reads TEST for the first time and judges."""
    from tsattn.evaluation.evaluate import evaluate
    from tsattn.runs import is_finished, load_predictor, read_config, read_split_places, record_test
    from tsattn.training import workflow

    here = is_finished(job.place)
    if not here:
        with _asked_to_stop() as stopping:
            workflow.train(_prepared(job), lambda epoch: None, lambda: bool(stopping))
    metrics = workflow.Trained.read(job.place).metrics
    config = read_config(job.place, allow_code=job.allow_code)
    predictor = Timed(load_predictor(job.place, config.device, allow_code=job.allow_code))
    card = predictor.card
    test = job.split("test").collection
    predictor.probabilities(np.zeros((1, len(card.channels), card.lengths[1]), np.float32))  # warms up
    predictor.seconds = 0.0
    report = evaluate(predictor, test, majority=card.majority or None)
    record_test(job.place, report.figures())
    figures = report.figures()
    return Cell(
        data=job.data,
        method=job.method,
        kind="transformer",
        seed=job.seed,
        grid=job.grid,
        status="done",
        protocol=card.protocol,
        metrics={name: figures[name] for name in ("accuracy", "balanced_accuracy", "macro_f1", "log_loss")},
        train_cases=sum(map(len, read_split_places(job.place).values())),
        test_cases=len(test),
        length=card.lengths[2],
        channels=len(card.channels),
        classes=len(card.classes),
        parameters=metrics["parameters"],
        train_seconds=metrics["seconds"],
        inference_cases_per_second=len(test) / max(predictor.seconds, 1e-9),
        peak_memory_bytes=None if here else peak_memory(),  # what training took is not known any more
        threads=config.threads,
        tsattn=__version__,
        packages=_versions(),
        fingerprint=card.fingerprint,
        finished=now(),
    )


def _prepared(job: Job) -> Prepared:
    """The training from where it was stopped, or from its beginning."""
    from tsattn.runs.files import CONFIG
    from tsattn.training import preparing

    if (job.place / CONFIG).is_file():
        return preparing.prepare_again(job.place, out=job.place, allow_code=job.allow_code)
    return preparing.prepare(
        job.source,
        asked={**job.asked, "attention": job.word, "seed": job.seed},
        preset=job.preset,
        device=job.device,
        threads=job.threads,
        out=job.place,
        table=job.roles,
        registry=job.own,
        protocol=job.protocol,
    )


def baseline(job: Job) -> Cell:
    """Fits a classifier of aeon and judges it."""
    from tsattn.evaluation.metrics import report
    from tsattn.sweeps.baselines import find_baseline, judge

    train = job.split("train").collection
    test = job.split("test").collection
    found, threads = find_baseline(job.word), job.threads or job.cores
    judged = judge(found, train, test, job.seed, threads)
    assert train.labels is not None  # judge has seen to it
    assert test.labels is not None
    majority = max(train.classes, key=train.labels.count)
    figures = report(judged.probabilities, test.labels, train.classes, majority).figures()
    job.place.mkdir(parents=True, exist_ok=True)
    return Cell(
        data=job.data,
        method=job.method,
        kind="baseline",
        seed=job.seed,
        status="done",
        protocol=judged.protocol,
        metrics={
            **{name: figures[name] for name in ("accuracy", "balanced_accuracy", "macro_f1")},
            "log_loss": figures["log_loss"] if found.probabilities else None,
        },
        train_cases=len(train),
        test_cases=len(test),
        length=int(train.lengths.max()),
        channels=len(train.channels),
        classes=len(train.classes),
        train_seconds=judged.train_seconds,
        inference_cases_per_second=len(test) / max(judged.inference_seconds, 1e-9),
        peak_memory_bytes=peak_memory(),
        threads=threads,
        tsattn=__version__,
        packages=_versions(),
        fingerprint=train.fingerprint(),
        finished=now(),
    )


def now() -> str:
    """ISO time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


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


def _leave_with_the_sweep() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """The body of the process. Leaves with 0 where the cell is written, 130 where it was stopped."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if not (byte := os.read(0, 1)):  # nothing beyond the line may be taken from the watching thread
            sys.exit("python -m tsattn.sweeps.one: a job is expected on stdin; `tsattn bench` sends it.")
        line += byte
    job = Job(**json.loads(line))
    threading.Thread(target=_leave_with_the_sweep, daemon=True).start()
    try:
        Path(job.lock).parent.mkdir(parents=True, exist_ok=True)
        with FileLock(job.lock, timeout=PATIENCE):
            write_cell(job.place, transformer(job) if job.kind == "transformer" else baseline(job))
    except Timeout:
        sys.exit(f"{job.folder}: another process is at this cell. Stop it and type the sweep again.")
    except Interrupted:
        sys.exit(130)
    except TsattnError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(str(InputError(f"{job.folder}: {error.strerror or error}")))


if __name__ == "__main__":
    main()

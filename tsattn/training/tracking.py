"""A training reported to trackers of experiments, beside it: none of them can slow, change or end it.

Each tracker works in a thread of its own. What one raises is told once and ends its reports; the training
goes on, and history.csv has every figure in any case.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tsattn.config import RunConfig
from tsattn.errors import InputError
from tsattn.runs.files import TRACKING
from tsattn.runs.writing import note_tracking
from tsattn.training.progress import Epoch
from tsattn.training.trackers import TRACKERS, Tracker, Tracking

NONE = "none"
PATIENCE = 30.0
"""Seconds that a training waits at its end for what is still on its way to a tracker."""

logger = logging.getLogger(__name__)


def parse_trackers(text: str) -> tuple[str, ...]:
    """Words joined by '+', each once; 'none' and '' are no tracker. InputError for another word."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split("+")))
    if words in ((NONE,), ("",)):
        return ()
    for word in words:
        if word not in TRACKERS:
            what = "stands by itself" if word == NONE else "no such tracker"
            raise InputError(f"--track {word}: {what}. Known: {', '.join(TRACKERS)}, {NONE}.")
    return words


def require(words: Sequence[str]) -> None:
    """InputError with what to install where the package of a tracker is not there."""
    for word in words:
        if (said := _missing(word)) is not None:
            raise InputError(said)


@contextmanager
def reported(config: RunConfig, run: Path, *, resumed: bool) -> Iterator[Reports]:
    """Reports of one training to the trackers that its configuration names.

    run: its folder. resumed: it is gone on with. Where the block ends before `Reports.end`, the trackers hear
    that the training was stopped.
    """
    reports = Reports(config, run, resumed=resumed)
    try:
        yield reports
    finally:
        reports.close()


class Reports:
    """One training's reports; see `reported`."""

    def __init__(self, config: RunConfig, run: Path, *, resumed: bool) -> None:
        before = _noted(run)
        noted = dict(before)
        self._threads: dict[str, _Thread] = {}
        for word in parse_trackers(config.training.track):
            if (said := _missing(word)) is not None:
                logger.warning("Not reported to %s: %s", word, said)
                continue
            begin = Tracking(config=config, run=run, resumed=resumed, identity=noted.get(word, ""))
            thread = _Thread(word, TRACKERS[word].begin, begin)
            self._threads[word] = thread
            if thread.identity:
                noted[word] = thread.identity
        if noted != before:
            try:
                note_tracking(run, noted)
            except InputError as failure:
                logger.warning("A resumed training will be another run to its trackers: %s", failure)

    def beside(self, watch: Callable[[Epoch], None]) -> Callable[[Epoch], None]:
        """Hears of every epoch what `watch` hears."""

        def both(epoch: Epoch) -> None:
            watch(epoch)
            self._epoch(epoch)

        return both

    def _epoch(self, epoch: Epoch) -> None:
        values = asdict(epoch)
        figures = {name: values[name] for name in values if name != "epoch" and values[name] is not None}
        for thread in self._threads.values():
            thread.do(lambda tracker: tracker.figures(figures, epoch.epoch))

    def end(self, metrics: Mapping[str, Any]) -> None:
        """What the training came to; without it, closing says that it was stopped."""
        figures = dict(_numbers(metrics))
        for thread in self._threads.values():
            thread.do(lambda tracker: tracker.end(figures))

    def close(self) -> None:
        """Waits for what is on its way, for a bounded time."""
        for thread in self._threads.values():
            thread.close()


class _Thread:
    """A tracker and the one thread that calls it; silent for good once it failed.

    identity: what it calls the run, '' where it has no name for it or could not begin.
    """

    def __init__(self, word: str, begin: Callable[[Tracking], Tracker], tracking: Tracking) -> None:
        self._word = word
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._given: list[Future[Any]] = []
        # No ThreadPoolExecutor: the program would not end before a call of its threads that never returns.
        threading.Thread(target=self._work, name=f"track-{word}", daemon=True).start()
        beginning = self._submit(partial(begin, tracking))
        self._failed = self._tell(beginning.exception())
        self._tracker = None if self._failed else beginning.result()
        self.identity = "" if self._tracker is None else self._tracker.identity

    def do(self, call: Callable[[Tracker], None]) -> None:
        """Hands it to the thread, unless something failed before."""
        done = [future for future in self._given if future.done()]
        self._given = [future for future in self._given if not future.done()]
        for future in done:
            self._failed = self._failed or self._tell(future.exception())
        if self._tracker is not None and not self._failed:
            self._given.append(self._submit(partial(call, self._tracker)))

    def close(self) -> None:
        """Ends the reports; what is not through in time is lost."""
        self.do(lambda tracker: tracker.close())
        late = wait(self._given, timeout=PATIENCE).not_done
        self._calls.put(None)
        for future in self._given:
            if not self._failed and future not in late:
                self._failed = self._tell(future.exception())
        if late and not self._failed:
            logger.warning(
                "%s did not answer within %.0f s; what it has not got is lost. history.csv has every epoch.",
                self._word,
                PATIENCE,
            )

    def _submit(self, call: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._calls.put((future, call))
        return future

    def _work(self) -> None:
        while (given := self._calls.get()) is not None:
            future, call = given
            try:
                future.set_result(call())
            except BaseException as failure:  # noqa: BLE001 - trackers raise what they like
                future.set_exception(failure)

    def _tell(self, failure: BaseException | None) -> bool:
        if failure is None:
            return False
        said = " ".join(str(failure).split()) or type(failure).__name__
        logger.warning(
            "From here on not reported to %s: %s. The training goes on, and history.csv has every epoch.",
            self._word,
            said[:300].rstrip("."),
        )
        return True


def _missing(word: str) -> str | None:
    if importlib.util.find_spec(TRACKERS[word].package) is not None:
        return None
    return (
        f"--track {word} needs the package {TRACKERS[word].package}, which is not installed here. "
        f"Type `pip install 'tsattn[{word}]'`."
    )


def _noted(run: Path) -> dict[str, str]:
    place = run / TRACKING
    return json.loads(place.read_text("utf-8")) if place.is_file() else {}


def _numbers(metrics: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{before}{name}_")
        elif isinstance(value, int | float):
            yield f"{before}{name}", float(value)

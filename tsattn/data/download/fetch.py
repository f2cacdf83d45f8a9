"""Named data sets into the cache: one, or many at once."""

from __future__ import annotations

import logging
import os
import queue
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tsattn.data.download.faults import Fault, Patience, Stopped
from tsattn.data.download.remotes import ARCHIVE, ZENODO, sources
from tsattn.data.download.store import Cached, cached, publish, set_folder
from tsattn.data.download.watch import Silent, Watch
from tsattn.data.home import home
from tsattn.data.registry import DatasetEntry
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Way:
    """How to fetch. mirror: URL of a folder of NAME.zip. zenodo, archive: base URLs. offline: not at all."""

    mirror: str | None = None
    zenodo: str = ZENODO
    archive: str = ARCHIVE
    offline: bool = False
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        if self.mirror is not None and not re.match(r"https?://[^/]", self.mirror, re.IGNORECASE):
            raise InputError(
                f"--mirror (TSATTN_MIRROR) {self.mirror}: this is no address of the web. Type the http:// or "
                "https:// address of a folder that holds NAME.zip."
            )


def chosen_way(mirror: str | None = None, offline: bool = False) -> Way:
    """As typed, completed by TSATTN_MIRROR and TSATTN_OFFLINE (any value but 0, no, false and nothing)."""
    said = os.environ.get("TSATTN_OFFLINE", "").strip().lower()
    return Way(
        mirror=mirror or os.environ.get("TSATTN_MIRROR") or None,
        offline=offline or said not in ("", "0", "no", "false"),
    )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one set. fresh: it was fetched now. fault: why it is not there."""

    entry: DatasetEntry
    cached: Cached | None = None
    fresh: bool = False
    fault: InputError | None = None


def fetch_many(
    entries: Sequence[DatasetEntry], way: Way, jobs: int, watch: Watch, done: Callable[[Outcome], None]
) -> list[Outcome]:
    """Fetches several sets, `jobs` at a time; what is there already is checked byte for byte.

    done hears of each set as it is through, one at a time. The outcomes are in the order of `entries`.
    """
    stop = threading.Event()
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    finished: queue.SimpleQueue[tuple[int, Outcome | None]] = queue.SimpleQueue()
    for index in range(len(entries)):
        waiting.put(index)

    def work() -> None:
        while not stop.is_set():
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            outcome = None
            try:
                outcome = _outcome(entries[index], way, watch, stop)
            except Stopped:
                return
            finally:
                finished.put((index, outcome))

    # Daemons: an interrupt need not wait for a server. What they leave half done is gone on with next time.
    for _ in range(min(jobs, len(entries))):
        threading.Thread(target=work, daemon=True).start()
    outcomes: dict[int, Outcome] = {}
    try:
        while len(outcomes) < len(entries):
            index, outcome = finished.get()
            if outcome is None:
                raise RuntimeError(
                    f"fetching {entries[index].name} ended by a bug; its traceback stands above"
                )
            outcomes[index] = outcome
            done(outcome)
    finally:
        stop.set()
    return [outcomes[index] for index in range(len(entries))]


def _outcome(entry: DatasetEntry, way: Way, watch: Watch, stop: threading.Event) -> Outcome:
    try:
        here = cached(entry.name)
        if here is not None and (wrong := here.verify()) is None:
            return Outcome(entry=entry, cached=here)
        if here is not None:
            logger.warning("%s: %s; it is fetched again.", entry.name, wrong)
        return Outcome(entry=entry, cached=fetch(entry, way, watch, stop, keep=False), fresh=True)
    except InputError as fault:
        return Outcome(entry=entry, fault=fault)


def fetch(
    entry: DatasetEntry,
    way: Way,
    watch: Watch | None = None,
    stop: threading.Event | None = None,
    keep: bool = True,
) -> Cached:
    """The set `entry` in the cache, fetched if it is not there.

    keep: what is there is taken as it is, only its sizes are looked at. InputError if it cannot be had; the
    message then says what every source answered.
    """
    if keep and (here := cached(entry.name)) is not None:
        if (wrong := here.altered()) is not None:
            raise InputError(
                f"{here.folder}: {wrong}: the data set was changed after it was fetched. "
                f"Type tsattn data download {entry.name} to have it as it was."
            )
        return here
    if way.offline:
        raise InputError(_offline(entry))
    watch, stop = watch or Silent(), stop or threading.Event()
    before = _stamp(entry.name)
    try:
        with _locked(entry.name, watch, stop):
            # Another process may have fetched it while this one waited.
            if (here := cached(entry.name)) is not None and (keep or _stamp(entry.name) != before):
                return here
            return _fetch(entry, way, watch, stop)
    except OSError as error:
        raise InputError(
            f"{error.filename or home()}: cannot be written ({error.strerror or error}). "
            "Set TSATTN_HOME to a folder of your own with room in it."
        ) from None


def _fetch(entry: DatasetEntry, way: Way, watch: Watch, stop: threading.Event) -> Cached:
    from tsattn.data.download.transfer import Transfer

    work = _work(entry.name)
    work.mkdir(parents=True, exist_ok=True)
    answers: list[str] = []
    with Transfer(way.patience, watch, stop) as transfer:
        for source in sources(entry, way.mirror, way.zenodo, way.archive):
            try:
                brought = source.bring(transfer, work)
            except Fault as fault:
                answers.append(f"{source.called} {fault}")
                continue
            found = publish(entry.name, brought.train, brought.test, work, brought.origin, brought.record)
            shutil.rmtree(work, ignore_errors=True)
            for answer in answers:
                logger.warning("%s: %s; taken from %s.", entry.name, answer, brought.origin)
            return found
    raise InputError(_nowhere(entry, answers, _kept(work)))


def _kept(work: Path) -> int:
    """Bytes that can be gone on with; a working folder without any is removed."""
    kept = sum(file.stat().st_size for file in work.iterdir() if file.is_file() and file.suffix != ".json")
    if not kept:
        shutil.rmtree(work)
    return kept


def _nowhere(entry: DatasetEntry, answers: Sequence[str], kept: int) -> str:
    lines = "".join(f"\n  {answer}" for answer in answers)
    again = (
        f"Type tsattn data download {entry.name} to go on where it stopped ({_amount(kept)} are kept)"
        if kept
        else f"Type tsattn data download {entry.name} to try again"
    )
    return (
        f"{entry.name} could not be fetched:{lines}\n{again}, name a mirror with --mirror URL, or get the "
        "set in another way and type its folder or zip instead of the name."
    )


def _amount(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _offline(entry: DatasetEntry) -> str:
    return (
        f"{entry.name} is not on this machine, and --offline (TSATTN_OFFLINE) forbids to fetch it. Type the "
        f"command without it, or lay {entry.name}_TRAIN.ts and {entry.name}_TEST.ts into "
        f"{set_folder(entry.name)}."
    )


def _work(name: str) -> Path:
    """Where a set is put together: on the disk of the cache, so that it can be moved in at once."""
    return home() / "partial" / name


def _stamp(name: str) -> tuple[int, int] | None:
    """Tells one arrival of a set from the next."""
    try:
        found = set_folder(name).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


@contextmanager
def _locked(name: str, watch: Watch, stop: threading.Event) -> Iterator[None]:
    """Alone with the set `name` among all threads and processes; the system frees a killed one's lock."""
    from filelock import FileLock, Timeout

    folder = home() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{name}.lock")
    said = False
    while True:
        try:
            lock.acquire(timeout=0.2)
            break
        except Timeout:
            if stop.is_set():
                raise Stopped from None
            if not said:
                watch.say(name, "another process is fetching it; waiting")
                said = True
    try:
        yield
    finally:
        lock.release()

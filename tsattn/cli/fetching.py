"""Draws how far downloads are: a bar a file and one in all, on stderr, only on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rich.markup import escape

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tsattn.data.download.watch import Watch

ALL = "in all"


class _Bars:
    """The Watch that moves the bars."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.lock = progress, Lock()
        self.whole = progress.add_task(ALL, total=None)
        self.bars: dict[str, TaskID] = {}
        self.sizes: dict[str, tuple[int, int | None]] = {}  # bytes that are there, and in all

    def begin(self, file: str, total: int | None, have: int) -> None:
        with self.lock:
            if file not in self.bars:
                self.bars[file] = self.progress.add_task(escape(file), total=total)
            self.sizes[file] = (have, total)
            self.progress.update(self.bars[file], completed=have, total=total, description=escape(file))
            self._sum()

    def at(self, file: str, have: int) -> None:
        with self.lock:
            self.sizes[file] = (have, self.sizes[file][1])
            self.progress.update(self.bars[file], completed=have)
            self._sum()

    def end(self, file: str) -> None:
        with self.lock:
            if file in self.bars:
                self.progress.remove_task(self.bars.pop(file))

    def say(self, name: str, message: str) -> None:
        with self.lock:
            if name in self.bars:
                self.progress.update(self.bars[name], description=escape(f"{name} ({message})"))
            else:
                self.progress.console.print(escape(f"{name}: {message}"), style="dim", highlight=False)

    def _sum(self) -> None:
        have = sum(there for there, _ in self.sizes.values())
        total = sum(size or there for there, size in self.sizes.values())
        self.progress.update(self.whole, completed=have, total=total)


@contextmanager
def bars() -> Iterator[Watch]:
    """A Watch for downloads; it is silent where stderr is no terminal."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from tsattn.cli import console
    from tsattn.data.download.watch import Silent

    if not console.err.is_terminal:
        yield Silent()
        return
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console.err, transient=True) as progress:
        yield _Bars(progress)


def fetch_visibly(source: str, registry: Path | None = None) -> None:
    """Fetches SOURCE with a bar if it names a set that is not on this machine; else does nothing."""
    from tsattn.data.named import set_to_fetch

    entry = set_to_fetch(source, registry)
    if entry is None:
        return
    from tsattn.cli import console
    from tsattn.data.download.fetch import chosen_way, fetch

    with bars() as watch:
        found = fetch(entry, chosen_way(), watch)
    console.remark(f"{entry.name}: {found.size / 1e6:.1f} MB fetched from {found.origin} into {found.folder}")

"""Who may listen while files are fetched; the console draws, the library never prints."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Hears how far each file is. Calls come from several threads at once."""

    def begin(self, file: str, total: int | None, have: int) -> None:
        """`file` begins, or goes on, with `have` bytes of `total` (None if not known)."""

    def at(self, file: str, have: int) -> None:
        """`have` bytes of `file` are there."""

    def end(self, file: str) -> None:
        """`file` is there, or will not come from this place."""

    def say(self, name: str, message: str) -> None:
        """What happens to the data set `name` meanwhile: a wait, another attempt."""


class Silent:
    """A Watch that does nothing."""

    def begin(self, file: str, total: int | None, have: int) -> None:
        """Nothing."""

    def at(self, file: str, have: int) -> None:
        """Nothing."""

    def end(self, file: str) -> None:
        """Nothing."""

    def say(self, name: str, message: str) -> None:
        """Nothing."""

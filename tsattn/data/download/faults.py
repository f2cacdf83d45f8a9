"""Why a source does not give a file. A text is the end of the sentence that begins with the source."""

from __future__ import annotations

from dataclasses import dataclass


class Fault(Exception):
    """This source does not give the file; another may."""


class Damaged(Fault):
    """The file came and is not right; it may be right when it is fetched anew."""


class Passing(Fault):
    """What may pass when it is tried again.

    wait: seconds that the server asks for. weight: how many attempts it counts as.
    """

    def __init__(self, message: str, wait: float | None = None, weight: int = 1) -> None:
        super().__init__(message)
        self.wait = wait
        self.weight = weight


class GaveUp(Fault):
    """A Passing fault that did not pass; what has come can be gone on with."""


class Stopped(Exception):
    """The user interrupts; what has come stays for the next time."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for a server; seconds.

    attempts: in a row without one new byte. connect, read: until a connection, until the next bytes.
    first, longest: waits between attempts, doubled each time. asked: the longest Retry-After obeyed.
    """

    attempts: int = 5
    connect: float = 10.0
    read: float = 30.0
    first: float = 1.0
    longest: float = 30.0
    asked: float = 120.0

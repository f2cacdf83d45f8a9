"""How long a sweep will still take, from what its cells were estimated to cost and what they did take."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from tsattn.errors import InputError
from tsattn.sweeps.plan import Task

SECONDS_A_UNIT = 1e-4
"""Before anything has ended: of a core of a laptop, to one significant figure."""
LATE = 0.1
"""Of the time that a cell has run, which it is still given where it was to have ended."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Estimate:
    """Seconds by cost, learnt for transformers and baselines apart."""

    def __init__(self) -> None:
        self._cost: dict[str, float] = defaultdict(float)
        self._seconds: dict[str, float] = defaultdict(float)

    def learn(self, task: Task, seconds: float) -> None:
        """A cell took that long."""
        self._cost[task.method.kind] += task.cost
        self._seconds[task.method.kind] += seconds

    def left(self, waiting: Iterable[Task], running: Iterable[tuple[Task, float]], jobs: int) -> float:
        """Seconds until all is done. running: with the seconds since each began."""
        of_running = [max(LATE * passed, self.of(task) - passed) for task, passed in running]
        whole = sum(map(self.of, waiting)) + sum(of_running)
        return max([whole / jobs, *of_running])

    def of(self, task: Task) -> float:
        """Seconds that a cell takes."""
        cost = self._cost[task.method.kind]
        rate = self._seconds[task.method.kind] / cost if cost else SECONDS_A_UNIT
        return task.cost * rate


def parse_duration(text: str) -> float:
    """'2h', '90m' or '1h30m' in seconds. InputError for anything else."""
    found = _DURATION.fullmatch(text.strip().lower())
    seconds = 0
    if found is not None:
        for part, each in zip(found.groups(default="0"), (86400, 3600, 60, 1), strict=True):
            seconds += int(part) * each
    if not seconds:
        raise InputError(f"--time-budget {text}: expected a time, as in 2h, 90m or 1h30m.")
    return float(seconds)


def in_words(seconds: float) -> str:
    """'12 s', '3 min', '2 h 05 min'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"

"""What an examination finds: a line each, and which jobs it leaves possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["good", "absent", "note", "broken"]
Job = Literal["train", "export", "predict"]
JOBS: tuple[Job, ...] = ("train", "export", "predict")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    area: heading that it stands below. state: 'absent' is not here and need not be, 'note' is worth
    knowing, 'broken' keeps `jobs` from being done.
    advice: what to type or do about it, '' where there is nothing to do.
    """

    area: str
    name: str
    value: str
    state: State = "good"
    advice: str = ""
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings of a machine, and the jobs that were asked about."""

    findings: tuple[Finding, ...]
    asked: tuple[Job, ...] = JOBS

    def obstacles(self, job: Job) -> list[Finding]:
        """What keeps that job from being done."""
        return [one for one in self.findings if one.state == "broken" and job in one.jobs]

    @property
    def broken(self) -> list[Finding]:
        """Whatever keeps a job that was asked about from being done."""
        return [one for one in self.findings if one.state == "broken" and set(one.jobs) & set(self.asked)]

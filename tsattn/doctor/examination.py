"""The whole examination: machine, packages, engines."""

from __future__ import annotations

from collections.abc import Sequence

from tsattn.doctor.engines import engines
from tsattn.doctor.findings import JOBS, Job, Report
from tsattn.doctor.machine import machine
from tsattn.doctor.packages import packages


def examine(jobs: Sequence[Job] = JOBS, device: str = "auto") -> Report:
    """Looks at everything and tries every engine that `jobs` need; takes seconds.

    device: 'cuda' where the jobs are to be done on a GPU.
    """
    findings = (*machine(), *packages(), *engines(jobs, device))
    return Report(findings=findings, asked=tuple(jobs))

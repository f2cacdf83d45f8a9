"""Cells of a sweep as tasks of a Ray cluster: each node starts the same process for a cell as a sweep here.

The sweep's folder, the data and the working folder are seen by every node under the same names, as a shared
file system shows them; everything else, from the order to what is noted, is that of a sweep here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tsattn.errors import CheckFailed, InputError
from tsattn.inference.ray_engine import Cluster, connected
from tsattn.sweeps.job import Job
from tsattn.sweeps.processes import CELL_PROCESS, STOPPED, Process, last_line, let_go, started

LOOK = 0.1
"""Seconds between two looks of a task at its process; Ray can stop it then."""
GRACE = 60.0
KILLED = -9
"""Status of a task whose worker or node is gone."""


def compute(job: str, threads: int, folder: str) -> tuple[int, str]:
    """A task: a cell's process from beginning to end; its status, and what it said last.

    Cancelled by Ray, it lets the process save its state. folder: where the sweep was typed.
    """
    with tempfile.NamedTemporaryFile(prefix="tsattn-", suffix=".log") as log:
        process = started(job, threads, CELL_PROCESS, log.fileno(), folder)
        try:
            while (status := process.poll()) is None:
                time.sleep(LOOK)
            return status, last_line(Path(log.name))
        except KeyboardInterrupt:
            process.terminate()
            process.wait(GRACE)
            raise
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            let_go(process)


class OnCluster:
    """A task of Ray as a `Process`. task: a remote `compute` with what it takes of a node."""

    def __init__(self, ray: Any, task: Any, job: Job) -> None:
        self._ray = ray
        self._answer = task.remote(job.to_json(), job.threads or job.cores, str(Path.cwd()))
        self._ended: tuple[int, str] | None = None

    def status(self) -> int | None:
        """As `Process` says; a task whose worker died was killed."""
        if self._ended is None:
            ready, _ = self._ray.wait([self._answer], timeout=0)
            if not ready:
                return None
            try:
                self._ended = self._ray.get(self._answer)
            except self._ray.exceptions.TaskCancelledError:
                self._ended = STOPPED, ""
            except self._ray.exceptions.RayError as error:
                self._ended = KILLED, str(error).strip().splitlines()[-1]
        return self._ended[0]

    def stop(self) -> None:
        """Cancels the task, which stops its process."""
        self._ray.cancel(self._answer, force=False)

    def kill(self) -> None:
        """Ends the worker; its process hears that it is alone."""
        self._ray.cancel(self._answer, force=True)

    def said(self) -> str:
        """The last line of the process, or what Ray says of the worker."""
        return "" if self._ended is None else self._ended[1]

    def close(self, *, well: bool) -> None:
        """Nothing is held."""


@contextmanager
def on_cluster(cluster: Cluster, device: str) -> Iterator[tuple[Callable[[Job], Process], int]]:
    """What begins a cell's process somewhere in the cluster, and how many have room there at once.

    device: 'auto' takes a share of a GPU where the cluster has some. CheckFailed where 'cuda' cannot be had,
    InputError where no node could take a cell.
    """
    with connected(cluster) as ray:
        resources = ray.cluster_resources()
        gpus, cores = resources.get("GPU", 0), resources.get("CPU", 0)
        on_gpu = device == "cuda" or (device == "auto" and gpus > 0)
        if device == "cuda" and not gpus:
            raise CheckFailed("--device cuda was asked for, and the Ray cluster has no GPU.")
        if cores < cluster.threads:
            raise InputError(
                f"--threads {cluster.threads}: each cell would take as many cores, and the Ray cluster has "
                f"{cores:g}. Type a smaller --threads."
            )
        takes = {
            "num_cpus": cluster.threads,
            "num_gpus": cluster.gpu_share if on_gpu else 0,
            "max_retries": 0,
        }
        task = ray.remote(**takes)(compute)
        room = cores // cluster.threads
        if on_gpu:
            room = min(room, gpus / cluster.gpu_share)

        def begin(job: Job) -> Process:
            folder, lock = str(Path(job.folder).absolute()), str(Path(job.lock).absolute())
            return OnCluster(ray, task, replace(job, threads=cluster.threads, folder=folder, lock=lock))

        yield begin, max(1, int(room))

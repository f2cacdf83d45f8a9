"""How many CPU threads a training takes where nobody says."""

from __future__ import annotations

import functools

import torch

NUMBERS_A_THREAD = 1 << 16
"""Numbers in the tokens of a step that are worth a thread. With fewer, threads wait for each other longer
than they work: benchmarks/training.py shows one to be as fast as two, or twice as fast."""


def threads_for(cases: int, timepoints: int, width: int) -> int:
    """Threads for steps of so many cases of so many timepoints in tokens of that width.

    At least one, at most as many as torch takes by itself.
    """
    return max(1, min(_most(), cases * timepoints * width // NUMBERS_A_THREAD))


@functools.cache
def _most() -> int:
    """As torch began: the number of cores, or what OMP_NUM_THREADS says."""
    return torch.get_num_threads()

"""Memory that is freed is kept for the next tensor of its size."""

from __future__ import annotations

import ctypes
import sys

# Of glibc's malloc.h. The larger threshold is the largest that it takes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER, _LARGEST_OF_HEAP = (1 << 31) - 1, 32 << 20


def keep_freed_memory() -> None:
    """Tells glibc not to hand freed memory back to the system; does nothing where there is another libc.

    A step frees tensors and asks for tensors of the same sizes again. Handed back, their pages come again one
    by one, each zeroed.
    The peak of memory stays as it is; what is below it is not given back before the process ends.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST_OF_HEAP)
    mallopt(_TRIM_THRESHOLD, _NEVER)

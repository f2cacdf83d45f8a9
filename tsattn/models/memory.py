"""Memory that is freed is kept for the next tensor of its size."""

from __future__ import annotations

import ctypes
import sys

# Of glibc's malloc.h. Without mmap everything comes from the heap, of which nothing is trimmed. A threshold
# for mmap could not do: the largest that glibc takes is 32 MiB.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_NEVER, _NONE = (1 << 31) - 1, 0


def keep_freed_memory() -> None:
    """Tells glibc not to hand freed memory back to the system; does nothing where there is another libc.

    A step frees tensors and asks for tensors of the same sizes again. Handed back, their pages come again one
    by one, each zeroed. What was freed is not given back before the process ends, and the peak of memory
    moves by some percent either way: sizes that differ do not always fit into each other's place.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_MAX, _NONE)
    mallopt(_TRIM_THRESHOLD, _NEVER)

"""Memory that is freed is kept for the next tensor of its size, and how much that is now."""

from __future__ import annotations

import ctypes
import sys

import torch

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


class _Mallinfo(ctypes.Structure):
    """mallinfo2 of glibc's malloc.h."""

    _fields_ = (
        ("other", ctypes.c_size_t * 8),  # arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    )


def kept_bytes() -> int:
    """What the heap has of memory that was freed and can be taken again; 0 where there is another libc."""
    if sys.platform != "linux":
        return 0
    try:
        mallinfo = ctypes.CDLL("libc.so.6").mallinfo2
    except (OSError, AttributeError):
        return 0
    mallinfo.restype = _Mallinfo
    return int(mallinfo().fordblks)


def give_back_memory(device: torch.device) -> None:
    """Hands to the system what was freed and kept, for those who do not ask the same allocator.

    Such as oneDNN, which maps pages for the code it generates, and other processes of a GPU.
    """
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif sys.platform == "linux":
        try:
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        except (OSError, AttributeError):
            return

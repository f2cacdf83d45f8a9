"""Batches bound to a GPU session: two in flight, their values in memory that the GPU reads by itself.

Python has no way to ask onnxruntime for page-locked memory, so the buffers are numpy arrays that CUDA's
own runtime, which the session has loaded, is asked to lock; where it does not, they are plain memory and
the copy is slower.
"""

from __future__ import annotations

import ctypes
import queue
import sys
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

IN_FLIGHT = 2
"""Batches that a caller may have given and not got back: one computes while the other is copied."""
_PORTABLE = 1  # cudaHostRegisterPortable: locked for every GPU, not for the first alone
_RUNTIMES = {"win32": ("cudart64_13.dll", "cudart64_12.dll")}
_LINUX = ("libcudart.so.13", "libcudart.so.12")


class BoundSession:
    """Runs a session of one input and one output through bindings; safe to call from several threads."""

    def __init__(self, session: ort.InferenceSession, source: str, target: str) -> None:
        self._session, self._source, self._target = session, source, target
        self._free: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        runtime = _cuda_runtime()
        for _ in range(IN_FLIGHT):
            self._free.put(_Slot(session.io_binding(), runtime))

    def run(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the graph makes of `values`; waits for a free slot. Errors as `InferenceSession.run`."""
        slot = self._free.get()
        try:
            slot.binding.bind_cpu_input(self._source, slot.holding(values))
            slot.binding.bind_output(self._target)  # its shape is the batch's, and the CPU wants it
            self._session.run_with_iobinding(slot.binding)
            result: NDArray[np.float32] = slot.binding.copy_outputs_to_cpu()[0]
            return result
        finally:
            self._free.put(slot)


class _Slot:
    """A binding and its buffer, which grows with the batches."""

    def __init__(self, binding: Any, runtime: Any) -> None:
        self.binding = binding
        self._runtime = runtime
        self._buffer = np.empty(0, np.float32)
        self._locked = False

    def holding(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """A copy of `values` in the buffer, good until the next call."""
        if values.size > self._buffer.size:
            self._release()
            self._buffer = np.empty(values.size + values.size // 4, np.float32)
            self._lock()
        view = self._buffer[: values.size].reshape(values.shape)
        view[...] = values
        return view

    def _lock(self) -> None:
        if self._runtime is not None:
            address, size = self._buffer.ctypes.data, self._buffer.nbytes
            register = self._runtime.cudaHostRegister
            self._locked = register(ctypes.c_void_p(address), ctypes.c_size_t(size), _PORTABLE) == 0

    def _release(self) -> None:
        if self._locked:
            self.binding.clear_binding_inputs()
            self._runtime.cudaHostUnregister(ctypes.c_void_p(self._buffer.ctypes.data))
            self._locked = False

    def __del__(self) -> None:
        self._release()  # before numpy gives the memory back


def _cuda_runtime() -> Any | None:
    """CUDA's runtime library if this process has it."""
    for name in _RUNTIMES.get(sys.platform, _LINUX):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None

"""How much memory a training step takes, found from shapes: the step is made of tensors without content."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tsattn.training.optimisation import mixed_precision

HEAP = 1.4
"""What a heap takes over what tensors hold: gaps that freed ones leave, room in which convolutions work.
Measured with glibc: 1.2 to 1.6. CUDA's allocator leaves fewer gaps and counts as 1.1."""
CACHING = 1.1
MOMENTS = 2
"""Numbers that an optimiser keeps a weight."""
CANNOT_BE_COUNTED = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, ImportError)


def bytes_of_a_step(
    model: nn.Module,
    cases: int,
    channels: int,
    timepoints: int,
    complete: bool,
    device: torch.device | None = None,
) -> int | None:
    """The most memory that a step holds at once: weights, gradients, moments, activations, temporaries.

    model: of any device, also meta; nothing in it is read or changed, nor is a random number drawn.
    complete: whether the batch needs no mask. device: where it would compute, without one where the model is.
    None for an attention of others that cannot be run without values.
    """
    where = device or next(model.parameters()).device
    forked = [where] if where.type == "cuda" else []
    try:
        with torch.random.fork_rng(forked):
            held = _held_at_most(copy.deepcopy(model).train(), (cases, channels, timepoints), complete, where)
    except CANNOT_BE_COUNTED:
        return None
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    return round((CACHING if where.type == "cuda" else HEAP) * (held + MOMENTS * weights))


def _held_at_most(model: nn.Module, shape: tuple[int, int, int], complete: bool, device: torch.device) -> int:
    """Bytes of tensors at the peak of a forward and a backward pass."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    held = _Held()
    # Backward on this thread, where the modes are.
    one_thread = torch.autograd.set_multithreading_enabled(False)
    with FakeTensorMode(allow_non_fake_inputs=True), held, one_thread:
        given = {
            name: torch.empty(x.shape, dtype=x.dtype, device=device).requires_grad_(x.requires_grad)
            for name, x in (*model.named_parameters(), *model.named_buffers())
        }
        values = torch.empty(shape, device=device)
        targets = torch.zeros(len(values), dtype=torch.long, device=device)
        with mixed_precision(device):
            logits = torch.func.functional_call(model, given, (values, complete))
            loss = F.cross_entropy(logits.float(), targets, reduction="sum")
        loss.backward()
    return held.most


class _Held(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive; views count once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self.alive: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._hold(leaf)
        return result

    def _hold(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.alive:
            return

        def let_go(_: object) -> None:
            self.now -= size
            del self.alive[key]

        self.alive[key] = weakref.ref(storage, let_go)
        self.now += size
        self.most = max(self.most, self.now)

"""A forward and backward pass as few fused kernels, made once by torch's compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tsattn.errors import CheckFailed
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.resident import ResidentCases

if TYPE_CHECKING:
    from collections.abc import Callable

    Forward = Callable[[Tensor, bool], Tensor]


def compiled(
    model: TransformerClassifier, cases: ResidentCases, backend: str | Callable[..., Any] = "inductor"
) -> Forward:
    """The model's forward, compiled at its first call; it computes with the model's own parameters.

    On CUDA, where all cases are equally long and complete, a step is recorded as a CUDA graph and played
    again. Else numbers of cases and timepoints are left open, so that no batch compiles anew.
    backend: of torch. CheckFailed at the first call where torch cannot compile on this machine.
    """
    from torch._dynamo.exc import TorchDynamoException

    if cases.device.type == "cuda" and _all_alike(cases):
        fast = torch.compile(model, mode="reduce-overhead", dynamic=False)
    else:
        fast = torch.compile(model, dynamic=True, backend=backend)

    def forward(values: Tensor, complete: bool) -> Tensor:
        if values.device.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        try:
            logits: Tensor = fast(values, complete)
        except TorchDynamoException as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise CheckFailed(
                f"torch cannot compile the model here: {reason.strip()} Train without --compile."
            ) from error
        return logits

    return forward


def _all_alike(cases: ResidentCases) -> bool:
    """Whether every batch has the same shape and needs no mask."""
    return bool((cases.lengths == cases.lengths[0]).all() and cases.complete.all())

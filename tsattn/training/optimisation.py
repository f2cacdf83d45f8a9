"""The optimiser, its gradients and what becomes of its learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer, RAdam

from tsattn.config import TrainingConfig

ONE_CYCLE_START, ONE_CYCLE_END = 1 / 25, 1e-4
"""Of the highest rate, as Smith and Topin 2018 propose and torch has it by default."""


class Flat:
    """The parameters of a model as pieces of one tensor for those that decay and one for the others.

    Their gradients are pieces of one tensor, `gradients`. A small model has dozens of parameters, and to
    clear, to clip and to step each by itself costs more than the arithmetic. The model is changed in place
    and may not be moved to another device afterwards.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = sorted((p for p in model.parameters() if p.requires_grad), key=lambda p: p.ndim <= 1)
        self.gradients = torch.zeros(
            sum(p.numel() for p in parameters), dtype=torch.float32, device=parameters[0].device
        )
        decaying = [p for p in parameters if p.ndim > 1]
        others = parameters[len(decaying) :]
        start = 0
        self.groups: list[nn.Parameter] = []
        for members in (decaying, others):
            whole = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in members]))
            whole.grad = self.gradients[start : start + whole.numel()]
            start += whole.numel()
            sizes = [p.numel() for p in members]
            pieces = zip(members, whole.detach().split(sizes), whole.grad.split(sizes), strict=True)
            for parameter, value, gradient in pieces:
                parameter.data = value.view_as(parameter)
                parameter.grad = gradient.view_as(parameter)
            self.groups.append(whole)

    def clear(self) -> None:
        """Sets the gradients to zero, from where backward passes add to them."""
        self.gradients.zero_()

    def finite(self) -> bool:
        """Whether every parameter is a number."""
        return all(bool(group.isfinite().all()) for group in self.groups)

    def clip(self, greatest: float) -> Tensor:
        """Shortens the gradients to a norm of at most `greatest`; the norm before, still on the device."""
        norm = torch.linalg.vector_norm(self.gradients)
        self.gradients.mul_((greatest / (norm + 1e-6)).clamp(max=1.0))
        return norm


def make_optimiser(flat: Flat, config: TrainingConfig) -> Optimizer:
    """AdamW or RAdam with decoupled decay on matrices only."""
    decaying, others = flat.groups
    groups = [
        {"params": [decaying], "weight_decay": config.weight_decay},
        {"params": [others], "weight_decay": 0.0},
    ]
    if config.optimiser == "adamw":
        return AdamW(groups, lr=config.learning_rate, fused=True)
    return RAdam(groups, lr=config.learning_rate, decoupled_weight_decay=True)


def learning_rate(config: TrainingConfig, steps: int) -> Callable[[int], float]:
    """The rate of each of `steps` steps, counted from 0.

    cosine: rises in a line over the warm-up, then falls along a cosine to 0. one-cycle: along a cosine up
    from a 25th over the warm-up and down to a ten-thousandth. constant: rises, then stays.
    """
    factor, warm = SCHEDULES[config.schedule], max(1, round(config.warm_up * steps))
    return lambda step: config.learning_rate * factor(step, warm, steps)


def mixed_precision(device: torch.device) -> torch.autocast:
    """bfloat16 on CUDA; on other devices it does not pay and is off."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def _constant(step: int, warm: int, steps: int) -> float:
    return min(1.0, (step + 1) / warm)


def _cosine(step: int, warm: int, steps: int) -> float:
    if step < warm:
        return (step + 1) / warm
    return _between(1.0, 0.0, (step - warm) / max(1, steps - warm))


def _one_cycle(step: int, warm: int, steps: int) -> float:
    if step < warm:
        return _between(ONE_CYCLE_START, 1.0, (step + 1) / warm)
    return _between(1.0, ONE_CYCLE_END, (step - warm) / max(1, steps - warm))


def _between(start: float, end: float, share: float) -> float:
    """Half a cosine wave from start to end."""
    return end + (start - end) * 0.5 * (1 + math.cos(math.pi * min(1.0, share)))


SCHEDULES: dict[str, Callable[[int, int, int], float]] = {
    "cosine": _cosine,
    "one-cycle": _one_cycle,
    "constant": _constant,
}

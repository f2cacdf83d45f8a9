"""The optimiser, its gradients and what becomes of its learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer, RAdam

from tsattn.config import TrainingConfig
from tsattn.errors import InputError

OPTIMISERS = ("adamw", "radam")
ONE_CYCLE_START, ONE_CYCLE_END = 1 / 25, 1e-4
"""Of the highest rate, as Smith and Topin 2018 propose and torch has it by default."""


def make_optimiser(model: nn.Module, config: TrainingConfig) -> Optimizer:
    """AdamW or RAdam with decoupled decay on matrices only. InputError for another word."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if config.optimiser == "adamw":
        return AdamW(groups, lr=config.learning_rate, fused=True)
    if config.optimiser == "radam":
        return RAdam(groups, lr=config.learning_rate, decoupled_weight_decay=True)
    raise InputError(f"optimiser '{config.optimiser}': there is none. There are: {', '.join(OPTIMISERS)}.")


def learning_rate(config: TrainingConfig, steps: int) -> Callable[[int], float]:
    """The rate of each of `steps` steps, counted from 0. InputError for an unknown schedule.

    cosine: rises in a line over the warm-up, then falls along a cosine to 0. one-cycle: along a cosine up
    from a 25th over the warm-up and down to a ten-thousandth. constant: rises, then stays.
    """
    if config.schedule not in SCHEDULES:
        raise InputError(f"schedule '{config.schedule}': there is none. There are: {', '.join(SCHEDULES)}.")
    factor, warm = SCHEDULES[config.schedule], max(1, round(config.warm_up * steps))
    return lambda step: config.learning_rate * factor(step, warm, steps)


class Gradients:
    """The gradients of a model as pieces of one tensor: to clear and to clip them is one operation each.

    A small model has dozens of parameters, and an operation on each costs more than their arithmetic.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = [p for p in model.parameters() if p.requires_grad]
        self.all = torch.zeros(
            sum(p.numel() for p in parameters), dtype=torch.float32, device=parameters[0].device
        )
        pieces = self.all.split([p.numel() for p in parameters])
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.grad = piece.view_as(parameter)

    def clear(self) -> None:
        """Zero, from where backward passes add to them."""
        self.all.zero_()

    def clip(self, greatest: float) -> Tensor:
        """Shortens them to a norm of at most `greatest`; the norm before, still on the device."""
        norm = torch.linalg.vector_norm(self.all)
        self.all.mul_((greatest / (norm + 1e-6)).clamp(max=1.0))
        return norm


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

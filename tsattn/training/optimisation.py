"""The optimiser and its schedule."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from tsattn.config import TrainingConfig


def make_optimiser(model: nn.Module, config: TrainingConfig, steps: int) -> tuple[AdamW, LambdaLR]:
    """AdamW with decay on matrices only, and warm-up then cosine over `steps` steps."""
    weights = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [
        {"params": weights, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimiser = AdamW(groups, lr=config.learning_rate)
    return optimiser, LambdaLR(optimiser, _warm_up_then_cosine(config.warm_up, steps))


def mixed_precision(device: torch.device) -> torch.autocast:
    """bfloat16 on CUDA; on other devices it does not pay and is off."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def _warm_up_then_cosine(share: float, steps: int) -> Callable[[int], float]:
    warm = max(1, round(share * steps))

    def factor(step: int) -> float:
        """Rises to 1 over the warm-up, then falls to 0 at the last step."""
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1, steps - warm))))

    return factor

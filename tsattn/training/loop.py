"""The loop: epochs over resident cases, with metrics kept on the device until an epoch ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.config import TrainingConfig
from tsattn.errors import CheckFailed
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.optimisation import make_optimiser, mixed_precision
from tsattn.training.resident import ResidentCases


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """What one epoch came to. Losses are means over cases, accuracies in [0, 1], seconds since the start."""

    epoch: int
    train_loss: float
    train_accuracy: float
    validation_loss: float | None
    validation_accuracy: float | None
    learning_rate: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A finished training: its epochs and the one whose weights the model now has."""

    history: list[Epoch]
    chosen: Epoch


def fit(
    model: TransformerClassifier,
    train: ResidentCases,
    validation: ResidentCases | None,
    config: TrainingConfig,
    watch: Callable[[Epoch], None],
) -> Fit:
    """Trains `model` in place and leaves it with the chosen weights, in evaluation mode.

    With validation cases the epoch of the highest validation accuracy is chosen, the lower loss
    deciding between equals, and training stops after `patience` epochs without a better one;
    without, the last. CheckFailed when the loss is no longer a number.
    """
    steps = config.epochs * -(-len(train) // config.batch_size)
    optimiser, schedule = make_optimiser(model, config, steps)
    shuffler = np.random.default_rng(config.seed)
    best = _Best(model, config.patience)
    history: list[Epoch] = []
    start = time.perf_counter()
    for number in range(1, config.epochs + 1):
        rate = float(schedule.get_last_lr()[0])
        model.train()
        loss, accuracy = _run_epoch(model, train, config, optimiser, schedule, shuffler)
        held_out = (None, None) if validation is None else measure(model, validation)
        epoch = Epoch(
            epoch=number,
            train_loss=loss,
            train_accuracy=accuracy,
            validation_loss=held_out[0],
            validation_accuracy=held_out[1],
            learning_rate=rate,
            seconds=time.perf_counter() - start,
        )
        if not np.isfinite(loss):
            raise CheckFailed(
                f"the training loss was {loss} in epoch {number}: the weights diverged. "
                f"Try a lower rate, e.g. --lr {config.learning_rate / 3:.1g}."
            )
        history.append(epoch)
        watch(epoch)
        if validation is not None and best.stops_at(epoch):
            break
    model.eval()
    return Fit(history=history, chosen=history[-1] if validation is None else best.restore())


def measure(model: TransformerClassifier, cases: ResidentCases) -> tuple[float, float]:
    """Mean cross-entropy and accuracy in [0, 1] over all cases, with the model in evaluation mode."""
    model.eval()
    sums = torch.zeros(2, device=cases.values.device)
    with torch.inference_mode():
        for values, targets, complete in cases.by_length(64):
            logits = model(values, complete).float()
            sums += _sums(F.cross_entropy(logits, targets), logits, targets)
    loss, right = (sums / len(cases)).tolist()
    return loss, right


def _run_epoch(
    model: TransformerClassifier,
    cases: ResidentCases,
    config: TrainingConfig,
    optimiser: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    shuffler: np.random.Generator,
) -> tuple[float, float]:
    sums = torch.zeros(2, device=cases.values.device)
    for values, targets, complete in cases.shuffled(config.batch_size, shuffler):
        with mixed_precision(values.device):
            logits = model(values, complete)
            loss = F.cross_entropy(logits.float(), targets, label_smoothing=config.label_smoothing)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimiser.step()
        schedule.step()
        sums += _sums(loss.detach(), logits.detach(), targets)
    loss_mean, accuracy = (sums / len(cases)).tolist()
    return loss_mean, accuracy


def _sums(mean_loss: Tensor, logits: Tensor, targets: Tensor) -> Tensor:
    """(2,): summed loss and number of right cases of a batch, still on the device."""
    return torch.stack([mean_loss * len(targets), (logits.argmax(1) == targets).sum().float()])


class _Best:
    """The best weights seen on the validation cases."""

    def __init__(self, model: nn.Module, patience: int) -> None:
        self.model = model
        self.patience = patience
        self.epoch: Epoch | None = None
        self.weights: dict[str, Tensor] = {}

    def stops_at(self, epoch: Epoch) -> bool:
        """Notes the epoch's weights if they are the best so far; True when patience has run out."""
        if self.epoch is None or _rank(epoch) > _rank(self.epoch):
            self.epoch = epoch
            self.weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        return epoch.epoch - self.epoch.epoch >= self.patience

    def restore(self) -> Epoch:
        """Puts the best weights back and says which epoch they are of."""
        assert self.epoch is not None
        self.model.load_state_dict(self.weights)
        return self.epoch


def _rank(epoch: Epoch) -> tuple[float, float]:
    assert epoch.validation_accuracy is not None
    assert epoch.validation_loss is not None
    return epoch.validation_accuracy, -epoch.validation_loss

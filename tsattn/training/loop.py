"""The loop: epochs over resident cases, with metrics kept on the device until an epoch ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from tsattn.config import TrainingConfig
from tsattn.errors import CheckFailed, Interrupted
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.parallel import Alone, Company
from tsattn.training.progress import Epoch
from tsattn.training.resident import ResidentCases
from tsattn.training.state import StateFile
from tsattn.training.stepping import Training

SURE_RATE = 1e-3
"""A learning rate that is advised where a higher one failed; the rate of the preset `base`."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A finished training: its epochs and the one whose weights the model now has.

    at_once: cases that went through the model at once, at the end.
    """

    history: list[Epoch]
    chosen: Epoch
    at_once: int


def never() -> bool:
    """Nobody asks to stop."""
    return False


def fit(
    model: TransformerClassifier,
    train: ResidentCases,
    validation: ResidentCases | None,
    config: TrainingConfig,
    watch: Callable[[Epoch], None],
    *,
    state: StateFile | None = None,
    asked_to_stop: Callable[[], bool] = never,
    micro_batch: int | None = None,
    company: Company | None = None,
) -> Fit:
    """Trains `model` in place and leaves it with the chosen weights, in evaluation mode.

    With validation cases the epoch of the highest validation accuracy is chosen, the lower loss deciding
    between equals, and training stops after `patience` epochs without a better one; without, the last.
    state: where the training is kept and, if something is there, from where it goes on: to the byte as if it
    had never stopped. asked_to_stop: heard after every step, or after some where several processes train.
    micro_batch: cases that go through the model at once at first, all of a batch without it.
    company: the processes that train it together; each gives all the cases and takes its share of them.
    CheckFailed when the loss is no longer a number, Interrupted when asked to stop, state saved.
    """
    training = Training(model, train, config, company)
    training.progress.micro_batch = micro_batch or config.batch_size
    if state is not None and (saved := state.load()) is not None:
        try:
            training.restore(saved)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise state.unfit(error) from error
    while not training.finished:
        _run_epoch(training, state, asked_to_stop)
        held_out = None
        if validation is not None:
            at_once = 4 * training.progress.micro_batch
            held_out = measure(training.judged, validation, at_once, training.company)
        watch(training.end_epoch(held_out))
        (due,) = training.company.any(state is not None and state.due(epoch_ended=True))
        if state is not None and due:
            state.save(training.state())
    return Fit(
        history=training.history,
        chosen=training.take_chosen(),
        at_once=training.progress.micro_batch,
    )


def measure(
    model: torch.nn.Module, cases: ResidentCases, at_once: int = 64, company: Company | None = None
) -> tuple[float, float]:
    """Mean cross-entropy and accuracy in [0, 1] over all cases, with the model in evaluation mode.

    at_once: the most cases in a pass, if less than 64. Without gradients one takes a few times less memory.
    company: the processes that share the work, all of which get the result.
    """
    company = company or Alone()
    model.eval()
    sums = torch.zeros(2, device=cases.device)
    with torch.inference_mode():
        for batch in company.every(cases.by_length(min(64, at_once))):
            logits = model(batch.values, batch.complete).float()
            loss = F.cross_entropy(logits, batch.targets, reduction="sum")
            sums += torch.stack([loss, (logits.argmax(1) == batch.targets).sum().float()])
    loss, right = (company.add_up(sums) / len(cases)).tolist()
    return loss, right


def _run_epoch(training: Training, state: StateFile | None, asked_to_stop: Callable[[], bool]) -> None:
    """The rest of the epoch under way. No step waits for the device unless its state is saved."""
    for batch in training.batches():
        training.step(batch)
        stopping, due = training.company.any_now_and_then(
            training.progress.steps,
            asked_to_stop(),
            state is not None and state.due(epoch_ended=False),
        )
        if state is not None and (stopping or due):
            _check_finite(training)
            state.save(training.state())
        if stopping:
            training.company.any(stopping)  # nobody leaves before the state is saved: torchrun then ends all
            raise Interrupted(f"stopped in epoch {training.progress.epoch} of {training.config.epochs}")
    _check_finite(training)


def _check_finite(training: Training) -> None:
    """Before a state is saved and after every epoch: what was saved before is then the last that is good."""
    loss, epoch = training.mean_loss(), training.progress.epoch
    if math.isfinite(loss) and training.flat.finite():
        return
    what = "weights are no numbers after" if math.isfinite(loss) else f"training loss was {loss} in"
    rate = min(SURE_RATE, training.config.learning_rate / 3)
    raise CheckFailed(
        f"the {what} epoch {epoch}: the weights diverged. Try a lower rate, e.g. --lr {rate:.1g}."
    )

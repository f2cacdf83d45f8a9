"""A training under way: one step, the end of an epoch, and the state from which both go on."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tsattn.config import TrainingConfig
from tsattn.errors import CheckFailed
from tsattn.models.classifier import TransformerClassifier
from tsattn.models.memory import give_back_memory
from tsattn.training.augment import parse_augmentation
from tsattn.training.balance import case_weights, class_weights
from tsattn.training.compiling import compiled
from tsattn.training.optimisation import Flat, learning_rate, make_optimiser, mixed_precision
from tsattn.training.parallel import Alone, Company
from tsattn.training.progress import Epoch, Progress
from tsattn.training.resident import Batch, ResidentCases
from tsattn.training.state import State

logger = logging.getLogger(__name__)

# Of torch's allocator and of oneDNN, which computes convolutions on CPUs and does not say what it lacks.
_OUT_OF_MEMORY = (
    "DefaultCPUAllocator",
    "could not create a primitive",
    "could not create a memory",
    "bad_alloc",
)


class Training:
    """What changes from step to step, and all that a step needs.

    model: being trained, in place. cases: what it is trained on, on the model's device. company: the
    processes that train it; all of them call `state`, `mean_loss` and `end_epoch` after the same steps.
    """

    def __init__(
        self,
        model: TransformerClassifier,
        cases: ResidentCases,
        config: TrainingConfig,
        company: Company | None = None,
    ) -> None:
        self.model, self.cases, self.config, self.company = model, cases, config, company or Alone()
        self.device = cases.device
        self.company.begin_alike(model.state_dict().values(), config.seed)
        self.flat = Flat(model)
        self.forward = compiled(model, cases) if config.compile else model
        self.optimiser = make_optimiser(self.flat, config)
        self.rate = learning_rate(config, config.epochs * -(-len(cases) // config.batch_size))
        self.class_weight = class_weights(cases, config.class_weight)
        self.case_weight = case_weights(cases, config.sampling)
        self.augmentation = parse_augmentation(config.augment)
        self.classes = len(cases.class_counts)
        self.spread = cases.spread() if self.augmentation else torch.zeros(0)
        self.shuffler = np.random.default_rng(config.seed)
        self.average = None
        if config.averaging:
            self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.averaging))
        self.best: dict[str, Tensor] = {}
        # Of the epoch under way, on the device: losses and right answers of this process's cases, and the
        # gradient norms of steps, which are those of all processes together.
        self.sums = torch.zeros(3, device=self.device)
        self.progress = Progress(micro_batch=config.batch_size, order=self.shuffler.bit_generator.state)
        self._since = time.perf_counter()

    @property
    def history(self) -> list[Epoch]:
        """The epochs that ended."""
        return self.progress.history

    @property
    def judged(self) -> TransformerClassifier:
        """The model whose figures count: the average of the weights where one is kept."""
        return self.model if self.average is None else cast("TransformerClassifier", self.average.module)

    @property
    def finished(self) -> bool:
        """Whether all epochs are over or patience has run out."""
        if not self.history:
            return False
        last = self.history[-1]
        waited = last.epoch - self.progress.best.epoch if self._chooses(last) else 0
        return last.epoch >= self.config.epochs or waited >= self.config.patience

    def batches(self) -> Iterator[Batch]:
        """This process's share of what is left of the epoch under way, in its order."""
        self.model.train()
        self.shuffler.bit_generator.state = self.progress.order
        size = self.config.batch_size
        order = self.cases.order(self.shuffler, self.case_weight)
        for start in range(self.progress.batch * size, len(order), size):
            yield self.cases.batch(self.company.share(order[start : start + size]))

    def step(self, batch: Batch) -> None:
        """One step of the optimiser; batch: this process's share of its cases."""
        rate = self.rate(self.progress.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        values, targets = batch.values, batch.targets
        if self.augmentation and len(targets):
            one_hot = F.one_hot(targets, self.classes).float()
            values, targets = self.augmentation(values, one_hot, batch.without_nan, self.spread)
        self._backward(values, targets, batch.complete)
        self.company.add_up(self.flat.gradients)
        self.sums[2] += self.flat.clip(self.config.clip)
        self.optimiser.step()
        if self.average is not None:
            self.average.update_parameters(self.model)
        self.progress.batch += 1
        self.progress.steps += 1

    def _backward(self, values: Tensor, targets: Tensor, complete: bool) -> None:
        """The batch's gradients, in as many parts as memory asks for; they are the same in one or many.

        targets: classes (batch,), or shares of them (batch, classes).
        """
        while True:
            self.flat.clear()
            try:
                of = min(self.config.batch_size, len(self.cases) - self._seen())
                sums = torch.zeros_like(self.sums)
                for start in range(0, len(values), self.progress.micro_batch):
                    part = slice(start, start + self.progress.micro_batch)
                    sums[:2] += self._part(values[part], targets[part], complete, of)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._take_less(error)
            else:
                self.sums += sums
                return
            give_back_memory(self.device)  # here the error is gone, and with it the tensors it held

    def _part(self, values: Tensor, targets: Tensor, complete: bool, of: int) -> Tensor:
        """Adds the gradients of a part of the step's `of` cases; (2,) summed loss, number of right cases."""
        with mixed_precision(self.device):
            logits = self.forward(values, complete)
            loss = F.cross_entropy(
                logits.float(),
                targets,
                weight=self.class_weight,
                label_smoothing=self.config.label_smoothing,
                reduction="sum",
            )
        (loss / of).backward()
        hard = targets if targets.ndim == 1 else targets.argmax(1)
        return torch.stack([loss.detach(), (logits.detach().argmax(1) == hard).sum().float()])

    def _take_less(self, error: Exception) -> None:
        cases = self.progress.micro_batch
        if cases == 1:
            raise CheckFailed(
                "There is not enough memory to train on a single case. Make less of it: --tokens patch:16, "
                "--attention linear or local, a smaller --width, or --window for long recordings."
            ) from error
        self.progress.micro_batch = -(-cases // 2)
        logger.warning(
            "Memory ran out with %d cases at once; going on with %d at once and gradients summed, "
            "which trains the same.",
            cases,
            self.progress.micro_batch,
        )

    def mean_loss(self) -> float:
        """Of the cases of this epoch so far."""
        return float(self._totals()[0]) / max(1, self._seen())

    def end_epoch(self, held_out: tuple[float, float] | None) -> Epoch:
        """Closes the epoch and opens the next. held_out: validation loss and accuracy."""
        progress = self.progress
        loss, right, norms = self._totals().tolist()
        epoch = Epoch(
            epoch=progress.epoch,
            train_loss=loss / len(self.cases),
            train_accuracy=right / len(self.cases),
            validation_loss=None if held_out is None else held_out[0],
            validation_accuracy=None if held_out is None else held_out[1],
            learning_rate=self.rate(progress.steps - progress.batch),
            gradient_norm=norms / progress.batch,
            seconds=self._seconds(),
        )
        self.history.append(epoch)
        if self._chooses(epoch) and progress.best is epoch:
            self.best = {name: value.clone() for name, value in self.judged.state_dict().items()}
        progress.epoch, progress.batch = progress.epoch + 1, 0
        progress.order = self.shuffler.bit_generator.state
        self.sums.zero_()
        return epoch

    def take_chosen(self) -> Epoch:
        """Puts the chosen weights into the model, for good, and says which epoch they are of."""
        chosen = self.progress.best if self.best else self.history[-1]
        self.model.load_state_dict(self.best or self.judged.state_dict())
        self.model.eval()
        return chosen

    def state(self) -> State:
        """Everything that the next step depends on."""
        self.progress.seconds = self._seconds()
        self._since = time.perf_counter()
        gather = self.company.gather
        tensors = {"sums": gather(self.sums), "random": gather(torch.get_rng_state())}
        if self.device.type == "cuda":
            tensors["random_cuda"] = gather(torch.cuda.get_rng_state(self.device))
        for prefix, named in self._named().items():
            tensors |= {f"{prefix}/{name}": tensor for name, tensor in named.items()}
        for place, kept in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{place}/{name}": tensor for name, tensor in kept.items()}
        return State(facts=self.progress.to_json(), tensors=tensors)

    def restore(self, state: State) -> None:
        """Goes on where `state` was taken. InputError if that was with another number of processes."""
        tensors, own = state.tensors, self.company.own
        self.progress = Progress.from_json(state.facts)
        self.sums.copy_(own(tensors["sums"]))
        self.best = {
            n.removeprefix("best/"): t.to(self.device) for n, t in tensors.items() if n.startswith("best/")
        }
        with torch.no_grad():
            for prefix, named in self._named().items():
                for name, tensor in named.items():
                    tensor.copy_(tensors[f"{prefix}/{name}"])
        kept: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser/"):
                _, place, key = name.split("/")
                kept.setdefault(int(place), {})[key] = tensor
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": kept})
        torch.set_rng_state(own(tensors["random"]))
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(own(tensors["random_cuda"]), self.device)
        self._since = time.perf_counter()

    def _seen(self) -> int:
        """Cases of the epoch under way that steps were made with, in all processes."""
        return min(len(self.cases), self.progress.batch * self.config.batch_size)

    def _totals(self) -> Tensor:
        """`sums` of all processes."""
        return torch.cat([self.company.add_up(self.sums[:2].clone()), self.sums[2:]])

    def _chooses(self, epoch: Epoch) -> bool:
        """Whether the best epoch is kept and not the last."""
        return epoch.validation_loss is not None and self.config.keep_epoch == "best"

    def _named(self) -> dict[str, dict[str, Tensor]]:
        named = {"model": self.model.state_dict(), "best": self.best}
        return named if self.average is None else {**named, "average": self.average.state_dict()}

    def _seconds(self) -> float:
        return self.progress.seconds + time.perf_counter() - self._since


def is_out_of_memory(error: Exception) -> bool:
    """Whether torch says that a device or the host has no more memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(words in str(error) for words in _OUT_OF_MEMORY)

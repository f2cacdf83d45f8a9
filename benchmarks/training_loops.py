"""Three loops over the same cases, which training.py and gpu.py time: tsattn's, a bare one, one as published.

A loop takes turns: some steps one after the other, timed as a whole.
"""

from __future__ import annotations

import tsattn  # noqa: F401 - before torch, which reads once how OpenMP's threads wait

# isort: split
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW
from torch.utils.data import DataLoader

from tsattn.config import ModelConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.loop import fit
from tsattn.training.resident import Batch, ResidentCases

WIDTH, HEADS, LAYERS = 128, 8, 3
CPU = torch.device("cpu")
PUBLISHED_CLIP, PUBLISHED_DROPOUT = 4.0, 0.1


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Steps one after the other.

    samples: cases in them. seconds: of them all; cpu: seconds that processors worked for this process.
    """

    steps: int
    samples: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """Samples per second."""
        return self.samples / self.seconds

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.seconds / self.steps


def model_config(collection: Collection, attention: str, tokens: str) -> ModelConfig:
    """The model of the benchmark for these cases; what is not named is tsattn's default, as dropout is."""
    return ModelConfig(
        channels=len(collection.channels),
        classes=len(collection.classes),
        attention=attention,
        tokens=tokens,
        width=WIDTH,
        heads=HEADS,
        layers=LAYERS,
    )


def new_model(collection: Collection, config: ModelConfig, device: torch.device) -> TransformerClassifier:
    """A fresh model, always with the same weights, that standardises by the cases' own statistics."""
    torch.manual_seed(0)
    model = TransformerClassifier(config)
    mean, std = statistics_of(collection)
    model.standardise.mean.copy_(torch.from_numpy(mean))
    model.standardise.std.copy_(torch.from_numpy(std))
    return model.to(device)


def statistics_of(collection: Collection) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and deviation of each channel (channels,) over what was observed."""
    mean = np.nanmean(collection.values, axis=(0, 2))
    std = np.nanstd(collection.values, axis=(0, 2))
    return mean, np.where(std > 0, std, 1).astype(np.float32)


@dataclass(frozen=True)
class Moment:
    """Seconds on the clock, and on that of this process's work on CPUs."""

    clock: float
    cpu: float

    def since(self, begin: Moment, steps: int, samples: int) -> Turn:
        """The turn of that many that began then and ends now."""
        return Turn(steps=steps, samples=samples, seconds=self.clock - begin.clock, cpu=self.cpu - begin.cpu)


def now(device: torch.device = CPU) -> Moment:
    """Read when the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return Moment(time.perf_counter(), time.process_time())


class Watched(ResidentCases):
    """Resident cases that note the batches they are asked for, and when the first timed one was."""

    def __init__(self, collection: Collection, device: torch.device) -> None:
        super().__init__(collection, collection.classes, device)
        self.start(skip=0, keep=False)

    def start(self, skip: int, keep: bool) -> None:
        """Notes anew: time counts after `skip` batches, batches are kept or not."""
        self.skip, self.keep = skip, keep
        self.sizes: list[int] = []
        self.kept: list[Batch] = []
        self.begin = now()

    def batch(self, chosen: NDArray[np.int64]) -> Batch:
        """What ResidentCases gives."""
        if len(self.sizes) == self.skip:
            self.begin = now(self.device)
        self.sizes.append(len(chosen))
        found = super().batch(chosen)
        if self.keep:
            self.kept.append(found)
        return found


class Trainer:
    """tsattn's own: `fit` as `tsattn train` calls it, over whole epochs.

    batches: those of the last turn that was told to keep them; each turn has the same.
    """

    def __init__(self, model: TransformerClassifier, config: TrainingConfig, cases: Watched) -> None:
        self.model, self.config, self.cases = model, config, cases
        self.batches: list[Batch] = []

    def turn(self, skip: int, keep: bool = False) -> Turn:
        """`config.epochs` epochs, timed from the step after the first `skip` to the end of the last epoch."""
        ends: list[Moment] = []
        self.cases.start(skip, keep)
        fit(self.model, self.cases, None, self.config, lambda _: ends.append(now(self.cases.device)))
        timed = self.cases.sizes[skip:]
        assert timed, "fit asks for its batches in another way than ResidentCases.batch: Watched must follow"
        if keep:
            self.batches = self.cases.kept
        return ends[-1].since(self.cases.begin, len(timed), sum(timed))


class Bare:
    """The limit: the same model and optimiser, batches that lie ready, and nothing that a trainer adds."""

    def __init__(self, model: TransformerClassifier, config: TrainingConfig, device: torch.device) -> None:
        self.model, self.device = model.train(), device
        self.optimiser = AdamW(model.parameters(), lr=config.learning_rate, fused=True)

    def turn(self, batches: list[Batch], skip: int) -> Turn:
        """A step a batch, timed from the one after the first `skip`."""
        for batch in batches[:skip]:
            self._step(batch)
        begin = now(self.device)
        for batch in batches[skip:]:
            self._step(batch)
        samples = sum(len(batch.targets) for batch in batches[skip:])
        return now(self.device).since(begin, len(batches) - skip, samples)

    def _step(self, batch: Batch) -> None:
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            loss = F.cross_entropy(self.model(batch.values, batch.complete).float(), batch.targets)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()


class PublishedModel(nn.Module):
    """A projection of the channels, learned positions, torch's encoder, and a head over all timepoints."""

    def __init__(self, config: ModelConfig, longest: int) -> None:
        super().__init__()
        width = config.width
        self.project = nn.Linear(config.channels, width)
        self.position = nn.Parameter(torch.empty(longest, width).uniform_(-0.02, 0.02))
        layer = nn.TransformerEncoderLayer(
            width,
            config.heads,
            config.feed_forward * width,
            PUBLISHED_DROPOUT,  # of attention weights too
            activation="gelu",
            batch_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        self.dropout = nn.Dropout(PUBLISHED_DROPOUT)
        self.head = nn.Linear(longest * width, config.classes)

    def forward(self, values: Tensor, padding: Tensor) -> Tensor:
        """Logits (B, classes) from values (B, T, C) and padding (B, T), True beyond a case's end."""
        x = self.dropout(self.project(values) + self.position)  # (B, T, width)
        x = F.gelu(self.encoder(x, src_key_padding_mask=padding))
        x = self.dropout(x.masked_fill(padding[:, :, None], 0.0))
        return self.head(x.flatten(1))


class Published:
    """The loop as published: a DataLoader pads cases to the set's longest; each step asks for its loss."""

    def __init__(self, collection: Collection, config: ModelConfig, batch_size: int) -> None:
        self.longest = int(collection.lengths.max())
        torch.manual_seed(0)
        self.model = PublishedModel(config, self.longest).train()
        self.optimiser = torch.optim.RAdam(self.model.parameters(), lr=1e-3)
        self.cases = _series(collection)
        self.loader: DataLoader[Any] = DataLoader(
            self.cases,  # type: ignore[arg-type] # a list has all that a loader asks of a Dataset
            batch_size,
            shuffle=True,
            num_workers=0,
            collate_fn=self.collate,
        )
        self._stream = self._forever()

    def turn(self, steps: int) -> Turn:
        """That many steps, into the next epoch where this one ends."""
        samples, begin = 0, now()
        for _ in range(steps):
            batch = next(self._stream)
            self.step(*batch)
            samples += len(batch[2])
        return now().since(begin, steps, samples)

    def step(self, values: Tensor, padding: Tensor, targets: Tensor) -> float:
        """One step; its loss."""
        self.optimiser.zero_grad()
        loss = F.cross_entropy(self.model(values, padding), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), PUBLISHED_CLIP)
        self.optimiser.step()
        return loss.item()

    def collate(self, cases: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, longest, C), padding (B, longest), targets (B,)."""
        values = torch.zeros(len(cases), self.longest, cases[0][0].shape[1])
        padding = torch.ones(len(cases), self.longest, dtype=torch.bool)
        for place, (series, _) in enumerate(cases):
            values[place, : len(series)] = series
            padding[place, : len(series)] = False
        return values, padding, torch.tensor([target for _, target in cases])

    def _forever(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        while True:
            yield from self.loader


def _series(collection: Collection) -> list[tuple[Tensor, int]]:
    """(timepoints, channels) of each case, standardised, zero where not observed; and its class."""
    assert collection.labels is not None
    mean, std = statistics_of(collection)
    values = np.nan_to_num((collection.values - mean[:, None]) / std[:, None])
    lengths = np.maximum(collection.lengths, 1)
    return [
        (torch.from_numpy(np.ascontiguousarray(one[:, :length].T)), collection.classes.index(label))
        for one, length, label in zip(values, lengths, collection.labels, strict=True)
    ]


def config_of(epochs: int, batch_size: int) -> TrainingConfig:
    """The defaults of tsattn with these."""
    return TrainingConfig(epochs=epochs, batch_size=batch_size)


def pair(
    collection: Collection, model: ModelConfig, training: TrainingConfig, device: torch.device
) -> tuple[Trainer, Bare]:
    """The trainer and its limit, each with a model of its own and the same weights."""
    ours, bare = (new_model(collection, model, device) for _ in range(2))
    return Trainer(ours, training, Watched(collection, device)), Bare(bare, training, device)

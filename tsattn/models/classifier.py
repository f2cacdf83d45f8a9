"""The model: standardise → scales → tokens → position → blocks of attention → masked pooling → head."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsattn.config import ModelConfig
from tsattn.errors import InputError
from tsattn.models.beside import RidgeClassifier
from tsattn.models.dropout import Dropout
from tsattn.models.layers import Block, MaskedPooling, Scales, SinusoidalPosition, Standardise
from tsattn.models.packing import lay_out
from tsattn.models.tokens import build_tokens

TRUST = 0.65
"""Of the sum of two classifiers' log-probabilities: they err on the same cases more often than chance has it,
so the sum alone is too sure. The same for all data; docs/log.md has how it was found."""


class TransformerClassifier(nn.Module):
    """Classifies series of any length; padding and gaps can never change a prediction.

    beside: what classifies the same series from fixed convolutions and has half of the say or more, or None.
    It is not trained with the rest but fitted after it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.width % config.heads:
            raise InputError(
                f"width {config.width} cannot be divided among {config.heads} heads: "
                f"try --width {config.heads * max(1, round(config.width / config.heads))}."
            )
        self.standardise = Standardise(config.channels)
        self.scales = Scales(config.normalise)
        self.tokens = build_tokens(config.tokens, self.scales.copies * config.channels, config.width)
        self.position = SinusoidalPosition(config.width)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            Block(
                config.width,
                config.heads,
                config.attention,
                config.feed_forward,
                config.dropout,
                config.stochastic_depth * (depth + 1) / config.layers,
            )
            for depth in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.pooling = MaskedPooling()
        self.head = nn.Linear(2 * config.width, config.classes)
        self.beside: RidgeClassifier | None = None
        if config.convolutions:
            self.beside = RidgeClassifier(
                config.channels, config.classes, config.convolutions, config.dilations
            )

    def forward(self, values: Tensor, complete: bool = False) -> Tensor:
        """Logits (batch, classes) from values (batch, channels, timepoints), NaN where not observed.

        complete: the caller's promise that every timepoint of every case is observed, which
        spares all masks.
        """
        observed = None if complete else ~values.isnan().all(dim=1)  # (B, T)
        logits = self.transformer(values, observed)
        if self.beside is None or self.training:
            return logits
        own = torch.log_softmax(logits.float(), dim=1)
        return TRUST * (self.beside.say * own + self.beside(values, observed))

    def transformer(self, values: Tensor, observed: Tensor | None) -> Tensor:
        """The transformer's own logits (batch, classes); observed (batch, timepoints), None if all are."""
        x, seen = self.tokens(self.scales(values, self.standardise(values)), observed)
        layout = lay_out(x, seen, self.training)
        x = self.dropout(layout.pack(self.position(x)))
        for block in self.blocks:
            x = block(x, layout)
        return self.head(self.pooling(layout.unpack(self.norm(x)), seen))


class Probabilities(nn.Module):
    """A classifier that ends in probabilities: what is exported and what predicts.

    temperature: what logits are divided by; above 1 the probabilities are less sure of themselves.
    """

    def __init__(self, classifier: nn.Module, temperature: float = 1.0) -> None:
        super().__init__()
        self.classifier = classifier
        self.temperature = temperature

    def forward(self, values: Tensor) -> Tensor:
        """(batch, classes), rows sum to one, from values (batch, channels, timepoints)."""
        logits = self.classifier(values).float()
        return torch.softmax(logits if self.temperature == 1 else logits / self.temperature, dim=1)

"""From what the user typed and what the data are to a resolved configuration: the recipe's rules.

Rules, each overridden by its option; a preset's `rules:` holds their bounds, see `tsattn.config.Rules`:
- a batch holds 16 cases, 32 from 1,000 training cases on and 64 from 4,000; with 'auto' as many as half of
  the free memory has room for, see `tsattn.training.fitting`;
- 60 epochs, more where that would be too few steps, fewer where it would be too many tokens;
- a token a timepoint, and one of 2, 4, 8 … where series are longer than the most tokens;
- a recipe that shows both scales shows one where every case has the scale of all;
- fixed convolutions are dilated by 1, 2, 4, … as long as the widest fits into the longest series;
- a validation part (a fifth, stratified) is held out where TRAIN has at least 500 cases, on average 25
  a class and, where cases belong to groups, ten of those: it then knows an accuracy to about three
  points. With less, all of TRAIN is trained on for the fixed schedule and the last epoch counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsattn.config import ModelConfig, Rules, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.data.splits import spares_validation
from tsattn.errors import InputError
from tsattn.models.tokens import build_tokens, with_stride
from tsattn.presets.reading import load_preset
from tsattn.training import rules

AUTO = "auto"
MOST_CASES = 1_000_000


def parse_batch_size(word: str) -> int | str:
    """A number of cases or 'auto'. InputError for anything else."""
    if word == AUTO:
        return word
    if not word.isdecimal() or not 1 <= int(word) <= MOST_CASES:
        raise InputError(f"--batch-size {word}: expected a number of cases, as in 16, or the word {AUTO}.")
    return int(word)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Configurations, and what of them the data decided: by field the value and why, in words."""

    model: ModelConfig
    training: TrainingConfig
    rules: dict[str, str]


def plan(
    train: Collection,
    preset: str,
    asked: Mapping[str, Any],
    groups: Sequence[str] | None = None,
    device: str = "cpu",
) -> Plan:
    """Configurations for these training cases: `asked` before preset before rules and defaults.

    asked: values by field name of either configuration; None where the user said nothing.
    groups: of the cases, where some may not be torn apart. device: where it will be trained.
    InputError for a preset that there is not and a learning rate that is no rate.
    """
    assert train.labels is not None
    recipe = load_preset(preset)
    bounds = Rules(**recipe.rules)
    said = {name: value for name, value in asked.items() if value is not None}
    model_fields = {field.name for field in dataclasses.fields(ModelConfig)}
    model = {
        **recipe.model,
        **{name: value for name, value in said.items() if name in model_fields},
        "channels": len(train.channels),
        "classes": len(train.classes),
    }
    training = {
        **recipe.training,
        **{name: value for name, value in said.items() if name not in model_fields},
    }
    why: dict[str, str] = {}
    spared = rules.stride(int(train.lengths.max(initial=1)), bounds)
    tokens = model.get("tokens", ModelConfig.tokens)
    model["tokens"] = with_stride(tokens, spared.value)
    if model["tokens"] != tokens:
        why["tokens"] = f"{model['tokens']}: {spared.why}"
    if model.get("convolutions", ModelConfig.convolutions) and "dilations" not in model:
        model["dilations"], why["dilations"] = _ruled(rules.dilations(int(train.lengths.max(initial=1))))
    free = model.get("normalise") == "both" and "normalise" not in said
    if free and not rules.differs_in_scale(train.values):
        model["normalise"], why["normalise"] = "set", "set: every case has the scale of all"
    share = rules.VALIDATION_SHARE if spares_validation(train.labels, groups) else 0.0
    training.setdefault("validation", share)
    if training.get("batch_size") == AUTO:
        del training["batch_size"]
        training |= _fitting_batch(ModelConfig(**model), train, device)
    cases = round(len(train) * (1 - training["validation"]))
    if "batch_size" not in training:
        training["batch_size"], why["batch_size"] = _ruled(rules.batch_size(len(train)))
    if "epochs" not in training:
        stride = build_tokens(model["tokens"], 1, model.get("width", ModelConfig.width)).stride
        usual = float(train.lengths.mean())
        training["epochs"], why["epochs"] = _ruled(
            rules.epochs(cases, usual, stride, training["batch_size"], bounds)
        )
    config = TrainingConfig(**training)
    if not 0 <= config.learning_rate < math.inf:
        raise InputError(
            f"--lr {config.learning_rate:g}: a learning rate is a finite number, 0 or more; "
            "usual are 1e-4 to 1e-2. Type such a number."
        )
    return Plan(model=ModelConfig(**model), training=config, rules=why)


def _ruled(found: rules.Ruled) -> tuple[int, str]:
    """The value, and it with its reason."""
    return found.value, f"{found.value}: {found.why}"


def _fitting_batch(model: ModelConfig, train: Collection, device: str) -> dict[str, int]:
    """The batch size that memory suggests, if it can be known."""
    import torch

    from tsattn.training.fitting import largest_batch

    found = largest_batch(model, train, torch.device(device))
    return {} if found is None else {"batch_size": found}

"""What a run is made of: frozen dataclasses, and the YAML in which a run keeps them.

A value is taken from the command line, else from the preset (`tsattn.presets`), else from the defaults here.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any, get_origin, get_type_hints

import yaml

from tsattn.errors import InputError

DEFAULT_PRESET = "base"
WORDS: dict[str, tuple[str, ...]] = {
    "optimiser": ("adamw", "radam"),
    "schedule": ("cosine", "one-cycle", "constant"),
    "class_weight": ("none", "balanced"),
    "sampling": ("none", "balanced"),
    "keep_epoch": ("best", "last"),
}
"""Of the fields of TrainingConfig that take one of a few words."""
NORMALISE = ("set", "case", "both")
"""By whose mean and deviation a model's channels are scaled."""
TEST = "@test"
"""In `RunConfig.held_out`: the source's own TEST."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of a TransformerClassifier.

    channels, classes: from the data. attention, tokens: words of the two registries.
    normalise: channels by the training 'set', each 'case' by itself, or 'both' side by side. InputError for
    another word.
    convolutions: about how many shares of fixed convolutions are weighed beside the transformer, 0 for none;
    dilations: of these convolutions, 1, 2, 4, … so many.
    width: of a token. heads, layers: of the stack. feed_forward: times the width.
    dropout: share in [0, 1) dropped from tokens, residuals and feed-forward, never from attention.
    stochastic_depth: share in [0, 1) of cases for which the last block is left out in training, less for
    the earlier ones.
    """

    channels: int
    classes: int
    attention: str = "bn+sh"
    tokens: str = "multiscale"
    width: int = 96
    heads: int = 8
    layers: int = 2
    feed_forward: int = 2
    dropout: float = 0.1
    stochastic_depth: float = 0.0
    normalise: str = "set"
    convolutions: int = 0
    dilations: int = 6

    def __post_init__(self) -> None:
        _check_word("normalise", self.normalise, NORMALISE)


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained.

    epochs: passes over the training cases; batch_size: cases a step.
    optimiser, schedule, class_weight, sampling, keep_epoch: one of WORDS. InputError for another.
    learning_rate: the highest. schedule: what it does before and after; `warm_up` is the share of all steps
    over which it rises.
    weight_decay: decoupled, on matrices only. clip: greatest norm of a gradient.
    label_smoothing: in [0, 1). class_weight, sampling: see `tsattn.training.balance`.
    augment: words of `tsattn.training.augment`, '' for nothing.
    averaging: of weights over steps, the share in [0, 1) that the average keeps a step; 0 for none.
    pretrained: a run folder whose weights are started from where they fit, '' for none.
    validation: share of the training cases held out to choose the epoch, 0 for none.
    patience: epochs without improvement on the held-out cases after which training stops.
    keep_epoch: 'best' on the held-out cases, or the 'last', which those cases then judge fairly.
    trial: share in [0, 1] of the epochs for which a second model is trained without a quarter of the cases,
    which then say how much the transformer counts beside convolutions; for 0 those say it that it was trained
    on.
    compile: whether torch's compiler makes few kernels of a step, which takes it a minute or two.
    track: trackers that the training is reported to, words of `tsattn.training.tracking` joined by '+', ''
    for none; it changes nothing of the training.
    """

    epochs: int
    batch_size: int
    optimiser: str = "adamw"
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    warm_up: float = 0.1
    weight_decay: float = 0.05
    clip: float = 1.0
    label_smoothing: float = 0.1
    class_weight: str = "none"
    sampling: str = "none"
    augment: str = ""
    averaging: float = 0.0
    pretrained: str = ""
    validation: float = 0.0
    patience: int = 20
    keep_epoch: str = "best"
    trial: float = 0.0
    compile: bool = False
    track: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in WORDS.items():
            _check_word(name, getattr(self, name), known)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a recipe leaves to the data, and within which bounds; `tsattn.training.rules` has the arithmetic.

    passes: epochs, where nothing below asks for others. fewest_steps: of the optimiser in all; small sets get
    more epochs for them. most_tokens: that go through the model in all epochs together, to which what becomes
    of a timepoint before it is part of a token adds a quarter; large sets get fewer epochs for them.
    tokens_a_case: the most that a series is made into; of a longer one the token stage makes one of
    2, 4, 8 … timepoints.
    """

    passes: int = 60
    fewest_steps: int = 1500
    most_tokens: int = 8_000_000
    tokens_a_case: int = 512


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig:
    """Of how many models a recipe makes one, whose probabilities are the means of theirs.

    members: trained with seeds of their own. member_tokens: a token spec for each of them in turn, with ', '
    between, beginning again after the last; '' for that of the recipe.
    parts: into how many TRAIN is divided, each member being trained without another; 0 to hold nothing out.
    What members say of parts held out decides what their transformers count and how sure the model is.
    """

    members: int = 1
    member_tokens: str = ""
    parts: int = 0

    def tokens_of(self, member: int) -> str | None:
        """Of a member, counted from 0; None where the recipe's own are taken."""
        words = [word.strip() for word in self.member_tokens.split(",") if word.strip()]
        return words[member % len(words)] if words else None

    def __post_init__(self) -> None:
        if 0 < self.parts < max(2, self.members):
            least = max(2, self.members)
            raise InputError(
                f"ensemble: parts {self.parts}: expected 0, for none, or at least {least}, one a member."
            )

    def seeds(self, seed: int) -> list[int]:
        """Of the members of the ensemble that is made with `seed`; no two of these share one."""
        return list(range(seed * self.members, (seed + 1) * self.members))


@dataclass(frozen=True, kw_only=True)
class Code:
    """What a run needs beside tsattn to be built again: where an attention of others comes from.

    part: the word of the spec. file: in the run folder, and sha256 of its content; or else
    distribution and version of installed software.
    """

    part: str
    file: str = ""
    sha256: str = ""
    distribution: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        if not all(isinstance(word, str) for word in vars(self).values()):
            raise TypeError(f"code holds words, not {list(vars(self).values())}")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that is needed to repeat a run; the content of config.yaml.

    source: the data as typed; registry: the user's file that names it, as typed, '' if none was.
    table: column roles where the source is a table.
    preparation: how recordings became cases, empty if they were.
    held_out: the file whose cases choose the epoch, '@test' for the source's TEST, '' for a part of TRAIN.
    protocol: what was trained on and how the epoch is chosen, in words.
    rules: what the data decided, by field: the value and why, in words.
    fingerprint: of the cases trained on.
    device: where it was trained; threads: CPU threads used. code: of attentions of others.
    format: of the file.
    """

    source: str
    preset: str
    device: str
    threads: int
    model: ModelConfig
    training: TrainingConfig
    registry: str = ""
    table: dict[str, str] = field(default_factory=dict)
    preparation: dict[str, int] = field(default_factory=dict)
    held_out: str = ""
    protocol: str = ""
    fingerprint: str = ""
    code: tuple[Code, ...] = ()
    rules: dict[str, str] = field(default_factory=dict)
    format: int = 1

    def to_yaml(self) -> str:
        """YAML in the order of the fields."""
        return yaml.safe_dump(dataclasses.asdict(self), sort_keys=False, allow_unicode=True)

    @classmethod
    def from_yaml(cls, text: str, where: str) -> RunConfig:
        """Reads `to_yaml`'s text. InputError naming `where` for anything else."""
        raw = _mapping(text, where)
        try:
            model, training = ModelConfig(**raw.pop("model")), TrainingConfig(**raw.pop("training"))
            code = tuple(Code(**one) for one in raw.pop("code", ()))
            config = cls(model=model, training=training, code=code, **raw)
            for part in (model, training, config):
                _check_types(part)
            return config
        except (InputError, KeyError, TypeError) as error:
            raise InputError(f"{where}: not a run's configuration ({error}).") from None

    @property
    def identity(self) -> str:
        """Hexadecimal sha256 of what decides about the weights: all but places, device, threads, reports."""
        training = dataclasses.replace(self.training, pretrained="", track="")
        decisive = [vars(self.model), vars(training), self.preparation, self.fingerprint]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


COUNTS = (
    *("channels", "classes", "width", "heads", "layers", "feed_forward", "dilations"),
    *("epochs", "batch_size", "patience"),
)
SHARES = ("dropout", "stochastic_depth", "label_smoothing", "averaging")
MOST_THREADS, SEEDS = 1024, 1 << 32
MOST_CONVOLUTIONS = 1_000_000
RANGES = {
    **dict.fromkeys(COUNTS, (1, math.inf)),
    **dict.fromkeys(SHARES, (0, 1)),
    "convolutions": (0, MOST_CONVOLUTIONS + 1),
    "threads": (1, MOST_THREADS + 1),
    "seed": (0, SEEDS),
}
"""Least value and what it must be below, of fields of a configuration that was edited."""


def _check_word(name: str, word: Any, known: tuple[str, ...]) -> None:
    """InputError with the near word for one that is not known."""
    if word not in known:
        near = difflib.get_close_matches(str(word), known, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise InputError(f"{name.replace('_', '-')} '{word}': expected {' or '.join(known)}.{hint}")


def _check_types(of: Any) -> None:
    """TypeError naming the first field of a configuration that holds something else than it says."""
    for name, hint in get_type_hints(type(of)).items():
        value, kind = getattr(of, name), get_origin(hint) or hint
        allowed = (int, float) if kind is float else (kind,)
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"{name} is {value!r}")
        least, below = RANGES.get(name, (-math.inf, math.inf))
        if isinstance(value, int | float) and not least <= value < below:
            raise TypeError(f"{name} is {value!r}, expected {least} or more and less than {below}")


def _mapping(text: str, where: str) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{where}: not readable as YAML ({error}).") from None
    if not isinstance(raw, dict):
        raise InputError(f"{where}: expected 'key: value' lines, found {type(raw).__name__}.")
    return raw

"""What a sweep compares: attentions at every point of a grid, and baselines, each under its label."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from tsattn.config import WORDS, ModelConfig, TrainingConfig
from tsattn.errors import InputError
from tsattn.presets.reading import load_preset
from tsattn.presets.values import read_value
from tsattn.sweeps.baselines import find_baseline
from tsattn.sweeps.cell import Kind

PRESET = "preset"
_SHORT = {"lr": "learning_rate"}
_OF_A_CELL = {"channels", "classes", "attention", "seed", "track", "validation", "keep_epoch", "pretrained"}
"""Fields that data, seed or protocol decide, or another option of the sweep."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A column of the table.

    label: as shown, e.g. `bn+sh width=64`. word: of the attention as typed, or of the baseline.
    grid: values by option, as shown. asked: the same by field of the configurations. preset: that of the
    grid, as typed; '' for that of the recipe.
    """

    label: str
    kind: Kind
    word: str
    grid: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    preset: str = ""


def split_words(texts: Sequence[str]) -> list[str]:
    """Words of options that may be given several times and hold several, once each and in order.

    A comma before a digit belongs to the word: 'sh:1,1,2,4,bn' is `sh:1,1,2,4` and `bn`.
    """
    words: list[str] = []
    for text in texts:
        fresh = True
        for piece in (piece.strip() for piece in text.split(",")):
            if piece[:1].isdigit() and not fresh and ":" in words[-1]:
                words[-1] += f",{piece}"
            elif piece:
                words.append(piece)
            fresh = False
    return list(dict.fromkeys(words))


def parse_grid(texts: Sequence[str]) -> dict[str, list[Any]]:
    """'width=64,128' is width at these two values; several are every combination.

    preset=base,my.yaml are presets, as typed. InputError for an option that a grid cannot have and a value
    that it cannot take.
    """
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        option = name.strip().lstrip("-").replace("_", "-")
        values = split_words([rest])
        if not equals or not values or option in grid:
            raise InputError(f"--grid {text}: expected an option, once, and its values, as in width=64,128.")
        if option == PRESET:
            for value in values:
                load_preset(value)
            grid[PRESET] = list(values)
            continue
        hint = _hint_of(option, text)
        for value in values:
            try:
                read = read_value(field_of(option), yaml.compose(value, Loader=yaml.SafeLoader), hint)
            except (ValueError, yaml.YAMLError) as error:
                raise InputError(f"--grid {text}: {error}") from None
            grid.setdefault(option, []).append(read)
    return grid


def field_of(option: str) -> str:
    """The field of the configurations that an option of a grid sets."""
    return _SHORT.get(option, option.replace("-", "_"))


def methods(
    attentions: Sequence[str], grid: Mapping[str, Sequence[Any]], baselines: Sequence[str]
) -> list[Method]:
    """Every attention at every point of the grid, then the baselines. InputError for an unknown word."""
    from tsattn.models.attention.foreign import resolve

    found = []
    for spec in attentions:
        plain = resolve(spec)
        for values in itertools.product(*grid.values()):
            typed = dict(zip(grid, values, strict=True))
            point = {**typed, PRESET: Path(typed[PRESET]).stem} if PRESET in typed else typed
            found.append(
                Method(
                    label=" ".join([plain, *(f"{option}={value}" for option, value in point.items())]),
                    kind="transformer",
                    word=spec,
                    grid=point,
                    asked={field_of(option): value for option, value in point.items() if option != PRESET},
                    preset=typed.get(PRESET, ""),
                )
            )
    found += [Method(label=find_baseline(word).word, kind="baseline", word=word) for word in baselines]
    labels = [method.label for method in found]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError(f"{twice} is asked for twice. Type it once, or give one of two files another name.")
    return found


def check_method(method: Method, values: Mapping[str, Any]) -> None:
    """InputError where a transformer cannot be built with these values by field, before any is trained."""
    if method.kind == "baseline":
        return
    from tsattn.models.attention.foreign import resolve
    from tsattn.models.classifier import TransformerClassifier
    from tsattn.training.augment import parse_augmentation

    said = {**values, "attention": resolve(method.word)}
    model = {name: value for name, value in said.items() if name in _fields(ModelConfig)}
    try:
        TransformerClassifier(ModelConfig(**{**model, "channels": 2, "classes": 2}))
        TrainingConfig(epochs=1, batch_size=1, **{name: said[name] for name in WORDS if name in said})
        parse_augmentation(said.get("augment") or "")
    except InputError as error:
        raise InputError(f"{method.label}: {error}") from None


def _hint_of(option: str, text: str) -> Any:
    hints = {**get_type_hints(ModelConfig), **get_type_hints(TrainingConfig)}
    known = [name for name in hints if name not in _OF_A_CELL]
    if field_of(option) not in known:
        options = [*(name.replace("_", "-") for name in known), *_SHORT, PRESET]
        near = difflib.get_close_matches(option, options, n=1, cutoff=0.5)
        meant = f" Did you mean '{near[0]}'?" if near else ""
        raise InputError(
            f"--grid {text}: '{option}' is no option of a grid.{meant} There are: {', '.join(options)}."
        )
    return hints[field_of(option)]


def _fields(cls: type[Any]) -> set[str]:
    return {one.name for one in dataclasses.fields(cls)}

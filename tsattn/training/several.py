"""Trainings that belong together: one a seed, one a part of a cross-validation, each a run folder of its own.

What is finished is not repeated and what was stopped is gone on with, so typing the same again completes it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsattn.config import EnsembleConfig, ModelConfig, RunConfig
from tsattn.errors import InputError
from tsattn.models.tokens import build_tokens
from tsattn.presets.reading import load_preset
from tsattn.runs import check_free, is_finished, read_config
from tsattn.runs.files import CONFIG, METRICS
from tsattn.training.preparing import Prepared

MOST_SEEDS = 1000
REPORTED_TO = "training.track"
"""It may differ between a training and its going on: it changes nothing of it."""


@dataclass(frozen=True, kw_only=True)
class Several:
    """Trainings that one command asks for.

    seeds: one each. tokens: by seed, where the recipe has others for some than for all.
    ensemble: whether they are one model together. parts: into how many TRAIN is divided, of which each is
    trained without another; 0 where none is held out.
    """

    seeds: list[int]
    tokens: dict[int, str]
    ensemble: bool
    parts: int = 0

    def __str__(self) -> str:
        each = (
            f"seed {seed}{f' ({self.tokens[seed]})' if seed in self.tokens else ''}" for seed in self.seeds
        )
        words = " that are one model" * self.ensemble
        if self.parts:
            words += f", each without another of {self.parts} parts of TRAIN"
        return f"{len(self.seeds)} trainings{words}: {', '.join(each)}"

    def part_of(self, seed: int) -> dict[str, Any]:
        """Fields of `Holding`: what the training with that seed holds out beside what is typed."""
        if not self.parts:
            return {}
        return {"fold": (self.seeds.index(seed), self.parts), "together": self.seeds[0]}


def several_of(
    preset: str, seed: int, seeds: str | None, *, ensemble: bool, own_tokens: bool, own_parts: bool = True
) -> Several:
    """What `--seed` or `--seeds` ask for with a preset, which may itself make one model of several.

    Typed seeds are then those of its members. own_tokens, own_parts: whether the preset says what tokens are
    made of and what is held out, and no option. InputError for an ensemble of which nobody says how many.
    """
    recipe = EnsembleConfig(**load_preset(preset).ensemble)
    if ensemble and seeds is None and recipe.members == 1:
        raise InputError("--ensemble makes one model of several seeds: type --seeds too, e.g. --seeds 5.")
    found = recipe.seeds(seed) if seeds is None else parse_seeds(seeds)
    words = {each: recipe.tokens_of(place) for place, each in enumerate(found)} if own_tokens else {}
    for word in filter(None, words.values()):  # a slip in the last is said before the first is trained
        build_tokens(word, channels=1, width=ModelConfig.width)
    return Several(
        seeds=found,
        tokens={each: word for each, word in words.items() if word is not None},
        ensemble=ensemble or recipe.members > 1,
        parts=max(recipe.parts, len(found)) if recipe.parts and own_parts and len(found) > 1 else 0,
    )


def parse_seeds(text: str) -> list[int]:
    """'5' is 0 … 4; '0,3,7' are these. InputError for anything else."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) < 2**32 for word in words):
        raise InputError(f"--seeds {text}: expected a number of seeds, as in 5, or seeds, as in 0,1,2.")
    seeds = [int(word) for word in words]
    if len(seeds) == 1:
        seeds = list(range(seeds[0]))
    if not 1 <= len(seeds) <= MOST_SEEDS or len(set(seeds)) < len(seeds):
        raise InputError(f"--seeds {text}: expected 1 to {MOST_SEEDS} seeds, each once.")
    return seeds


def check_place(folder: Path, *, several: bool) -> None:
    """InputError where trainings to `folder` would spoil what is there, before any of them begins.

    several: they are folders inside it, else it is the folder of one.
    """
    if several and (folder / CONFIG).exists():
        raise InputError(
            f"{folder}: the folder of one run, which cannot hold several. Choose another with --out."
        )
    if not several and folder.exists() and not (folder / CONFIG).exists():
        check_free(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file, not a folder. Choose another place with --out.")


def at(prepared: Prepared, place: Path) -> Prepared | None:
    """The training at `place`: from its beginning, or from where it was stopped; None if it is finished.

    InputError where another training is there.
    """
    if not place.exists():
        return replace(prepared, out=place)
    _check_same(read_config(place), prepared.config, place)
    return None if is_finished(place) else replace(prepared, out=place, begun=True)


def as_refit(prepared: Prepared, epochs: int, search: Path) -> Prepared:
    """A training on all of TRAIN that says where its number of epochs comes from."""
    words = f"refit: all {len(prepared.train)} cases of TRAIN, {epochs} epochs as {search.name} found"
    return replace(prepared, config=replace(prepared.config, protocol=words))


def summary(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Metrics of finished members, and mean and standard deviation of each figure over them."""
    members = [{"name": name, **json.loads((folder / name / METRICS).read_text("utf-8"))} for name in names]
    figures = {}
    for part in ("train", "validation", "test"):
        found = [member[part]["accuracy"] for member in members if member.get(part)]
        if len(found) == len(members):
            figures[part] = mean_and_deviation(found)
    return {"members": members, "accuracy": figures, "seconds": sum(member["seconds"] for member in members)}


def mean_and_deviation(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and sample standard deviation, None for the latter where there is one value."""
    return {
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if len(values) > 1 else None,
    }


def _check_same(there: RunConfig, asked: RunConfig, place: Path) -> None:
    old, new = _flat(there), _flat(asked)
    differing = next((name for name in old if name != REPORTED_TO and old[name] != new[name]), None)
    if differing is not None:
        raise InputError(
            f"{place}: another training is there, its {differing} is {old[differing]!r} and not "
            f"{new[differing]!r}. Choose another folder with --out."
        )


def _flat(config: RunConfig) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in vars(config).items():
        if name in ("model", "training"):
            found |= {f"{name}.{inner}": of for inner, of in vars(value).items()}
        else:
            found[name] = value
    return found

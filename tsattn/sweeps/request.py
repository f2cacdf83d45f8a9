"""What is asked of a sweep, and sweep.yaml, which keeps it so that only what agrees is ever added.

The recipe is that of every cell and stays as it was first typed; data, methods and seeds may be added to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tsattn import __version__
from tsattn.data.atomic import whole_file
from tsattn.errors import InputError
from tsattn.sweeps.methods import PRESET, Method
from tsattn.training.protocols import parse_protocol

SWEEP, FORMAT = "sweep.yaml", 1
LOCK = "lock"
"""All that a sweep leaves in a folder in which it could not write more."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Of a data set, as far as an estimate of costs needs it: cases, and timepoints of the longest."""

    train: int
    test: int
    length: int


@dataclass(frozen=True, kw_only=True)
class Source:
    """A row of the table: a data set by its name, and as typed."""

    name: str
    source: str
    size: Size


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How every cell is trained.

    options: what was typed, by field of the configurations. preset: name or file; preset_sets: what it set.
    table: column roles. registry: the user's, '' if none was typed.
    """

    preset: str
    protocol: str
    device: str
    options: dict[str, Any] = field(default_factory=dict)
    preset_sets: dict[str, Any] = field(default_factory=dict)
    table: dict[str, str] = field(default_factory=dict)
    registry: str = ""

    @property
    def folds(self) -> int:
        """Of a protocol kfold, 0 of others."""
        return parse_protocol(self.protocol).folds


@dataclass(frozen=True, kw_only=True)
class Request:
    """A whole sweep, resolved. presets: what those of the grid set, by their name as shown."""

    sources: tuple[Source, ...]
    attentions: tuple[str, ...]
    baselines: tuple[str, ...]
    grid: dict[str, list[Any]]
    seeds: tuple[int, ...]
    recipe: Recipe
    presets: dict[str, dict[str, Any]] = field(default_factory=dict)

    def values(self, method: Method) -> dict[str, Any]:
        """By field: what the method's preset sets; before it what was typed, and its place in the grid."""
        sets = self.presets[method.grid[PRESET]] if method.preset else self.recipe.preset_sets
        return {**sets, **self.recipe.options, **method.asked}


def note(folder: Path, request: Request) -> None:
    """Writes sweep.yaml, or adds to it what is new. The caller keeps the folder for itself.

    InputError where another recipe is there, or other data under the same name, and says what differs.
    """
    place = folder / SWEEP
    new = _document(request)
    if place.exists():
        new = _together(_read(place), new, folder)
    text = yaml.safe_dump(new, sort_keys=False, allow_unicode=True)
    if place.exists() and place.read_text("utf-8") == text:
        return
    with whole_file(place) as draft:
        draft.write_text(text, "utf-8")


def check_free(folder: Path) -> None:
    """InputError where DIR is no sweep and not empty, so that nothing of others is mixed in."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file. Choose another folder with -o.")
    if (
        folder.is_dir()
        and not (folder / SWEEP).exists()
        and any(one.name != LOCK for one in folder.iterdir())
    ):
        raise InputError(f"{folder}: not empty, and not a sweep. Choose another folder with -o.")


def _document(request: Request) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "tsattn": __version__,
        "data": [{"name": one.name, "source": one.source} for one in request.sources],
        "attentions": list(request.attentions),
        "baselines": list(request.baselines),
        "seeds": list(request.seeds),
        "grid": {option: list(values) for option, values in request.grid.items()},
        "presets": request.presets,
        **asdict(request.recipe),
    }


_RECIPE = tuple(Recipe.__dataclass_fields__)


def _together(old: Mapping[str, Any], new: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    differing = _differing({name: old.get(name) for name in _RECIPE}, {name: new[name] for name in _RECIPE})
    sources = {one["name"]: one["source"] for one in old["data"]}
    differing += [
        (f"source of {one['name']}", sources[one["name"]], one["source"])
        for one in new["data"]
        if sources.get(one["name"], one["source"]) != one["source"]
    ]
    was, now = old.get("presets", {}), new["presets"]
    both = [name for name in was if name in now]
    differing += _differing({name: was[name] for name in both}, {name: now[name] for name in both}, "preset ")
    if differing:
        said = "; ".join(f"{name} is {was!r} and not {now!r}" for name, was, now in differing)
        raise InputError(
            f"{folder}: another sweep is there: {said}. Type the same recipe, or another folder with -o."
        )
    grid = {
        option: _union(old["grid"].get(option, []), new["grid"].get(option, []))
        for option in _union(list(old["grid"]), list(new["grid"]))
    }
    added = {name: _union(old[name], new[name]) for name in ("data", "attentions", "baselines", "seeds")}
    return {**old, **added, "grid": grid, "presets": {**was, **now}}


def _differing(
    old: Mapping[str, Any], new: Mapping[str, Any], inside: str = ""
) -> list[tuple[str, Any, Any]]:
    """(name, value there, value now) of everything that is not the same."""
    found: list[tuple[str, Any, Any]] = []
    for name in _union(list(old), list(new)):
        was, now = old.get(name), new.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            found += _differing(was, now, f"{inside}{name}.")
        elif was != now:
            found.append((f"{inside}{name}".replace("options.", ""), was, now))
    return found


def _union(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    return [*old, *(one for one in new if one not in old)]


def _read(place: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(place.read_text("utf-8"))
        if raw["format"] != FORMAT:
            raise ValueError(f"format {raw['format']!r}, this tsattn reads format {FORMAT}")
        kinds = {"data": list, "attentions": list, "baselines": list, "seeds": list, "grid": dict}
        for name, kind in kinds.items():
            if not isinstance(raw[name], kind):
                raise TypeError(f"{name} is {raw[name]!r}")
        if not isinstance(raw.get("presets", {}), dict):
            raise TypeError(f"presets is {raw['presets']!r}")
        if wrong := [option for option, values in raw["grid"].items() if not isinstance(values, list)]:
            raise TypeError(f"grid of {wrong[0]} is no list")
        for one in raw["data"]:
            str(one["name"]), str(one["source"])
    except (OSError, yaml.YAMLError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise InputError(
            f"{place}: not what a sweep keeps there ({why}). Put it back as it was, or choose another folder "
            "with -o; the cells that are there can still be compared."
        ) from None
    return dict(raw)

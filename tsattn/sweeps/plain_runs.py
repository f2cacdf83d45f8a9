"""Run folders that no sweep made, as cells: what `tsattn train` and `tsattn eval` left in them.

The names of the files stand here again: `tsattn.runs` has them too, and imports torch, which takes longer
than the whole comparison.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from tsattn.card import ModelCard
from tsattn.config import RunConfig
from tsattn.errors import InputError
from tsattn.sweeps.cell import LATER, METRICS, Cell

CONFIG, WEIGHTS, RESULTS = "config.yaml", "model.safetensors", "metrics.json"
SPLIT, ENVIRONMENT, CARD_KEY = "split.json", "environment.json", "tsattn"
ENDINGS = {".zip", ".ts", ".tsv", ".arff", ".npz", ".csv", ".gz", ".parquet", ".feather", ".arrow"}
NO_OPTIONS = {"seed", "track", "channels", "classes", "attention", "preparation"}
"""Fields of a configuration that make no other method of a run."""


@dataclass(frozen=True, kw_only=True)
class PlainRun:
    """A judged run. cell: its method is the attention alone. options: of preset, model and training."""

    folder: Path
    cell: Cell
    options: dict[str, Any]


def is_run(names: Sequence[str]) -> bool:
    """Whether a folder with files of these names is a run whose training has ended."""
    return {CONFIG, WEIGHTS, RESULTS} <= set(names)


def read_plain_run(folder: Path) -> PlainRun | None:
    """The run in `folder`, None where its test figures are not noted. InputError for a spoilt file."""
    results = _object(folder / RESULTS)
    test = results.get("test")
    if not isinstance(test, dict) or not all(name in (*LATER, *test) for name in METRICS):
        return None
    where = folder / CONFIG
    config = RunConfig.from_yaml(where.read_text("utf-8"), str(where))
    card = _card(folder / WEIGHTS)
    cell = Cell(
        data=data_name(config.source),
        method=config.model.attention,
        kind="transformer",
        seed=config.training.seed,
        status="done",
        finished=datetime.fromtimestamp((folder / WEIGHTS).stat().st_mtime, UTC).isoformat("T", "seconds"),
        protocol=card.protocol,
        metrics={name: test.get(name) for name in METRICS},
        train_cases=len(_object(folder / SPLIT).get("train", ())) or None,
        test_cases=test.get("cases"),
        length=card.lengths[2],
        channels=len(card.channels),
        classes=len(card.classes),
        parameters=results.get("parameters"),
        train_seconds=results.get("seconds"),
        threads=config.threads,
        tsattn=card.versions.get("tsattn", ""),
        packages=_object(folder / ENVIRONMENT).get("versions", {}),
        fingerprint=card.fingerprint,
    )
    options = {"preset": config.preset, **vars(config.model), **vars(config.training)}
    return PlainRun(
        folder=folder,
        cell=Cell.from_json(cell.to_json(), str(folder / RESULTS)),
        options={name: value for name, value in options.items() if name not in NO_OPTIONS},
    )


def labelled(runs: Sequence[PlainRun]) -> list[tuple[Cell, Path]]:
    """Cells whose methods are told apart: by the attention, and by options where runs differ in more.

    Options that differ only from one data set to another, such as epochs, make no other method.
    """
    telling: dict[str, list[str]] = {}
    for attention in {run.cell.method for run in runs}:
        telling[attention] = _telling([run for run in runs if run.cell.method == attention])
    found = []
    for run in runs:
        words = [f"{name}={run.options[name]}" for name in telling[run.cell.method]]
        found.append((replace(run.cell, method=" ".join([run.cell.method, *words])), run.folder))
    return found


def data_name(source: str) -> str:
    """The data set's name from whatever was typed for it: folders, endings and `_TRAIN` are cut off."""
    place = Path(source)
    while place.suffix in ENDINGS:
        place = place.with_suffix("")
    return place.name.removesuffix("_TRAIN") or source


def _telling(runs: Sequence[PlainRun]) -> list[str]:
    """Names of the fewest options, in their order, by which runs on the same data set differ."""
    by_data = defaultdict(list)
    for run in runs:
        by_data[run.cell.data].append(run.options)
    names: list[str] = []
    for name in runs[0].options:
        longer = [*names, name]
        if any(_distinct(options, longer) > _distinct(options, names) for options in by_data.values()):
            names = longer
    return names


def _distinct(options: Sequence[dict[str, Any]], names: Sequence[str]) -> int:
    return len({tuple(str(one[name]) for name in names) for one in options})


def _card(place: Path) -> ModelCard:
    try:
        with safe_open(place, framework="numpy") as file:
            return ModelCard.from_json((file.metadata() or {}).get(CARD_KEY, ""), str(place))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{place}: the weights cannot be read ({error}).") from None


def _object(place: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no such file."""
    try:
        content = json.loads(place.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: not readable as JSON ({error}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{place}: expected an object, found {type(content).__name__}.")
    return content

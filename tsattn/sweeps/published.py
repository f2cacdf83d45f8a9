"""Published results as columns of a comparison, with where they come from and under which protocol."""

from __future__ import annotations

from importlib import resources
from typing import Any, get_args

import yaml

from tsattn.errors import InputError
from tsattn.sweeps.comparison import Method, Score, Standing
from tsattn.sweeps.table import MARKS, Column

FILE = "published.yaml"


def published(metric: str = "accuracy") -> tuple[Column, ...]:
    """What was published of accuracy on the archive's default splits. InputError for another metric."""
    if metric != "accuracy":
        raise InputError(f"--published --metric {metric}: what was published is accuracy. Type one of them.")
    text = (resources.files("tsattn.sweeps") / FILE).read_text("utf-8")
    raw = yaml.safe_load(text)
    return tuple(_column(one, raw["data"]) for one in raw["methods"])


def _column(one: dict[str, Any], data: list[str]) -> Column:
    standing: Standing = one["standing"]
    assert standing in get_args(Standing), standing
    return Column(
        method=Method(
            label=f"{one['name']} (published){MARKS[standing]}",
            kind="published",
            standing=standing,
            protocol=one["protocol"],
            source=one["source"],
            ranked=standing == "honest",
        ),
        scores={name: Score((value / 100,)) for name, value in zip(data, one["accuracy"], strict=True)},
    )

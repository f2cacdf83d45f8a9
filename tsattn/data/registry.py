"""The registry of named data sets: datasets.yaml, from the wheel or from the root of a checkout."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path

import yaml

from tsattn.errors import InputError

_FILE = "datasets.yaml"


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """What is known of a named data set before it is there.

    archive: "UEA" or "UCR". train, test: cases of the archive's split, None where versions differ.
    length: timepoints of the longest case. zenodo: number of the record that holds its files.
    kind: what was recorded. unequal, missing: lengths differ, values are missing.
    embedded: inside the aeon package, so that no network is needed.
    """

    name: str
    archive: str
    channels: int
    length: int
    classes: int
    train: int | None = None
    test: int | None = None
    zenodo: int | None = None
    kind: str = ""
    unequal: bool = False
    missing: bool = False
    embedded: bool = False


@cache
def load_registry() -> dict[str, DatasetEntry]:
    """Every entry by its name, in the order of the file. InputError if the file is damaged or gone."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # safe both, the first ten times as fast
    known = {field.name for field in fields(DatasetEntry)} - {"name"}
    try:
        raw = yaml.load(_text(), Loader=loader)  # noqa: S506
        entries = {name: DatasetEntry(name=name, **facts) for name, facts in raw.items()}
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise InputError(
            f"{_FILE}: the registry of data sets cannot be read ({error}). Each line is "
            f"NAME: {{{', '.join(sorted(known))}}}."
        ) from None
    return entries


def find_entry(name: str) -> DatasetEntry:
    """The entry called `name`, in upper or lower case. InputError with near names if there is none."""
    registry = load_registry()
    by_lower = {known.lower(): entry for known, entry in registry.items()}
    if (entry := by_lower.get(name.lower())) is not None:
        return entry
    near = [by_lower[match].name for match in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    meant = f"Did you mean {', '.join(near)}? " if near else ""
    raise InputError(
        f"{name!r} is neither a file or folder here nor one of the {len(registry)} named data sets. {meant}"
        "Type the name of a set, or a .csv file, a .ts file, "
        "or a folder or zip with NAME_TRAIN.ts and NAME_TEST.ts."
    )


def _text() -> str:
    installed = resources.files("tsattn.data") / _FILE
    if installed.is_file():
        return installed.read_text(encoding="utf-8")
    checkout = Path(__file__).parents[2] / _FILE
    try:
        return checkout.read_text(encoding="utf-8")
    except OSError:
        raise InputError(f"{_FILE}, the registry of data sets, is not there. Install tsattn again.") from None

"""The registry of named data sets: the shipped datasets.yaml, and a user's own that adds to it."""

from __future__ import annotations

import difflib
import logging
from functools import cache
from importlib import resources
from pathlib import Path

from tsattn.data.registry_schema import DatasetEntry, DatasetFiles, NamedFile, parse_registry
from tsattn.errors import InputError

__all__ = ["DatasetEntry", "DatasetFiles", "NamedFile", "find_entry", "load_registry", "own_entry"]

logger = logging.getLogger(__name__)

_FILE = "datasets.yaml"


def load_registry(registry: Path | None = None) -> dict[str, DatasetEntry]:
    """Every entry by its name: the user's own first, then the shipped ones that no own one replaces.

    registry: the user's file; if None, datasets.yaml in the working folder where there is one. InputError if
    `registry` cannot be read; a file that was not asked for by name may be another program's, and is then
    left out with a remark.
    """
    own, fault = _own(registry)
    if fault is not None:
        logger.warning("%s Nothing of this file is used.", fault)
    taken = {name.lower() for name in own}
    return own | {name: entry for name, entry in _shipped().items() if name.lower() not in taken}


def find_entry(name: str, registry: Path | None = None) -> DatasetEntry:
    """The entry called `name`, in upper or lower case. InputError with near names if there is none.

    A user's own entry wins over a shipped one of the same name, and it is said.
    """
    if (found := own_entry(name, registry)) is not None:
        return found
    entries = load_registry(registry)
    if (found := _called(name, entries)) is not None:
        return found
    _, fault = _own(registry)
    if fault is not None:
        raise fault
    by_lower = {known.lower(): known for known in entries}
    near = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    meant = f"Did you mean {', '.join(near)}? " if near else ""
    raise InputError(
        f"{name!r} is neither a file or folder here nor one of the {len(entries)} named data sets. {meant}"
        "Type the name of a set (tsattn data list shows all), or a .csv file, a .ts file, "
        "or a folder or zip with NAME_TRAIN.ts and NAME_TEST.ts."
    )


def own_entry(name: str, registry: Path | None = None) -> DatasetEntry | None:
    """The user's own entry called `name`; None if there is none. See `load_registry` for `registry`."""
    own, _ = _own(registry)
    found = _called(name, own)
    if found is not None and (other := _called(name, _shipped())) is not None:
        logger.warning(
            "%s: %s is taken from here, not as the %s set of that name.", found.where, name, other.archive
        )
    return found


def _called(name: str, entries: dict[str, DatasetEntry]) -> DatasetEntry | None:
    if name in entries:
        return entries[name]
    return next((entry for known, entry in entries.items() if known.lower() == name.lower()), None)


def _own(registry: Path | None) -> tuple[dict[str, DatasetEntry], InputError | None]:
    """The user's entries, and why there are none of a file that was not asked for by name."""
    if registry is not None:
        return parse_registry(_read(registry), registry.absolute(), str(registry)), None
    here = Path(_FILE)
    if not here.is_file() or _is_shipped(here):
        return {}, None
    try:
        return parse_registry(_read(here), here.absolute(), _FILE), None
    except InputError as fault:
        return {}, fault


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such registry. Type the path of a YAML file after --registry."
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: this is not UTF-8 text. Save the registry as UTF-8.") from None


def _is_shipped(path: Path) -> bool:
    """True for the registry of this very program, when the working folder is its checkout."""
    shipped = _shipped_path()
    return path.samefile(shipped) or path.read_bytes() == shipped.read_bytes()


@cache
def _shipped() -> dict[str, DatasetEntry]:
    path = _shipped_path()
    return parse_registry(path.read_text(encoding="utf-8"), path, _FILE)


@cache
def _shipped_path() -> Path:
    """In the wheel beside this file, in a checkout at its root. InputError if it is gone."""
    installed = resources.files("tsattn.data") / _FILE
    for place in (Path(str(installed)), Path(__file__).parents[2] / _FILE):
        if place.is_file():
            return place
    raise InputError(f"{_FILE}, the registry of data sets, is not there. Install tsattn again.")

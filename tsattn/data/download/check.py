"""A cached data set checked again: the word of the source, the checksums, the registry's facts."""

from __future__ import annotations

from pathlib import Path

from tsattn.data.download.contents import fault_of
from tsattn.data.download.store import cached, set_folder
from tsattn.data.registry import DatasetEntry, load_registry


def check_cached(name: str, registry: Path | None = None) -> str | None:
    """What is wrong with the cached set `name` and what to type; None if nothing is.

    registry: the user's registry; datasets.yaml in the working folder if None.
    """
    entry = load_registry(registry).get(name)
    again = f"Type tsattn data download {name} to fetch it."
    if entry is not None and entry.embedded:
        again = f"It is embedded in aeon and not needed: remove {set_folder(name)}."
    found = cached(name)
    if found is None:
        folder = set_folder(name)
        missing = [
            f"{name}_{split}.ts"
            for split in ("TRAIN", "TEST")
            if not (folder / f"{name}_{split}.ts").is_file()
        ]
        return f"{name}: {' and '.join(missing)} not in {folder}. {again}"
    wrong = found.verify()
    if wrong is None:
        wrong = fault_of(entry or DatasetEntry(name=name, where=""), found.train, found.test)
    return None if wrong is None else f"{name}: {wrong}. {again}"

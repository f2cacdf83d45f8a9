"""What is typed as DATA becomes the rows of a sweep: names, archives, collections, files."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from tsattn.data.columns import TableOptions
from tsattn.data.folders import is_glob
from tsattn.data.named import looks_like_a_path
from tsattn.data.registry import find_entry, load_registry
from tsattn.data.selection import of_archive
from tsattn.data.sources import load_split
from tsattn.errors import InputError
from tsattn.sweeps.request import Size, Source

COLLECTIONS = {
    # The ten that papers on transformers for series report, since Zerveas et al. 2021.
    "uea10": (
        "EthanolConcentration",
        "FaceDetection",
        "Handwriting",
        "Heartbeat",
        "JapaneseVowels",
        "PEMS-SF",
        "SelfRegulationSCP1",
        "SelfRegulationSCP2",
        "SpokenArabicDigits",
        "UWaveGestureLibrary",
    ),
}
UNKNOWN = Size(train=1000, test=1000, length=100)
"""For sets of the archives of which the registry knows no sizes."""


def find_sources(
    typed: Sequence[str],
    archives: Sequence[str],
    collections: Sequence[str],
    table: TableOptions,
    registry: Path | None,
    *,
    judged: bool = True,
) -> list[Source]:
    """Every set that is named one way or another, once each. InputError for what is none, or has no TEST.

    judged: on TEST; else TEST need not be there and is not looked at.
    """
    words = list(typed)
    if archives:
        entries = load_registry(registry)
        words += [entry.name for word in archives for entry in of_archive(word, entries)]
    words += [name for word in collections for name in _collection(word)]
    if not words:
        raise InputError("On which data? Type names or files, or --archive uea, or --collection uea10.")
    found: dict[str, Source] = {}
    for word in dict.fromkeys(words):
        source = _source(word, table, registry, judged=judged)
        other = found.setdefault(source.name, source)
        if other.source != source.source:
            raise InputError(
                f"{source.source}: called {source.name}, as {other.source} is. Name one file differently."
            )
    return list(found.values())


def _collection(word: str) -> tuple[str, ...]:
    if (found := COLLECTIONS.get(word.lower())) is not None:
        return found
    near = difflib.get_close_matches(word.lower(), COLLECTIONS, n=1)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    raise InputError(
        f"--collection {word}: there is no such one.{meant} There are: {', '.join(COLLECTIONS)}."
    )


def _source(word: str, table: TableOptions, registry: Path | None, *, judged: bool) -> Source:
    if not (looks_like_a_path(word) or is_glob(word) or Path(word).exists()):
        entry = find_entry(word, registry)
        if entry.files is None:
            size = Size(
                train=entry.train or UNKNOWN.train,
                test=(entry.test or UNKNOWN.test) if judged else 0,
                length=entry.length or UNKNOWN.length,
            )
            return Source(name=entry.name, source=entry.name, size=size)
    train = load_split(word, "train", table, registry)
    if judged and train.undivided:
        raise InputError(
            f"{word}: one file of cases, and a sweep judges on cases that were not trained on. Type "
            "NAME_TRAIN with NAME_TEST beside it, or a set of your own registry with train and test; "
            "--protocol kfold:5 judges on parts of TRAIN."
        )
    test_cases = 0
    if judged:
        roles = TableOptions.of(train.table) if train.table else table
        test_cases = len(load_split(word, "test", roles, registry).collection)
    length = int(train.collection.lengths.max(initial=1))
    return Source(
        name=train.name,
        source=word,
        size=Size(train=len(train.collection), test=test_cases, length=length),
    )

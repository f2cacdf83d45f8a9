"""What a table may be: every sensible reading of its columns, and the command that trains with it.

A reading says which columns are id, time and label and in which layout. Where the file leaves more than
one open, all are given, the likeliest first; each has been tried on the whole file.
"""

from __future__ import annotations

import itertools
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from tsattn.data.candidates import WHOLE, candidates
from tsattn.data.columns import TableOptions, TableRoles, resolve_roles
from tsattn.data.parts import hushed
from tsattn.data.rolenames import LABEL_NAMES
from tsattn.data.rows import TableHead
from tsattn.data.sources import LoadedSplit, load_file
from tsattn.errors import InputError

MOST = 6
"""Readings that are given; more would be no help."""
_FLAGS = ("layout", "id", "time", "label", "group")


@dataclass(frozen=True, kw_only=True)
class TriedReading:
    """One way to understand a table, tried on the whole of it.

    options: what has to be typed for it, as little as possible. remarks: what was said while reading.
    """

    options: TableOptions
    roles: TableRoles
    loaded: LoadedSplit
    remarks: tuple[str, ...]


def readings(head: TableHead, options: TableOptions) -> list[TriedReading]:
    """The readings of the table that agree with what was typed; at least one.

    InputError, that of the reading with nothing but what was typed, if none can be read.
    """
    found: list[TriedReading] = []
    for columns in candidates(head, options):
        candidate = replace(columns, group=options.group)
        try:
            reading = _tried(head, candidate, [reading.roles for reading in found])
        except InputError:
            continue
        if reading is not None and _sensible(reading, options):
            found.append(reading)
        if len(found) == MOST:
            break
    if not found:
        only = _tried(head, options, [])
        assert only is not None
        return [only]
    return _without_pointless(found, options)


def train_command(source: str, options: TableOptions, registry: Path | None = None) -> str:
    """`tsattn train SOURCE …` as a shell takes it."""
    words = ["tsattn", "train", f"./{source}" if source.startswith("-") else source]
    for flag in _FLAGS:
        if (value := getattr(options, flag)) is not None:
            words += [f"--{flag}={value}"] if value.startswith("-") else [f"--{flag}", value]
    if registry is not None:
        words += ["--registry", str(registry)]
    return shlex.join(words)


def _tried(head: TableHead, options: TableOptions, known: list[TableRoles]) -> TriedReading | None:
    """The table read with `options`; None if its roles are among `known`."""
    with hushed() as remarks:
        roles = resolve_roles(head, options)
        if roles in known:
            return None
        remarks.clear()  # reading resolves the roles once more
        loaded = load_file(head.path, options)
    return TriedReading(
        options=_shortest(head, roles), roles=roles, loaded=loaded, remarks=tuple(dict.fromkeys(remarks))
    )


def _shortest(head: TableHead, roles: TableRoles) -> TableOptions:
    """The fewest options with which the table is read with these roles."""
    said = roles.as_dict()
    for count in range(len(said)):
        for flags in itertools.combinations([flag for flag in _FLAGS if flag in said], count):
            options = TableOptions(**{flag: said[flag] for flag in flags})
            try:
                with hushed():
                    if resolve_roles(head, options) == roles:
                        return options
            except InputError:
                continue
    return TableOptions(**said)


def _sensible(reading: TriedReading, options: TableOptions) -> bool:
    """Whether there are two cases, and a label that nobody named is one: two classes, fewer than cases."""
    cases = reading.loaded.collection
    if len(cases) < 2 and options.layout is None:
        return False
    return cases.labels is None or _is_named(reading, options) or 1 < len(set(cases.labels)) < len(cases)


def _is_named(reading: TriedReading, options: TableOptions) -> bool:
    """Whether the user or the header says which column is the label."""
    label = reading.roles.label
    return label is not None and (label == options.label or label.lower() in LABEL_NAMES)


def _without_pointless(found: list[TriedReading], options: TableOptions) -> list[TriedReading]:
    """Without readings that have no label where another has one.

    Unless that label is a whole number that nobody named: it may also be a channel.
    """
    labelled = [reading for reading in found if reading.roles.label is not None]
    if not labelled:
        return found
    first = labelled[0]
    if _is_named(first, options) or not all(map(WHOLE.fullmatch, first.loaded.collection.classes)):
        return labelled

    def alike(reading: TriedReading) -> bool:
        one, other = reading.roles, first.roles
        return (one.layout, one.id, one.time) == (other.layout, other.id, other.time)

    return [*labelled, *(reading for reading in found if reading.roles.label is None and alike(reading))]

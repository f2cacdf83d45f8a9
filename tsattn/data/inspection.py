"""What a file or data set is: its readings, the facts of the first, and what speaks against it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from tsattn.data.columnless import say_unused_of_files
from tsattn.data.columns import TableOptions
from tsattn.data.describe import Facts, Sampling, describe, shared_cases
from tsattn.data.formats import is_read, is_series
from tsattn.data.heads import open_head
from tsattn.data.parts import Part, hushed, is_file, load_parts, part_of_file, sibling_test
from tsattn.data.readings import readings, train_command
from tsattn.data.sources import LoadedSplit, load_split
from tsattn.data.timecolumn import read_sampling
from tsattn.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to understand the source.

    roles: layout and columns of a table, None if the source is none. command: what to type to train with
    it, None where it cannot be trained on, and `obstacle` says why. sampling: of the time column, if there
    is one. remarks: what was said while reading.
    """

    roles: dict[str, str] | None
    facts: Facts
    command: str | None
    obstacle: str | None
    sampling: Sampling | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """A source and what it is.

    part, loaded: the cases that were looked at, of the first reading. readings: at least one, the likeliest
    first; several if the source leaves more than one open. test: facts of the test split beside, None if
    there is none. shared: (id in train, id in test) of cases in both, None if there is only one split.
    """

    source: str
    part: Part
    loaded: LoadedSplit
    readings: tuple[Reading, ...]
    test: Facts | None = None
    shared: tuple[tuple[str, str], ...] | None = None


def inspect(source: str, options: TableOptions, registry: Path | None = None) -> Inspection:
    """Looks at SOURCE; registry as for `load_split`. InputError if it cannot be read in any way."""
    path = Path(source).expanduser()
    if not (is_file(source, registry) and is_read(path)) or is_series(path):
        return _inspect_whole(source, options, registry)
    say_unused_of_files(options, path)
    part = part_of_file(path)
    head = open_head(path)
    found = readings(head, options)
    read = tuple(
        Reading(
            roles=each.roles.as_dict(),
            facts=(facts := describe(each.loaded.collection)),
            command=None if (why := _obstacle(facts, part)) else train_command(source, each.options),
            obstacle=why,
            sampling=read_sampling(head, each.roles),
            remarks=each.remarks,
        )
        for each in found
    )
    inspection = Inspection(source=source, part=part, loaded=found[0].loaded, readings=read)
    # The test table is read as training reads it, so that its columns are understood as TRAIN's.
    return _with_test_beside(inspection, path, found[0].options)


def shared_between(train: Inspection, test: Inspection) -> tuple[tuple[str, str], ...]:
    """Cases of one inspected source in another."""
    return shared_cases(train.loaded.collection, test.loaded.collection)


def _inspect_whole(source: str, options: TableOptions, registry: Path | None) -> Inspection:
    """What leaves nothing to choose: series with their labels, and sets whose columns are said."""
    with hushed() as remarks:
        parts = load_parts(source, options, registry)
    part: Part = "train" if "train" in parts else next(iter(parts))
    facts = describe(parts[part].collection)
    why = _obstacle(facts, part)
    reading = Reading(
        roles={role: name for role, name in parts[part].table.items() if role != "columns"} or None,
        facts=facts,
        # Where there are no columns, what was typed of them is not used, and that was remarked.
        command=None if why else _command(source, options if parts[part].table else TableOptions(), registry),
        obstacle=why,
        remarks=tuple(dict.fromkeys(remarks)),
    )
    inspection = Inspection(source=source, part=part, loaded=parts[part], readings=(reading,))
    if part == "train" and "test" in parts:
        return _with_test(inspection, parts["test"])
    if not is_file(source, registry):
        return inspection
    return _with_test_beside(inspection, Path(source).expanduser(), options)


def _command(source: str, options: TableOptions, registry: Path | None) -> str:
    """`train_command`, with what says the labels of files."""
    command = train_command(source, options, registry)
    said = {"--labels": options.labels, "--label-pattern": options.label_pattern}
    for flag, value in said.items():
        if value is not None:
            words = [f"{flag}={value}"] if value.startswith("-") else [flag, value]
            command = f"{command} {shlex.join(words)}"
    return command


def _with_test_beside(inspection: Inspection, path: Path, options: TableOptions) -> Inspection:
    if sibling_test(path) is None or inspection.loaded.collection.labels is None:
        return inspection
    try:
        with hushed():
            test = load_split(str(path), "test", options)
    except InputError as error:
        return _remarked(inspection, f"the test split cannot be used: {error}")
    return _with_test(inspection, test)


def _remarked(inspection: Inspection, remark: str) -> Inspection:
    first, *others = inspection.readings
    return replace(inspection, readings=(replace(first, remarks=(*first.remarks, remark)), *others))


def _with_test(inspection: Inspection, test: LoadedSplit) -> Inspection:
    train = inspection.loaded.collection
    shared = shared_cases(train, test.collection)
    if torn := sorted(set(train.groups or ()) & set(test.collection.groups or ())):
        more = f" and {len(torn) - 1} more" if len(torn) > 1 else ""
        inspection = _remarked(
            inspection,
            f"in both train and test: group {torn[0]!r}{more}. Cases of one group are alike, so the test "
            "split is easier than new groups would be.",
        )
    return replace(inspection, test=describe(test.collection), shared=shared)


def _obstacle(facts: Facts, part: Part) -> str | None:
    """Why the cases cannot be trained on; None if they can."""
    if facts.classes is None:
        return "no label, so there is no class to learn: for tsattn predict only"
    if sum(count > 0 for count in facts.classes.values()) < 2:
        return "all cases have the same label: training needs at least two classes"
    if part == "test":
        return "the test split by its name: train on its TRAIN file, and tsattn eval RUN judges on this one"
    return None

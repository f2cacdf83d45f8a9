"""Cases from one file format into another, proved by reading the new file back before it appears.

    .ts              values, labels and classes; ids, groups and names of channels have no place there
    .csv, .parquet   values, labels, ids, groups and names of channels; the order of classes is that of
                     sorting
    .npz             everything

What a format has no place for is said in a remark; what does not come back otherwise is an error, and no
file appears.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tsattn.data.atomic import whole_file
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.parts import hushed
from tsattn.data.sources import load_file
from tsattn.data.tables import sorted_classes
from tsattn.data.write_npz import write_npz
from tsattn.data.write_tables import (
    GROUP,
    write_long_csv,
    write_long_parquet,
    write_wide_csv,
    write_wide_parquet,
)
from tsattn.data.write_ts import write_ts
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

Layout = Literal["long", "wide"]
_TABLES: Mapping[tuple[str, Layout], Callable[[Collection, Path], None]] = {
    (".csv", "wide"): write_wide_csv,
    (".csv", "long"): write_long_csv,
    (".parquet", "wide"): write_wide_parquet,
    (".parquet", "long"): write_long_parquet,
}
FORMATS = (".ts", ".csv", ".parquet", ".npz")
"""Endings of the files that can be written."""


def write_file(collection: Collection, path: Path, *, layout: Layout | None, name: str) -> None:
    """Writes the cases in the format that the ending of `path` says, if they come back the same.

    layout: of a table; if None, wide for one channel and long for several. name: of the data set.
    InputError for another ending, a layout of what is no table, whatever the format cannot hold, and
    where the place cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        ending = f"the ending {path.suffix!r}" if path.suffix else "a file without an ending"
        raise InputError(f"{path}: {ending} cannot be written. Type one of {', '.join(FORMATS)}.")
    table = (suffix, "wide") in _TABLES
    if layout is not None and not table:
        raise InputError(f"{path}: a {suffix} file has no layout. Leave out --layout {layout}.")
    layout = layout or ("wide" if len(collection.channels) == 1 else "long")
    if table:
        _refuse_for_table(collection, path, layout)
    with whole_file(path) as partial:
        try:
            with hushed() as said:
                if table:
                    _TABLES[suffix, layout](collection, partial)
                elif suffix == ".ts":
                    write_ts(collection, partial, name)
                else:
                    write_npz(collection, partial)
        except InputError as error:
            raise InputError(str(error).replace(str(partial), str(path))) from None
        group = None if collection.groups is None else GROUP
        options = TableOptions(layout=layout, group=group) if table else TableOptions()
        _prove(collection, partial, path, options)
    for remark in said:
        logger.warning("%s", remark.replace(str(partial), str(path)))
    if collection.groups is not None:
        _say_of_groups(path)
    if table and collection.labels is not None:
        _say_of_classes(collection, path)


def _prove(collection: Collection, partial: Path, path: Path, options: TableOptions) -> None:
    """Reads the file back. InputError, which says where it differs, if it is not the same."""
    try:
        with hushed():
            back = load_file(partial, options).collection
    except InputError as error:
        fault = str(error).replace(str(partial), "the new file")
    else:
        difference = _difference(collection, back, whole=partial.suffix.lower() != ".ts")
        if difference is None:
            return
        fault = f"{difference} came back different"
    raise InputError(
        f"{path}: not written, because reading it would not give the same cases: {fault} "
        f"Type another ending, .npz holds everything{', or another --layout' if options.layout else ''}."
    )


def _difference(one: Collection, other: Collection, *, whole: bool) -> str | None:
    """What differs, in words; None if nothing that the format has a place for."""
    if len(one) != len(other):
        return f"the number of cases, {len(one)} and {len(other)},"
    if len(one.channels) != len(other.channels):
        return f"the number of channels, {len(one.channels)} and {len(other.channels)},"
    if one.labels != other.labels:
        return _first_difference("label", one.labels or (), other.labels or ())
    if whole and one.ids != other.ids:
        return _first_difference("id", one.ids, other.ids)
    if whole and one.groups != other.groups:
        return _first_difference("group", one.groups or (), other.groups or ())
    if whole and one.channels != other.channels:
        return _first_difference("channel name", one.channels, other.channels)
    if not _same_values(one.values, other.values):
        return "a value"
    return None


def _first_difference(what: str, one: tuple[str, ...], other: tuple[str, ...]) -> str:
    if len(one) != len(other):
        return f"the {what}s"
    first, second = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
    return f"the {what} {first!r} as {second!r}"


def _same_values(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Whether values and missing values are the same, whatever the padding."""
    shared = min(one.shape[2], other.shape[2])
    padding = (one[:, :, shared:], other[:, :, shared:])
    return np.array_equal(one[:, :, :shared], other[:, :, :shared], equal_nan=True) and all(
        bool(np.isnan(rest).all()) for rest in padding
    )


def _refuse_for_table(collection: Collection, path: Path, layout: Layout) -> None:
    if collection.labels is not None and "" in collection.labels:
        case = collection.ids[collection.labels.index("")]
        raise InputError(
            f"{path}: the label of case {case!r} is empty, which a table cannot hold. Write .npz."
        )
    if layout == "long" and "" in collection.ids:
        raise InputError(
            f"{path}: case {collection.ids.index('')} has an empty id, which a long table cannot hold. "
            "Type --layout wide, or write .npz."
        )


def _say_of_groups(path: Path) -> None:
    if path.suffix.lower() == ".ts":
        logger.warning("%s: a .ts file has no place for the groups of the cases.", path)
    elif path.suffix.lower() != ".npz":
        logger.warning("%s: to keep groups together, train on it with --group %s.", path, GROUP)


def _say_of_classes(collection: Collection, path: Path) -> None:
    assert collection.labels is not None
    if unused := set(collection.classes) - set(collection.labels):
        logger.warning(
            "%s: a table has no place for classes without a case (%s); .ts and .npz have.",
            path,
            ", ".join(sorted(unused)),
        )
    elif sorted_classes(collection.labels) != collection.classes:
        logger.warning(
            "%s: a table has no place for the order of the classes; read from it, they are in order of "
            "number or text.",
            path,
        )

"""A Collection as a .ts file; parse_ts gives the same values, labels and classes back.

Values are written in the fewest digits that give the same float32, a missing one as '?'. The format has
no place for ids and names of channels, nor a spelling for every label; the labels it cannot hold are
refused. A case in which nothing is observed is one '?' in every channel.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tsattn.data.arrowcalls import cast
from tsattn.data.atomic import whole_file
from tsattn.data.collection import Collection
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

_BREAKS_A_LABEL = re.compile(r"[ \t\n\r\v\f:\0]")


def write_ts(collection: Collection, path: Path, name: str | None = None) -> None:
    """Writes the header and one line a case; `name` of the data set, else that of the file.

    Ids and names of channels that differ from what parse_ts gives are lost, which is said in a remark.
    InputError for a label with a blank or ':', or an empty one, for an infinite value, and if the place
    cannot be written.
    """
    _refuse_labels(collection, path)
    if np.isinf(collection.values).any():
        raise InputError(f"{path}: the cases hold infinite values, which a .ts file cannot. Remove them.")
    _say_what_is_lost(collection, path)
    lengths = np.maximum(collection.lengths, 1)
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in _header(collection, lengths, name or path.stem))
        for i, length in enumerate(lengths):
            label = "" if collection.labels is None else ":" + collection.labels[i]
            file.write(_series(collection.values[i, :, :length]) + label + "\n")


def _header(collection: Collection, lengths: NDArray[np.int64], name: str) -> Iterator[str]:
    count, longest = len(collection.channels), int(lengths.max())
    equal = bool((lengths == longest).all())
    missing = int(np.isnan(collection.values).sum()) > count * int(
        (collection.values.shape[2] - lengths).sum()
    )
    yield "@problemName " + "_".join(name.split())
    yield "@timeStamps false"
    yield f"@missing {str(missing).lower()}"
    yield f"@univariate {str(count == 1).lower()}"
    if count > 1:
        yield f"@dimensions {count}"
    yield f"@equalLength {str(equal).lower()}"
    if equal:
        yield f"@seriesLength {longest}"
    yield "@classLabel " + ("false" if collection.labels is None else " ".join(["true", *collection.classes]))
    yield "@data"


def _series(case: NDArray[np.float32]) -> str:
    """The channels of a case, (channels, length), joined by ':' and their values by ','."""
    cells = cast(pa.array(case.ravel()), pa.string()).to_pylist()
    length = case.shape[1]
    rows = (",".join(cells[start : start + length]) for start in range(0, len(cells), length))
    return ":".join(rows).replace("nan", "?")


def _refuse_labels(collection: Collection, path: Path) -> None:
    for label in collection.classes:
        if not label or _BREAKS_A_LABEL.search(label):
            raise InputError(
                f"{path}: the label {label!r} has no spelling in a .ts file, where labels are words without "
                "blanks and ':'. Write .csv, .parquet or .npz, which hold any label."
            )


def _say_what_is_lost(collection: Collection, path: Path) -> None:
    lost = []
    if collection.ids != tuple(map(str, range(len(collection)))):
        lost.append("ids")
    if collection.channels != tuple(f"dim_{i}" for i in range(len(collection.channels))):
        lost.append("names of channels")
    if lost:
        logger.warning(
            "%s: a .ts file has no place for %s; .csv, .parquet and .npz have.", path, " and ".join(lost)
        )

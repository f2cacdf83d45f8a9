"""What is to be compared: cells of sweeps and judged run folders, found below folders."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsattn.errors import InputError
from tsattn.sweeps.cell import CELL, CELLS, Cell, read_cell
from tsattn.sweeps.plain_runs import PlainRun, is_run, labelled, read_plain_run

SWEEP = "sweep.yaml"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A cell and the folder where it lies, in which a transformer's history.csv is."""

    cell: Cell
    folder: Path


def gather(folders: Sequence[Path]) -> tuple[Placed, ...]:
    """Every cell below `folders`, done and failed, in the order of names.

    A folder of a sweep counts by its cell.json alone; another run folder if `tsattn eval` has noted its
    test figures there. InputError where a folder is not there, nothing is found, a file is spoilt, or two
    cells are the same data, method, seed and protocol.
    """
    places: dict[Path, tuple[Path, bool]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InputError(
                f"{folder}: no such folder. Type one that holds a sweep of `tsattn bench` or run folders."
            )
        places |= {place.resolve(): (place, is_cell) for place, is_cell in _walk(folder)}
    cells = [
        Placed(cell=cell, folder=place)
        for place, is_cell in places.values()
        if is_cell and (cell := read_cell(place)) is not None
    ]
    runs = _runs([place for place, is_cell in places.values() if not is_cell])
    found = [*cells, *(Placed(cell=cell, folder=place) for cell, place in labelled(runs))]
    if not found:
        raise InputError(
            f"{', '.join(map(str, folders))}: neither cells of a sweep nor run folders with test figures. "
            "`tsattn bench DATA -o DIR` makes a sweep; `tsattn eval RUN` notes the figures of a run."
        )
    _check_single(found)
    return tuple(found)


def _walk(top: Path) -> Iterator[tuple[Path, bool]]:
    """(folder, whether it is a cell of a sweep) of all that may be compared."""
    for place, inner, files in os.walk(top):
        inner.sort()
        folder = Path(place)
        if CELL in files or is_run(files):
            inner.clear()
            if CELL in files or not _in_sweep(folder):
                yield folder, CELL in files


def _in_sweep(folder: Path) -> bool:
    """Whether a sweep works on it: somewhere below DIR/cells, beside DIR/sweep.yaml."""
    above = folder.absolute().parents
    return any(place.name == CELLS and (place.parent / SWEEP).is_file() for place in above)


def _runs(folders: Sequence[Path]) -> list[PlainRun]:
    runs = {folder: read_plain_run(folder) for folder in folders}
    missing = [folder for folder, run in runs.items() if run is None]
    if missing:
        _log.warning(
            "%d run folders are left out, their test figures are not noted; `tsattn eval %s` does that.",
            len(missing),
            missing[0],
        )
    return [run for run in runs.values() if run is not None]


def _check_single(found: Sequence[Placed]) -> None:
    seen: dict[tuple[str, str, int, str], Path] = {}
    for one in found:
        cell = one.cell
        key = (cell.data, cell.method, cell.seed, cell.protocol)
        if key in seen:
            raise InputError(
                f"{one.folder} and {seen[key]} are the same cell: {cell.data}, {cell.method}, seed "
                f"{cell.seed}. Name only one of the folders that hold them."
            )
        seen[key] = one.folder

"""Cell: what one method came to on one data set with one seed, as a sweep keeps it.

DIR/sweep.yaml                       what was asked
DIR/cells/DATA/METHOD/seedK/         of a transformer also its run folder's files
    cell.json                        written last: the cell is finished if and only if it is there
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tsattn.data.atomic import whole_file
from tsattn.errors import InputError

FORMAT = 1
CELLS, CELL = "cells", "cell.json"
METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "calibration_error")
"""On TEST, or of kfold on parts of TRAIN; log loss is in nats."""
OF_PROBABILITIES = ("log_loss", "calibration_error")
"""They are None where there are no probabilities."""
LATER = ("calibration_error",)
"""What cells of earlier versions do not have; there too it is None."""

Kind = Literal["transformer", "baseline"]
Status = Literal["done", "failed"]
# By name of the field: the types that JSON may hold there.
_TYPES: dict[str, tuple[type, ...]] = {
    "data": (str,),
    "method": (str,),
    "kind": (str,),
    "seed": (int,),
    "grid": (dict,),
    "status": (str,),
    "message": (str,),
    "protocol": (str,),
    "folds": (int,),
    "metrics": (dict,),
    **dict.fromkeys(("train_cases", "test_cases", "length", "channels", "classes", "parameters"), (int,)),
    **dict.fromkeys(("train_seconds", "inference_cases_per_second"), (int, float)),
    **dict.fromkeys(("peak_memory_bytes", "threads"), (int,)),
    "tsattn": (str,),
    "packages": (dict,),
    "fingerprint": (str,),
    "finished": (str,),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A finished cell; what a failure kept from being known is None, or empty where it is words.

    data: name of the set. method: the label as shown, e.g. `bn+sh`, `softmax width=64`, `rocket`.
    grid: values of --grid by option. message: of a failure, else ''. protocol: how the model was chosen;
    begins with `best-on-test` where TEST chose it. folds: parts of TRAIN that were held out in turn and
    judged together, so that the metrics say nothing of TEST; 0 where they are of TEST. metrics: METRICS.
    length: the longest training case, in timepoints. parameters: None for a baseline.
    train_seconds: wall clock. peak_memory_bytes: the largest resident set of the cell's process.
    packages: versions by name. fingerprint: of the training cases. finished: ISO time, UTC.
    """

    data: str
    method: str
    kind: Kind
    seed: int
    status: Status
    finished: str
    grid: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    protocol: str = ""
    folds: int = 0
    metrics: dict[str, float | None] = field(default_factory=dict)
    train_cases: int | None = None
    test_cases: int | None = None
    length: int | None = None
    channels: int | None = None
    classes: int | None = None
    parameters: int | None = None
    train_seconds: float | None = None
    inference_cases_per_second: float | None = None
    peak_memory_bytes: int | None = None
    threads: int | None = None
    tsattn: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    format: int = FORMAT

    def to_json(self) -> str:
        """One JSON object; keys are the field names."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> Cell:
        """Reads `to_json`'s text. InputError naming `where` for anything else."""
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(where, str(error)) from None
        if not isinstance(raw, dict):
            raise _unreadable(where, f"expected an object, found {type(raw).__name__}")
        if raw.get("format") != FORMAT:
            raise InputError(
                f"{where}: a cell of format {raw.get('format')!r}, this tsattn reads format {FORMAT}. "
                "Read it with the version that wrote it, or delete its folder and type the sweep again."
            )
        _check(raw, where)
        return cls(**raw)


def cell_folder(folder: Path, data: str, method: str, seed: int) -> Path:
    """Where a sweep keeps a cell: DIR/cells/DATA/METHOD/seedK, spelt so that any file system takes it."""
    return folder / CELLS / file_name(data) / file_name(method) / f"seed{seed}"


def file_name(words: str) -> str:
    """`softmax width=64` becomes softmax@width=64; what no file system takes becomes '-'."""
    return re.sub(r"[^\w.,+=@-]", "-", words.replace(" ", "@"))


def write_cell(folder: Path, cell: Cell) -> None:
    """Puts cell.json into the cell's folder, whole. InputError where it cannot be written."""
    with whole_file(folder / CELL) as draft:
        draft.write_text(cell.to_json(), "utf-8")


def read_cell(folder: Path) -> Cell | None:
    """The cell of a folder, None while it is not finished. InputError for what is no cell."""
    place = folder / CELL
    try:
        return Cell.from_json(place.read_text("utf-8"), str(place))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(str(place), str(error)) from None


def read_cells(folder: Path) -> Iterator[Cell]:
    """Every finished cell of the sweep in `folder`, in the order of names. InputError as `read_cell`."""
    for place in sorted((folder / CELLS).glob(f"*/*/*/{CELL}")):
        if (cell := read_cell(place.parent)) is not None:
            yield cell


def _check(raw: Mapping[str, Any], where: str) -> None:
    """InputError where a field is missing, unknown or of another type."""
    fields = {one.name: one for one in dataclasses.fields(Cell)}
    needed = [name for name, one in fields.items() if one.default is one.default_factory]  # both MISSING
    wrong = [f"{name} is missing" for name in needed if name not in raw]
    wrong += [f"{name} is unknown" for name in raw if name not in fields]
    for name, types in _TYPES.items():
        value = raw.get(name, fields[name].default)
        may_be_none = fields[name].default is None
        if name not in raw or (value is None and may_be_none):
            continue
        if not isinstance(value, types) or isinstance(value, bool) or _is_no_amount(value):
            wrong.append(f"{name} is {value!r}")
    if not wrong:
        wrong = [
            f"{name} is {raw[name]!r}"
            for name, known in (("kind", ("transformer", "baseline")), ("status", ("done", "failed")))
            if raw[name] not in known
        ]
        wrong += [
            f"metrics has {name} {value!r}"
            for name, value in raw.get("metrics", {}).items()
            if name not in METRICS or not _is_metric(name, value)
        ]
    if not wrong and raw["status"] == "done":
        wrong = [f"metrics lacks {name}" for name in METRICS if name not in (*LATER, *raw.get("metrics", {}))]
    if wrong:
        raise _unreadable(where, "; ".join(wrong))


def _is_no_amount(value: object) -> bool:
    """Of a number: below 0, or none that can be counted with."""
    return isinstance(value, int | float) and not 0 <= value < math.inf


def _is_metric(name: str, value: object) -> bool:
    """A share, or nats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value is None and name in OF_PROBABILITIES
    return 0 <= value < math.inf if name == "log_loss" else 0 <= value <= 1


def _unreadable(where: str, why: str) -> InputError:
    return InputError(f"{where}: not a finished cell ({why}). Delete its folder and type the sweep again.")

"""Reader of numpy files: X and, where known, y.

X is (cases, channels, timepoints), or (cases, timepoints) for one channel; NaN is missing. A .npz may
hold one split as X and y, or two as X_train, y_train, X_test and y_test, and beside them ids, groups,
channels and classes as text (write_npz.py). Beside NAME_X.npy lies NAME_y.npy.
Arrays of Python objects are refused, because loading them would run what the file says.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import numpy as np

from tsattn.data.archives import ZIP_DAMAGE
from tsattn.data.classes import sorted_classes
from tsattn.data.collection import Collection
from tsattn.errors import InputError

_VALUES_NAME = re.compile(r"(?<![A-Za-z0-9])([Xx])(?![A-Za-z0-9])")
_FORM = "X is (cases, channels, timepoints), or (cases, timepoints) for one channel"


def parse_npz(data: bytes, where: str, split: str | None) -> Collection:
    """The cases of a .npz file given as bytes; ids "0", "1", …, channels "dim_0", ….

    split: "train" or "test", which of two to take; without one, the test split if the file has no X.
    InputError for a file that is damaged, names no such arrays, or holds others than numbers.
    """
    _check_beginning(data, ".npz", where)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            names = {name.lower(): name for name in file.files}
            suffix = _suffix(names, where, split)
            arrays = {
                name: file[names[name + end]]
                for name, end in (
                    ("x", suffix),
                    ("y", suffix),
                    ("ids", suffix),
                    ("groups", suffix),
                    ("channels", ""),
                    ("classes", ""),
                )
                if name + end in names
            }
    except (*ZIP_DAMAGE, OSError, MemoryError, RuntimeError, AttributeError) as error:
        raise _unreadable(where, ".npz", error) from None
    return _collection(arrays, where)


def has_splits(data: bytes) -> bool:
    """Whether a .npz file holds X_train and X_test; False for what is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return {"x_train.npy", "x_test.npy"} <= {name.lower() for name in file.namelist()}
    except (*ZIP_DAMAGE, NotImplementedError):
        return False


def parse_npy(data: bytes, labels: bytes | None, where: str) -> Collection:
    """The cases of NAME_X.npy and, as far as there is one, NAME_y.npy, given as bytes."""
    arrays = {}
    for name, content in (("x", data), ("y", labels)):
        if content is not None:
            _check_beginning(content, ".npy", where)
            try:
                arrays[name] = np.load(io.BytesIO(content), allow_pickle=False)
            except (ValueError, OSError, EOFError, MemoryError) as error:
                raise _unreadable(where, ".npy", error) from None
    return _collection(arrays, where)


def labels_name(name: str) -> str | None:
    """What the file with the labels is called beside the file `name` of values; None if `name` has no X."""
    matches = list(_VALUES_NAME.finditer(name.replace("_", " ")))
    if not matches:
        return None
    at = matches[-1].start()
    return name[:at] + "y" + name[at + 1 :]


def _suffix(names: dict[str, str], where: str, split: str | None) -> str:
    if "x" in names:
        return ""
    for suffix in ("_train", "_test") if split == "train" else ("_test", "_train"):
        if f"x{suffix}" in names:
            if split is not None and suffix != f"_{split}":
                raise InputError(f"{where}: no X{'_' + split} in it, only {', '.join(names.values())}.")
            return suffix
    raise InputError(
        f"{where}: no array X or X_train in it, only {', '.join(names.values()) or 'nothing'}. {_FORM}."
    )


def _collection(arrays: dict[str, Any], where: str) -> Collection:
    values = arrays["x"]
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        raise InputError(f"{where}: X holds {getattr(values, 'dtype', 'no array')} where numbers belong.")
    if values.ndim == 2:
        values = values[:, None, :]
    if values.ndim != 3 or 0 in values.shape:
        raise InputError(f"{where}: X has the shape {values.shape}. {_FORM}.")
    with np.errstate(over="ignore"):
        series = np.ascontiguousarray(values, dtype=np.float32)
    if np.isinf(series).any():
        case, channel, point = np.argwhere(np.isinf(series))[0].tolist()
        raise InputError(
            f"{where}: X[{case}, {channel}, {point}] is {values[case, channel, point]}, which is infinite or "
            "beyond the range of float32. Put NaN where a value is missing."
        )
    cases, channels, _ = series.shape
    labels = _texts(arrays, "y", cases, where)
    declared = _texts(arrays, "classes", None, where) if labels is not None else None
    classes = declared if declared and set(labels or ()) <= set(declared) else sorted_classes(labels or ())
    return Collection(
        values=series,
        ids=_texts(arrays, "ids", cases, where) or tuple(map(str, range(cases))),
        channels=_texts(arrays, "channels", channels, where) or tuple(f"dim_{i}" for i in range(channels)),
        labels=labels,
        classes=classes,
        groups=_texts(arrays, "groups", cases, where),
    )


def _texts(arrays: dict[str, Any], name: str, count: int | None, where: str) -> tuple[str, ...] | None:
    """An array as text, None if it is not there; whole numbers without a decimal point, as from Parquet."""
    array = arrays.get(name)
    if array is None:
        return None
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1 or (count is not None and len(array) != count):
        raise InputError(
            f"{where}: {name} has the shape {array.shape} and X {arrays['x'].shape}. "
            "y and ids are one text or number a case, channels one a channel."
        )
    if array.dtype.kind not in "fiubUS":
        raise InputError(f"{where}: {name} holds {array.dtype}. It should be text or numbers.")
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: {name} holds {error.object!r}, which is not UTF-8 text.") from None
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            at = int(np.isnan(array).argmax())
            raise InputError(f"{where}: {name}[{at}] is NaN. Give every case its own, or leave {name} out.")
        return tuple(str(int(x)) if x.is_integer() else str(x) for x in array)
    return tuple(map(str, array.tolist()))


def _check_beginning(data: bytes, form: str, where: str) -> None:
    """Refuses what numpy would take for a pickle, or for the other of its two forms."""
    if not data.startswith(b"PK" if form == ".npz" else b"\x93NUMPY"):
        raise _unreadable(where, form, ValueError("it does not begin as one"))


def _unreadable(where: str, form: str, error: Exception) -> InputError:
    if "allow_pickle" in str(error) or "pickled" in str(error):
        return InputError(
            f"{where}: holds Python objects, which are not loaded because that would run what the file says. "
            f"Save numbers and text: numpy.save of an array whose dtype is not object. {_FORM}."
        )
    return InputError(f"{where}: cannot be read as {form} ({error}). It is damaged or of another form.")

"""A Collection as an .npz file of numpy arrays; nothing is lost and nothing is pickled.

X         (cases, channels, timepoints) float32, NaN where not observed
y         (cases,) labels as text; absent where there are none
ids       (cases,) text
groups    (cases,) text, what a case must not be torn from; absent where there are none
channels  (channels,) text
classes   (classes,) text, in the order of the Collection
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tsattn.data.atomic import whole_file
from tsattn.data.collection import Collection
from tsattn.errors import InputError


def write_npz(collection: Collection, path: Path) -> None:
    """Writes the arrays, compressed.

    InputError for text that ends in a NUL character, which numpy drops, and if the place cannot be written.
    """
    arrays: dict[str, Any] = {
        "X": collection.values,
        "ids": _texts(collection.ids, path),
        "channels": _texts(collection.channels, path),
    }
    if collection.groups is not None:
        arrays["groups"] = _texts(collection.groups, path)
    if collection.labels is not None:
        arrays["y"] = _texts(collection.labels, path)
        arrays["classes"] = _texts(collection.classes, path)
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)  # text and numbers: nothing is pickled


def _texts(texts: Sequence[str], path: Path) -> Any:
    for text in texts:
        if text.endswith("\0"):
            raise InputError(f"{path}: numpy cannot hold the text {text!r}, which ends in NUL. Rename it.")
    return np.array(texts, dtype=np.str_)

"""The file of predictions: written beside its place, renamed when whole, gone if anything fails."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from tsattn.errors import InputError


class PredictionRows:
    """Writes CSV `id,label,confidence[,probability_CLASS…]`, one row a case.

    classes: labels in the order of the columns of probabilities. proba: one column a class too.
    """

    def __init__(self, file: TextIO, classes: Sequence[str], proba: bool) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._classes = classes
        self._proba = proba
        names = [f"probability_{name}" for name in classes] if proba else []
        self._writer.writerow(["id", "label", "confidence", *names])

    def write(self, ids: Sequence[str], probabilities: NDArray[np.float32]) -> None:
        """Rows of one block: ids (cases,), probabilities (cases, classes)."""
        best = probabilities.argmax(axis=1).tolist()
        for name, index, shares in zip(ids, best, probabilities.tolist(), strict=True):
            columns = [f"{share:.6f}" for share in shares] if self._proba else []
            self._writer.writerow([name, self._classes[index], f"{shares[index]:.6f}", *columns])


def refuse_model(output: Path, model: Path, *, but: tuple[str, ...] = ()) -> None:
    """InputError if `output` is the model file, or a file of the run folder `model` that it is made of.

    but: endings of files in the run folder that may be replaced.
    """
    if not output.is_file():
        return
    parts = [model] if model.is_file() else list(model.iterdir()) if model.is_dir() else []
    for part in parts:
        free = part != model and part.name != "history.csv" and part.suffix.lower() in but
        if not free and part.is_file() and output.samefile(part):
            what = "the model" if part == model else f"part of the run {model}"
            raise InputError(f"-o {output} is {what} and would be overwritten. Type another -o.")


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """A text file that appears at `path` when the block ends, and never if it ends with an error.

    InputError before the block if the place cannot be written, and if writing fails in the end.
    """
    _check_place(path)
    place = path.resolve()  # a link keeps pointing at the file
    partial = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with writing(path):
            file = partial.open("w", encoding="utf-8", newline="")
        try:
            yield file
            with writing(path):
                file.close()
        finally:
            with suppress(OSError):  # of a full disk once more, after the error that says so
                file.close()
        with writing(path):
            os.replace(partial, place)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the system says against writing `path` (no right, a full disk) into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}. Type another -o.") from None


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder. Type a file: -o {path / 'predictions.csv'}")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no regular file and cannot be replaced. Type another -o.")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} is write-protected. Type another -o.")
    if not path.resolve().parent.is_dir():
        raise InputError(
            f"The folder {path.parent} for the output does not exist. Make it, or type another -o."
        )

"""The file of predictions: written beside its place, renamed when whole, gone if anything fails."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from tsattn.errors import InputError


class PredictionFile:
    """CSV `id,label,confidence[,probability_CLASS…]`, one row a case; a context manager.

    path: where the whole file appears when the block ends without an error.
    classes: labels in the order of the columns of probabilities.
    proba: also write one column a class.
    InputError on entry, before any work, if the place cannot be written.
    """

    def __init__(self, path: Path, classes: Sequence[str], proba: bool) -> None:
        self._path = path
        self._classes = classes
        self._proba = proba
        self._partial = Path()
        self._file: TextIO

    def __enter__(self) -> PredictionFile:
        if self._path.is_dir():
            raise InputError(f"{self._path} is a folder. Type a file: -o {self._path / 'predictions.csv'}")
        if self._path.exists() and not self._path.is_file():
            raise InputError(f"{self._path} is no regular file and cannot be replaced. Type another -o.")
        if self._path.exists() and not os.access(self._path, os.W_OK):
            raise self._cannot("it is write-protected")
        place = self._path.resolve()  # a link keeps pointing at the file
        if not place.parent.is_dir():
            raise InputError(
                f"The folder {self._path.parent} for the output does not exist. Make it, or type another -o."
            )
        self._partial = place.with_name(f".{place.name}.{os.getpid()}.part")
        try:
            self._file = self._partial.open("w", encoding="utf-8", newline="")
        except OSError as error:
            raise self._cannot(error.strerror) from None
        self._writer = csv.writer(self._file, lineterminator="\n")
        columns = [f"probability_{name}" for name in self._classes] if self._proba else []
        self._write([["id", "label", "confidence", *columns]])
        return self

    def write(self, ids: Sequence[str], probabilities: NDArray[np.float32]) -> None:
        """Rows of one block: ids (cases,), probabilities (cases, classes)."""
        best = probabilities.argmax(axis=1)
        rows = [
            [
                name,
                self._classes[index],
                f"{row[index]:.6f}",
                *([f"{p:.6f}" for p in row] if self._proba else ()),
            ]
            for name, index, row in zip(ids, best.tolist(), probabilities.tolist(), strict=True)
        ]
        self._write(rows)

    def _write(self, rows: list[list[str]]) -> None:
        try:
            self._writer.writerows(rows)
        except OSError as error:
            raise self._cannot(error.strerror) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
            if kind is None:
                os.replace(self._partial, self._path.resolve())
        except OSError as problem:
            if kind is None:
                raise self._cannot(problem.strerror) from None
        finally:
            self._partial.unlink(missing_ok=True)

    def _cannot(self, why: str | None) -> InputError:
        return InputError(f"{self._path} cannot be written: {why}. Type another -o.")

"""Files in, one CSV of predictions out, a block of cases at a time, so memory does not grow."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.errors import InputError
from tsattn.inference.concurrency import in_order, read_ahead
from tsattn.inference.output import PredictionFile
from tsattn.inference.predictor import Predictor

HEADER_LIMIT = 1 << 22


@dataclass(frozen=True)
class PredictSummary:
    """What `predict_files` did: cases written, seconds of reading to writing, the provider in use."""

    cases: int
    seconds: float
    provider: str
    output: Path

    @property
    def cases_per_second(self) -> float:
        return self.cases / max(self.seconds, 1e-9)


def predict_files(
    predictor: Predictor,
    files: Sequence[Path],
    output: Path,
    options: TableOptions,
    *,
    batch_size: int,
    proba: bool,
    progress: Callable[[int], None] | None = None,
) -> PredictSummary:
    """Classifies every case of `files`, in their order, into the CSV `output`.

    options: column roles; what is None is taken from the model's card where the file has it.
    proba: one column `probability_CLASS` a class beside id, label and confidence.
    progress: called with the cases written so far.
    The output appears when everything is done; on any error or interrupt there is none.
    InputError for whatever is wrong with a file or the output.
    """
    _check_places(files, output)
    began = time.perf_counter()
    callers: int = getattr(predictor, "callers", 1)
    done = 0

    def infer(block: Collection) -> NDArray[np.float32]:
        return predictor.probabilities(_observed_part(block.values))

    with (
        PredictionFile(output, predictor.card.classes, proba) as rows,
        closing(read_ahead(_blocks(files, options, predictor.card, batch_size), callers + 1)) as blocks,
        closing(in_order(infer, blocks, callers)) as results,
    ):
        for block, probabilities in results:
            rows.write(block.ids, probabilities)
            done += len(block)
            if progress is not None:
                progress(done)
        if done == 0:
            raise InputError(f"{', '.join(map(str, files))}: no case to predict.")
    return PredictSummary(done, time.perf_counter() - began, predictor.provider, output)


def _check_places(files: Sequence[Path], output: Path) -> None:
    """Every file is there and is not the output, before hours are spent on the first."""
    for path in files:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Type the files to predict: {path / '*.csv'}")
        if not path.exists():
            raise InputError(f"{path}: no such file.")
        if not path.is_file():
            raise InputError(f"{path} is not a regular file (a pipe?). Write the data to a file first.")
        if output.exists() and output.samefile(path):
            raise InputError(f"-o {output} is one of the files to predict. Type another name for the output.")


def _blocks(
    files: Sequence[Path], options: TableOptions, card: ModelCard, cases: int
) -> Generator[Collection, None, None]:
    for path in files:
        if path.suffix.lower() == ".ts":
            yield from _ts_blocks(path, card, cases)
        else:
            from tsattn.data.tables import stream_table

            roles = roles_of(path, options, card)
            yield from stream_table(path, roles, channels=card.channels, cases=cases)


def _ts_blocks(path: Path, card: ModelCard, cases: int) -> Generator[Collection, None, None]:
    from tsattn.data.ts import read_ts

    whole = read_ts(path)
    if len(whole.channels) != len(card.channels):
        raise InputError(
            f"{path}: {len(whole.channels)} channels; the model was trained on {len(card.channels)}: "
            f"{', '.join(card.channels)}."
        )
    for start in range(0, len(whole), cases):
        yield whole.take(np.arange(start, min(start + cases, len(whole))))


def _observed_part(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Without the timepoints at the end at which no case is observed; at least one stays.

    The model's answer does not depend on them, its time does.
    """
    cases, channels, timepoints = values.shape
    if timepoints == 0:
        return np.full((cases, channels, 1), np.nan, np.float32)
    seen = np.flatnonzero(~np.isnan(values).all(axis=(0, 1)))
    return np.ascontiguousarray(values[:, :, : int(seen[-1]) + 1 if seen.size else 1])


def roles_of(path: Path, options: TableOptions, card: ModelCard) -> TableOptions:
    """`options`, completed with the roles of the training table where this file has such columns.

    A word the user typed stands; the trained layout is taken only if all its columns are there and
    nothing typed speaks of a layout.
    """
    columns = _header(path)
    trained = {role: name for role, name in card.table.items() if name}
    known = {role: name for role, name in trained.items() if role != "layout" and name in columns}
    label = options.label or known.get("label")
    if options.layout or options.id or options.time:
        return replace(options, label=label)
    needed = {trained[role] for role in ("id", "time") if role in trained}
    layout = trained.get("layout") if needed <= columns else None
    return replace(options, layout=layout, id=known.get("id"), time=known.get("time"), label=label)


def _header(path: Path) -> set[str]:
    """The names in the first line; what is no CSV gives some set, and its reader says what is wrong."""
    with path.open("rb") as file:
        line = file.readline(HEADER_LIMIT).decode("utf-8-sig", errors="replace")
    try:
        return set(next(csv.reader([line]), []))
    except csv.Error:
        return set()

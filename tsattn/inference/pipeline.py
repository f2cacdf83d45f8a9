"""Files in, one CSV of predictions out, a block of cases at a time, so memory does not grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions, layout_of_files, names_timepoints
from tsattn.data.formats import is_series, series_blocks
from tsattn.data.heads import open_head
from tsattn.data.preparation import Preparation, mean_by_recording, prepare_cases
from tsattn.data.tables import stream_table
from tsattn.errors import InputError
from tsattn.inference.concurrency import in_order, read_ahead
from tsattn.inference.output import PredictionRows, whole_file, writing
from tsattn.inference.predictor import Predictor

Per = Literal["recording", "window"]


@dataclass(frozen=True)
class PredictSummary:
    """What `predict_files` did: cases written, seconds of reading to writing, the provider in use."""

    cases: int
    seconds: float
    provider: str
    output: Path

    @property
    def cases_per_second(self) -> float:
        """Over reading, inference and writing together."""
        return self.cases / max(self.seconds, 1e-9)


def predict_files(
    predictor: Predictor,
    files: Sequence[Path],
    output: Path,
    options: TableOptions,
    *,
    batch_size: int,
    proba: bool,
    per: Per = "recording",
    progress: Callable[[int], None] | None = None,
) -> PredictSummary:
    """Classifies every case of `files`, in their order, into the CSV `output`.

    options: column roles; what is None is taken from the model's card where the file has it.
    per: where the model was trained on windows, a row a recording (the mean of its windows) or a window.
    proba: one column `probability_CLASS` a class beside id, label and confidence.
    progress: called with the cases written so far.
    The output appears when everything is done; on any error or interrupt there is none.
    InputError for whatever is wrong with a file or the output.
    """
    _check_places(files, output)
    began = time.perf_counter()
    callers: int = getattr(predictor, "callers", 1)
    done = 0
    # A recording may hold any number of windows, so fewer recordings are read at once.
    at_once = batch_size if predictor.card.preparation.get("window") is None else -(-batch_size // 16)

    def infer(block: Collection) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        return _answers(predictor, block, batch_size, per)

    with (
        whole_file(output) as file,
        closing(read_ahead(_blocks(files, options, predictor.card, at_once), callers + 1)) as blocks,
        closing(in_order(infer, blocks, callers)) as results,
    ):
        rows = PredictionRows(file, predictor.card.classes, proba)
        for _, (ids, probabilities) in results:
            with writing(output):
                rows.write(ids, probabilities)
            done += len(ids)
            if progress is not None:
                progress(done)
        if done == 0:
            raise InputError(f"{', '.join(map(str, files))}: no case to predict.")
    return PredictSummary(done, time.perf_counter() - began, predictor.provider, output)


def _answers(
    predictor: Predictor, block: Collection, batch_size: int, per: Per
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Ids and probabilities of what a row is written for."""
    how = Preparation.from_dict(predictor.card.preparation)
    if not how:
        return block.ids, predictor.probabilities(block.values)
    cut = prepare_cases(block, how)
    windows = [
        predictor.probabilities(np.ascontiguousarray(cut.cases.values[start : start + batch_size]))
        for start in range(0, len(cut.cases), batch_size)
    ]
    probabilities = np.concatenate(windows)
    if per == "window":
        return cut.cases.ids, probabilities
    return block.ids, mean_by_recording(probabilities, cut.recording, len(block))


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
        if is_series(path):
            yield from series_blocks(path, card.channels, cases)
        else:
            yield from stream_table(path, roles_of(path, options, card), channels=card.channels, cases=cases)


def roles_of(path: Path, options: TableOptions, card: ModelCard) -> TableOptions:
    """`options`, completed with the roles of the training table where this file has such columns.

    What the user typed stands. The wide layout is never taken over: the header tells it as well, and
    a long file read as wide would give wrong rows without an error. The time of training is a time here
    even where channels are missing: it never becomes a channel.
    """
    head = open_head(path)
    columns = set(head.names)
    typed = {options.id, options.time, options.label, options.group}
    known = {
        role: name
        for role, name in card.table.items()
        if role != "layout" and name in columns and name not in typed
    }
    id_column = options.id or known.get("id")
    alike = card.table.get("layout") == "long" and set(card.channels) <= columns and options.layout != "wide"
    label, group = options.label or known.get("label"), options.group or known.get("group")
    told = layout_of_files(head, replace(options, id=id_column, label=label, group=group))
    alike = set(card.channels) <= columns and options.layout != "wide"
    timed = "time" in known and (told != "wide" or not names_timepoints(head)) and options.layout != "wide"
    trained = card.table.get("layout")
    is_long = options.layout == "long" or (trained == "long" and (timed or (alike and id_column is not None)))
    is_case = options.layout == "file" or (
        trained == "file" and told == "file" and id_column is None and (timed or alike)
    )
    return TableOptions(
        layout="long" if is_long else "file" if is_case else options.layout,
        id=id_column,
        time=options.time or (known.get("time") if is_long or is_case or timed else None),
        label=label,
        group=group,
        label_of=options.label_of,
        columns=None if is_long or is_case else card.table.get("columns"),
    )

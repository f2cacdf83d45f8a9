"""Files in, rows of predictions out: reading, parsing, inference and writing at the same time.

    bytes ─▶ pieces ─▶ blocks of cases ─▶ batches of similar length ─▶ answers ─▶ rows
    a thread   the workers, in order         the workers, in order       here, in the order of the input

Every arrow is a queue of bounded length, so memory does not grow with the file. Parsing and inference
share as many threads as there are cores: whichever is behind gets them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

from tsattn.data.columns import TableOptions
from tsattn.errors import InputError
from tsattn.inference.batching import ELSEWHERE, FASTEST, Size
from tsattn.inference.inputs import STDIN, Reading, check_files
from tsattn.inference.output import Destination, StreamOutput, file_output
from tsattn.inference.outside import Outside
from tsattn.inference.predictor import Predictor
from tsattn.inference.roles import roles_of as roles_of
from tsattn.inference.rowformats import RowFormat, format_of, row_format
from tsattn.inference.work import Per, Progress, Work

OnError = Literal["fail", "skip", "mark"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What rows are written, and of what.

    per, proba: see `predict_files`. keep: columns of the input to carry through. on_error: what becomes of
    a row with a fault. format: csv, jsonl or parquet; None for that of the output's ending. sort: rows of
    one case may stand anywhere. resume: what was written stays when stopped, and is gone on with.
    """

    proba: bool = False
    per: Per = "recording"
    keep: tuple[str, ...] = ()
    on_error: OnError = "fail"
    format: str | None = None
    sort: bool = False
    resume: bool = False


@dataclass(frozen=True)
class PredictSummary:
    """What `predict_files` did: cases written, seconds of reading to writing, the provider in use.

    skipped, marked: cases with a fault, left out or written with it. outside: cases unlike those of
    training. resumed: cases that were there already.
    """

    cases: int
    seconds: float
    provider: str
    output: Path | None
    skipped: int = 0
    marked: int = 0
    outside: Outside = field(default_factory=Outside)
    resumed: int = 0

    @property
    def cases_per_second(self) -> float:
        """Over reading, inference and writing together."""
        return (self.cases - self.resumed) / max(self.seconds, 1e-9)


def predict_files(
    predictor: Predictor,
    files: Sequence[Path],
    output: Path | BinaryIO,
    options: TableOptions,
    *,
    batch_size: int | None,
    wanted: Wanted | None = None,
    proba: bool | None = None,
    per: Per | None = None,
    threads: int | None = None,
    stdin: BinaryIO | None = None,
    model: str = "",
    progress: Callable[[int], None] | None = None,
) -> PredictSummary:
    """Classifies every case of `files`, in their order, into `output`, a file or a stream.

    options: column roles; what is None is taken from the model's card where the file has it.
    batch_size: cases that the model is asked about at once, at most; as is fastest if None.
    wanted: which rows are written and how; proba and per stand in for those of `wanted`.
    per: where the model was trained on windows, a row a recording (the mean of its windows) or a window.
    proba: one column `probability_CLASS` a class beside id, label and confidence.
    threads: that parse and infer; every core if None. stdin: what the file `-` stands for.
    model: tells the model from others with the same card, so that no other goes on with its output.
    progress: called with the cases written so far.
    A file appears when everything is done; on any error or interrupt there is none.
    InputError for whatever is wrong with a file or the output.
    """
    wanted = wanted or Wanted()
    wanted = replace(
        wanted,
        proba=wanted.proba if proba is None else proba,
        per=per or wanted.per,
        keep=tuple(dict.fromkeys(wanted.keep)),
    )
    place = output if isinstance(output, Path) else None
    form = row_format(
        format_of(place, wanted.format),
        predictor.card,
        proba=wanted.proba,
        keep=wanted.keep,
        marked=wanted.on_error == "mark",
    )
    check_files(files, place)
    began = time.perf_counter()
    with ExitStack() as stack:
        rows = stack.enter_context(_destination(output, form, predictor, model, files, options, wanted))
        done = Progress.of(rows.state)
        resumed = done.written
        work = Work(
            predictor=predictor,
            reading=Reading(options=options, keep=wanted.keep, sort=wanted.sort),
            size=_size(predictor) if batch_size is None else Size(batch_size),
            per=wanted.per,
            fail=wanted.on_error == "fail",
            threads=threads,
        )
        if rows.state is None:
            rows.write(form.header())
        for window in stack.enter_context(closing(work.windows(files, stdin, done))):
            for answers in window.answers:
                rows.write(form.encode(answers))
            done.add(window, marked=wanted.on_error == "mark")
            rows.note(done.state())
            if progress is not None:
                progress(done.written)
        if done.rows == 0:
            raise InputError(f"{', '.join(map(str, files))}: no case to predict.")
    return PredictSummary(
        done.written,
        time.perf_counter() - began,
        predictor.provider,
        place,
        done.skipped,
        done.marked,
        done.outside,
        resumed,
    )


def _size(predictor: Predictor) -> Size:
    return FASTEST.get(predictor.provider, ELSEWHERE)


def _destination(
    output: Path | BinaryIO,
    form: RowFormat,
    predictor: Predictor,
    model: str,
    files: Sequence[Path],
    options: TableOptions,
    wanted: Wanted,
) -> AbstractContextManager[Destination]:
    if not isinstance(output, Path):
        if wanted.resume:
            raise InputError("What went to stdout cannot be gone on with: --resume needs -o FILE.")
        return nullcontext(StreamOutput(output))
    if not wanted.resume:
        return file_output(output, form.finish, None)
    if STDIN in files:
        raise InputError("stdin cannot be read again: --resume needs files.")
    sizes = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    identity = {
        "model": hashlib.sha256(f"{predictor.card.to_json()} {model}".encode(errors="replace")).hexdigest(),
        "files": [list(entry) for entry in sizes],
        "options": {**asdict(wanted), **asdict(options), "format": type(form).__name__},
    }
    return file_output(output, form.finish, json.loads(json.dumps(identity)))

"""Rows of predictions as bytes: CSV, JSON lines, or Parquet.

Each form is written to the end of a file, so that a partial one can be gone on with: Parquet, which can
not, is first an Arrow stream a block, and becomes Parquet when all is there.
"""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tsattn.card import ModelCard
from tsattn.data.rows import as_arrow
from tsattn.errors import InputError
from tsattn.inference.batching import Answers
from tsattn.inference.labels import labels_of

Format = Literal["csv", "jsonl", "parquet"]
SUFFIXES: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
"""Endings of an output that is not CSV."""
_ROWS_A_GROUP = 1 << 16
_ESCAPED = "backslashreplace"
"""How a name of a file that is no text, as an id or in an error, is written."""
_OTHER_FORMS = (".json", ".tsv", ".xlsx", ".feather", ".arrow", ".ipc", ".npz", ".npy", ".ts", ".arff")
_PACKED = (".gz", ".zst", ".bz2", ".xz", ".zip")


class RowFormat(ABC):
    """What the columns are, and rows as bytes.

    card: of the model, which says what its probabilities stand for. proba: a column a class. keep: names of
    the columns carried through. marked: rows with a fault are there, with it in the column `error`; else
    they are left out.
    """

    def __init__(self, card: ModelCard, *, proba: bool, keep: Sequence[str], marked: bool) -> None:
        self._card, self._proba, self._marked = card, proba, marked
        self.names = ["id", "label", "confidence"]
        if proba:
            self.names += [f"probability_{name}" for name in card.classes]
        self.names += _free_names(keep, {*self.names, "error"})
        if marked:
            self.names.append("error")

    def header(self) -> bytes:
        """What stands before the first row."""
        return b""

    def encode(self, answers: Answers) -> bytes:
        """The rows of one block."""
        rows, shares = answers.rows, answers.probabilities
        assert rows.ids is not None
        best = shares.argmax(axis=1)
        columns: list[Any] = [
            rows.ids,
            labels_of(shares, self._card),
            shares[np.arange(len(shares)), best],
        ]
        columns += list(shares.T) if self._proba else []
        columns += rows.kept
        if self._marked:
            columns.append([rows.faults.get(at) for at in range(rows.count)])
        elif rows.faults:
            good = [at for at in range(rows.count) if at not in rows.faults]
            columns = [
                column[good] if isinstance(column, np.ndarray) else [column[at] for at in good]
                for column in columns
            ]
        return self._bytes(columns, dict(rows.faults) if self._marked else {})

    @abstractmethod
    def _bytes(self, columns: list[Any], faulty: dict[int, str]) -> bytes:
        """The rows; columns are lists of text or arrays of float32, without meaning where `faulty`."""

    def finish(self, partial: Path) -> Path:
        """Where the file of all rows lies as it should be: here, or, where it had to be made, elsewhere."""
        return partial


class CsvRows(RowFormat):
    """A header, and a line a row; probabilities with six decimals."""

    def header(self) -> bytes:
        """The names."""
        return self._lines([self.names])

    def _bytes(self, columns: list[Any], faulty: dict[int, str]) -> bytes:
        cells = [_decimals(column) if isinstance(column, np.ndarray) else column for column in columns]
        answered = range(1, 3 + (len(self._card.classes) if self._proba else 0))
        for at in faulty:
            for column in answered:
                cells[column][at] = ""
        return self._lines(list(zip(*cells, strict=True)))

    @staticmethod
    def _lines(rows: Sequence[Sequence[str | None]]) -> bytes:
        text = io.StringIO(newline="")
        plain = csv.writer(text, lineterminator="\n")
        plain.writerows(rows)
        if "\r" in text.getvalue():  # a letter to the writer, and to most readers the end of a line
            text.seek(0)
            text.truncate()
            quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
            for row in rows:
                (quoting if any(cell and "\r" in cell for cell in row) else plain).writerow(row)
        return text.getvalue().encode(errors=_ESCAPED)


class JsonRows(RowFormat):
    """An object a line, with the names of the columns; null where a row has no answer."""

    def _bytes(self, columns: list[Any], faulty: dict[int, str]) -> bytes:
        cells = [
            [round(x, 6) for x in column.astype(np.float64).tolist()]
            if isinstance(column, np.ndarray)
            else list(column)
            for column in columns
        ]
        answered = range(1, 3 + (len(self._card.classes) if self._proba else 0))
        for at in faulty:
            for column in answered:
                cells[column][at] = None
        rows = (dict(zip(self.names, row, strict=True)) for row in zip(*cells, strict=True))
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(errors=_ESCAPED)


class ParquetRows(RowFormat):
    """Text as strings, probabilities as float32; null where a row has no answer."""

    def _bytes(self, columns: list[Any], faulty: dict[int, str]) -> bytes:
        import pyarrow as pa

        ids, labels, *rest = columns
        arrays = [_strings(ids), _strings([None if at in faulty else x for at, x in enumerate(labels)])]
        arrays += [
            _floats(cells, faulty) if isinstance(cells, np.ndarray) else _strings(cells) for cells in rest
        ]
        batch = pa.record_batch(arrays, names=self.names)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    def finish(self, partial: Path) -> Path:
        """Parquet beside the streams, a group of rows at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        place = partial.with_name(partial.name + ".parquet")
        schema = pa.schema(
            [
                (name, pa.float32() if at in self._numbers() else pa.string())
                for at, name in enumerate(self.names)
            ]
        )
        try:
            with pq.ParquetWriter(str(place), schema) as writer:
                for group in _groups(partial):
                    writer.write_table(pa.Table.from_batches(group))
        except BaseException as error:
            place.unlink(missing_ok=True)
            if isinstance(error, pa.ArrowException):
                raise InputError(f"{partial} is damaged ({error}). Remove it to begin again.") from None
            raise
        return place

    def _numbers(self) -> range:
        return range(2, 3 + (len(self._card.classes) if self._proba else 0))


def row_format(form: Format, card: ModelCard, *, proba: bool, keep: Sequence[str], marked: bool) -> RowFormat:
    """The format of that name."""
    kinds: dict[Format, type[RowFormat]] = {"csv": CsvRows, "jsonl": JsonRows, "parquet": ParquetRows}
    return kinds[form](card, proba=proba, keep=keep, marked=marked)


def format_of(output: Path | None, typed: str | None) -> Format:
    """The form that is typed, else that of the output's ending. InputError for one that does not fit."""
    ending = "" if output is None else output.suffix.lower()
    if ending in _PACKED or (typed is None and ending in _OTHER_FORMS):
        what = "packed" if ending in _PACKED else f"written as {ending}"
        raise InputError(f"-o {output}: rows are not {what}. Type a file ending in .csv, .jsonl or .parquet.")
    form = SUFFIXES.get(ending, "csv") if typed is None else typed
    if form not in ("csv", "jsonl", "parquet"):
        raise InputError(f"--format {form} is not known. Type csv, jsonl or parquet.")
    if output is None and form == "parquet":
        raise InputError("Parquet has its end at its end and is not written to stdout. Type -o FILE.parquet.")
    return form  # type: ignore[return-value]


def _free_names(names: Iterable[str], taken: set[str]) -> list[str]:
    """The names, with kept_ before those that are taken, as often as it takes."""
    free: list[str] = []
    for name in names:
        while name in taken:
            name = f"kept_{name}"  # noqa: PLW2901
        taken.add(name)
        free.append(name)
    return free


def _decimals(numbers: NDArray[np.float32]) -> list[str]:
    return [f"{number:.6f}" for number in numbers.tolist()]


def _groups(path: Path) -> Iterator[list[Any]]:
    """Record batches, enough at a time for a group of rows."""
    held: list[Any] = []
    for batch in _batches(path):
        held.append(batch)
        if sum(map(len, held)) >= _ROWS_A_GROUP:
            yield held
            held = []
    if held:
        yield held


def _batches(path: Path) -> Iterator[Any]:
    """The record batches of Arrow streams that stand one behind the other."""
    import pyarrow as pa

    size = path.stat().st_size
    with pa.OSFile(str(path)) as file:
        while file.tell() < size:
            yield from pa.ipc.open_stream(file)


def _floats(numbers: NDArray[np.float32], without: dict[int, str]) -> Any:
    import pyarrow as pa

    if not without:
        return as_arrow(numbers, pa.float32())
    valid = np.ones(len(numbers), bool)
    valid[list(without)] = False
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(
        pa.float32(), len(numbers), [bits, pa.py_buffer(np.ascontiguousarray(numbers))], len(without)
    )


def _strings(words: list[str | None]) -> Any:
    """An Arrow array of strings; pa.array would import pandas."""
    import pyarrow as pa

    encoded = [b"" if word is None else word.encode(errors=_ESCAPED) for word in words]
    offsets = np.zeros(len(words) + 1, np.int32)
    np.cumsum(list(map(len, encoded)), out=offsets[1:])
    bits = np.packbits([word is not None for word in words], bitorder="little").tobytes()
    return pa.StringArray.from_buffers(
        len(words), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)), pa.py_buffer(bits)
    )

"""Rows of a long table put together by case on the disk, where a case's rows stand anywhere in the file.

The rows go once to a temporary folder, in files of some hundred cases each, and come back file by file,
cases in the order in which they first appear. Memory holds the name and the number of every case, some
rows that wait to be written, and the rows of a few files.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tsattn.data.parsedrows import ParsedRows
from tsattn.data.rows import as_arrow, as_numpy

_CASES_A_FILE = 256
_WAITING_BYTES = 1 << 26
_CASE, _ROW, _FAULT, _TIME, _VALUE, _TEXT = "case", "row", "fault", "time", "value", "text"


@contextmanager
def sorted_rows(parts: Iterable[ParsedRows], id_at: int, name: str) -> Iterator[Iterator[ParsedRows]]:
    """The same rows, those of one case together; everything is read before the first comes.

    id_at: position of the column of ids. name: of the table, for messages.
    """
    with tempfile.TemporaryDirectory(prefix="tsattn-sort-") as folder:
        files = _Files(Path(folder))
        for part in parts:
            if len(part):
                files.add(part, id_at)
        files.flush()
        yield files.rows(name)


class _Files:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[str, int] = {}
        self._waiting: list[Any] = []
        self._bytes = self._row = 0

    def add(self, part: ParsedRows, id_at: int) -> None:
        """Some rows more."""
        encoded = part.texts[id_at].dictionary_encode()
        names = encoded.dictionary.to_pylist()
        numbers = np.array([self._numbers.setdefault(name, len(self._numbers)) for name in names], np.int64)
        columns = {
            _CASE: as_arrow(numbers[as_numpy(encoded.indices)], pa.int64()),
            _ROW: as_arrow(np.arange(self._row, self._row + len(part)), pa.int64()),
            _FAULT: pa.array([part.faults.get(at) for at in range(len(part))], pa.string()),
        }
        if part.times is not None:
            columns[_TIME] = part.times
        columns |= {f"{_TEXT}{at}": texts for at, texts in part.texts.items()}
        columns |= {f"{_VALUE}{at}": as_arrow(row, pa.float32()) for at, row in enumerate(part.values)}
        self._row += len(part)
        self._waiting.append(pa.table(columns))
        self._bytes += self._waiting[-1].nbytes
        if self._bytes >= _WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what waits to the ends of its files."""
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting, self._bytes = [], 0
        file = _numbers(table, _CASE) // _CASES_A_FILE
        order = np.argsort(file, kind="stable")
        table, file = table.take(as_arrow(order, pa.int64())), file[order]
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(file)) + 1, [len(file)]]).tolist()
        for start, stop in itertools.pairwise(cuts):
            with (
                (self._folder / str(file[start])).open("ab") as place,
                pa.ipc.new_stream(place, table.schema) as stream,
            ):
                stream.write_table(table.slice(start, stop - start))

    def rows(self, name: str) -> Iterator[ParsedRows]:
        """The rows of each file, those of a case together and in their order."""
        for number in range(-(-len(self._numbers) // _CASES_A_FILE)):
            table = pa.concat_tables(_streams(self._folder / str(number))).combine_chunks()
            order = np.argsort(_numbers(table, _CASE), kind="stable")
            yield _parsed(table.take(as_arrow(order, pa.int64())).combine_chunks(), name)


def _streams(path: Path) -> list[Any]:
    """The tables that stand one behind the other in a file."""
    size, found = path.stat().st_size, []
    with pa.OSFile(str(path)) as file:
        while file.tell() < size:
            found.append(pa.ipc.open_stream(file).read_all())
    path.unlink()
    return found


def _parsed(table: Any, name: str) -> ParsedRows:
    columns = {key: table.column(key).chunk(0) for key in table.column_names}
    numbers = as_numpy(columns[_ROW])
    values = np.stack(
        [as_numpy(cells) for key, cells in columns.items() if key.startswith(_VALUE)]
    )  # (value columns, rows)
    return ParsedRows(
        values,
        {int(key[len(_TEXT) :]): texts for key, texts in columns.items() if key.startswith(_TEXT)},
        columns.get(_TIME),
        lambda at: f"{name}, row {int(numbers[at]) + 1} below the header",
        {at: text for at, text in enumerate(columns[_FAULT].to_pylist()) if text is not None},
    )


def _numbers(table: Any, name: str) -> NDArray[np.int64]:
    return as_numpy(table.column(name).chunk(0))

"""Tables whose columns have types: Parquet, Feather (version 2) and Arrow files.

Ids and labels become text: whole numbers without a decimal point, whatever the column's type, because
a column of whole numbers is float64 only for a missing cell beside them ("1", not "1.0"); booleans as
True and False. Not covered: Feather version 1, columns of lists, folders of many Parquet files.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tsattn.data.rows import TableHead, as_numpy
from tsattn.errors import InputError

_BATCH_ROWS = 1 << 14
_BATCH_CELLS = 1 << 20
_SAMPLE_ROWS = 1000
_INDEX = re.compile(r"__index_level_\d+__")
_T = pa.types


@dataclass(frozen=True)
class TypedHead(TableHead):
    """The beginning of a table with typed columns. schema: an Arrow schema, columns as in `names`."""

    path: Path
    names: tuple[str, ...]
    schema: Any

    @cached_property
    def text_columns(self) -> frozenset[str]:
        """Columns whose type holds no numbers."""
        return frozenset(
            name for name, kind in zip(self.names, self.schema.types, strict=True) if not _holds_numbers(kind)
        )

    def sample(self, column: str) -> list[str]:
        """The column's cells in the first rows."""
        at = self.names.index(column)
        for batch in self._read([at]):
            cells: list[str] = self._texts(batch.column(0)[:_SAMPLE_ROWS], 0, at).to_pylist()
            return cells
        return []

    def batches(self, numbers: list[int], texts: list[int], time: int | None) -> Iterator[Any]:
        """As `TableHead` says."""
        wanted = [*numbers, *texts] if time is None else [*numbers, *texts, time]
        first = 0
        for batch in self._read(wanted):
            columns = [
                self._floats(batch.column(i), first, at)
                if i < len(numbers)
                else self._texts(batch.column(i), first, at)
                if i < len(numbers) + len(texts)
                else self._times(batch.column(i), first, at)
                for i, at in enumerate(wanted)
            ]
            yield pa.record_batch(columns, names=[str(i) for i in range(len(columns))])
            first += batch.num_rows

    def place(self, row: int) -> str:
        """File and row, the first being 1."""
        return f"{self.path}, row {row + 1}"

    def cell(self, row: int, column: int) -> str:
        """The cell as text."""
        for batch in self._read([column]):
            if row < batch.num_rows:
                return str(batch.column(0)[row].as_py())
            row -= batch.num_rows
        raise AssertionError(f"{self.path} has no row {row}")

    def _read(self, columns: list[int]) -> Iterator[Any]:
        """Record batches with these columns in this order."""
        with _understood(self.path), _opened(self.path) as source:
            yield from source.batches(columns, max(min(_BATCH_ROWS, _BATCH_CELLS // len(columns)), 1))

    def _floats(self, cells: Any, first: int, at: int) -> Any:
        cells = _plain(cells)
        if _T.is_boolean(cells.type):
            cells = pc.cast(cells, pa.uint8())
        try:
            return pc.cast(cells, pa.float64(), safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if not _T.is_string(cells.type):
                raise InputError(
                    f"{self.path}: column {self.names[at]!r} holds {cells.type} where numbers belong."
                ) from None
        row = next(i for i, cell in enumerate(cells) if not _casts(cell, pa.float64()))
        raise InputError(
            f"{self.place(first + row)}: column {self.names[at]!r} holds {cells[row].as_py()!r} where a "
            "number belongs. A missing value is a null."
        )

    def _texts(self, cells: Any, first: int, at: int) -> Any:
        cells = _plain(cells)
        if _T.is_floating(cells.type):
            cells = _without_points(as_numpy(pc.cast(cells, pa.float64())))
        elif _T.is_boolean(cells.type):
            cells = _words("False", "True").take(pc.cast(cells, pa.int8()))
        try:
            texts = pc.cast(cells, pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f"{self.path}: column {self.names[at]!r} holds {cells.type}, which is no id or label."
            ) from None
        return pc.coalesce(texts, _words(*[""] * len(texts))) if texts.null_count else texts

    def _times(self, cells: Any, first: int, at: int) -> Any:
        cells = _plain(cells)
        kind = cells.type
        if _T.is_date(kind):
            kind = pa.timestamp("s")
            cells = pc.cast(cells, kind)
        if _T.is_timestamp(kind):
            wanted = pa.timestamp("ns", tz=kind.tz)
        elif _T.is_time(kind) or _T.is_duration(kind):
            cells = cells.view(pa.int32() if kind.bit_width == 32 else pa.int64())
            wanted = pa.int64()
        elif _T.is_integer(kind):
            wanted = pa.int64()
        else:
            wanted = pa.string() if _T.is_string(kind) else pa.float64()
        try:
            return pc.cast(cells, wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            row = next((i for i, cell in enumerate(cells) if not _casts(cell, wanted)), 0)
            raise InputError(
                f"{self.place(first + row)}: column {self.names[at]!r} holds {cells[row].as_py()!r} where a "
                "time belongs: a number or a timestamp between the years 1678 and 2262."
            ) from None


def read_typed_head(path: Path) -> TypedHead:
    """Reads the names and types. InputError for what is no such table, has no rows or a name twice."""
    with _understood(path), _opened(path) as source:
        schema, rows = source.schema, source.rows
    names = tuple("" if _INDEX.fullmatch(name) else name.strip() for name in schema.names)
    twice = next((name for i, name in enumerate(names) if name and name in names[:i]), None)
    if twice is not None:
        raise InputError(f"{path}: two columns are called {twice!r}. Rename one of them.")
    if not names or not rows:
        raise InputError(f"{path}: no rows. A table needs one row a case or timepoint.")
    return TypedHead(path, names, schema)


@contextlib.contextmanager
def _understood(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder where a file was expected. Type the file's name.") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path}: cannot be read as {'Parquet' if _is_parquet(path) else 'Arrow or Feather'} ({reason}). "
            "It is damaged, cut short, or of another form than its ending says."
        ) from None


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[_ParquetSource | _ArrowSource]:
    with path.open("rb") as file:
        if _is_parquet(path):
            # not the Python file: Arrow's threads may outlive an error, and must not call Python then
            with pa.OSFile(str(path)) as native:
                yield _ParquetSource(native)
        else:
            yield _ArrowSource(pa.memory_map(str(path)), file.read(6))


class _ParquetSource:
    def __init__(self, file: Any) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(file)
        self.schema = self._file.schema_arrow
        self.rows: int = self._file.metadata.num_rows

    def batches(self, columns: list[int], rows: int) -> Iterator[Any]:
        names = [self.schema.names[at] for at in columns]
        for batch in self._file.iter_batches(rows, columns=names):
            yield batch.select(names)


class _ArrowSource:
    def __init__(self, file: Any, start: bytes) -> None:
        if start.startswith(b"FEA1"):
            raise pa.ArrowInvalid("Feather version 1, which is no longer written")
        self._is_stream = start != b"ARROW1"
        self._reader: Any = pa.ipc.open_stream(file) if self._is_stream else pa.ipc.open_file(file)
        self.schema = self._reader.schema
        # a stream does not say how many; that there is one is enough
        self.rows: int = 1 if self._is_stream else self._reader.num_record_batches

    def batches(self, columns: list[int], rows: int) -> Iterator[Any]:
        for batch in self._all():
            chosen = batch.select(columns)
            for start in range(0, batch.num_rows, rows):
                yield chosen.slice(start, rows)

    def _all(self) -> Iterator[Any]:
        if self._is_stream:
            yield from self._reader
        else:
            for i in range(self._reader.num_record_batches):
                yield self._reader.get_batch(i)


def _holds_numbers(kind: Any) -> bool:
    kind = kind.value_type if _T.is_dictionary(kind) else kind
    return bool(
        _T.is_integer(kind)
        or _T.is_floating(kind)
        or _T.is_decimal(kind)
        or _T.is_boolean(kind)
        or _T.is_null(kind)
    )


def _plain(cells: Any) -> Any:
    """Without dictionary, and large strings as strings."""
    if _T.is_dictionary(cells.type):
        cells = pc.cast(cells, cells.type.value_type)
    if _T.is_large_string(cells.type) or _T.is_string_view(cells.type):
        cells = pc.cast(cells, pa.string())
    if _T.is_float16(cells.type):
        cells = pc.cast(cells, pa.float32())
    return cells


def _without_points(numbers: NDArray[np.float64]) -> Any:
    """Floats as the shortest text, whole ones as whole numbers, NaN as nothing."""
    whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)
    return _words(
        *(
            str(int(number)) if is_whole else "" if number != number else repr(number)
            for number, is_whole in zip(numbers.tolist(), whole.tolist(), strict=True)
        )
    )


def _words(*words: str) -> Any:
    """An Arrow array of strings; pa.array and pa.scalar would import pandas."""
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def _casts(cell: Any, kind: Any) -> bool:
    try:
        pc.cast(pa.array([cell.as_py()], cell.type), kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True

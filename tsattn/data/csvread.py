"""The rows of a CSV table as record batches, with every fault said by file and line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from tsattn.data.csvdialect import NULLS
from tsattn.data.csvtext import Head, first_fault, nul_byte, open_quote
from tsattn.errors import InputError

_BLOCK_BYTES = 1 << 20
_BYTES_A_CELL = 64  # a block must hold a row; more than any number is long


def csv_batches(head: Head, numbers: list[int], strings: list[int]) -> Iterator[Any]:
    """Record batches of the columns at these positions, numbers as float64 and the rest as spelled."""
    types = {str(at): pa.float64() for at in numbers} | {str(at): pa.string() for at in strings}
    width = len(head.names)
    read = pa_csv.ReadOptions(
        column_names=[str(at) for at in range(width)],
        skip_rows_after_names=head.skip,
        block_size=max(_BLOCK_BYTES, width * _BYTES_A_CELL),
    )
    parse = pa_csv.ParseOptions(newlines_in_values=True, delimiter=head.file.separator)
    convert = pa_csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=list(NULLS),
        strings_can_be_null=False,
        decimal_point=head.file.decimal,
    )
    _refuse_nul_and_open_quote(head)
    try:
        with head.file.open_native() as file, pa_csv.open_csv(file, read, parse, convert) as reader:
            yield from reader
    except (pa.ArrowInvalid, OSError) as error:
        meaning = {at: head.names[at] for at in numbers}
        raise InputError(
            open_quote(head.file)
            or first_fault(head.file, width, meaning)
            or f"{head.path}: cannot be read as CSV ({error})."
        ) from None


def _refuse_nul_and_open_quote(head: Head) -> None:
    """Looks through the bytes for what pyarrow takes without a word; InputError also for damaged files.

    A pass of its own, because pyarrow reads ahead in threads that outlive an error: they must never
    call Python, which may be ending by then (they would abort the process).
    """
    quotes = 0
    with head.file.open_bytes() as file:
        while block := file.read(_BLOCK_BYTES):
            if b"\0" in block:
                raise nul_byte(head.file)
            quotes += block.count(b'"')
    if quotes % 2 and (fault := open_quote(head.file)):
        # pyarrow takes an open quote for one that is closed at the end, and swallows rows.
        raise InputError(fault)


def with_decimal_points(batch: Any) -> Any:
    """The batch with every comma in its last column, the time, made a point."""
    import pyarrow.compute as pc

    *rest, time = batch.columns
    return pa.record_batch([*rest, pc.replace_substring(time, ",", ".")], names=batch.schema.names)

"""Opening a table: the container by the file's ending."""

from __future__ import annotations

from pathlib import Path

from tsattn.data.csvdialect import COMPRESSIONS
from tsattn.data.csvtext import read_head
from tsattn.data.rows import TableHead

TYPED_TABLES = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
TABLES = (".csv", *(f".csv{packed}" for packed in COMPRESSIONS), *TYPED_TABLES)
"""Endings of tables."""


def ending(path: Path) -> str:
    """The file's ending in lower case, with that of a compression: ".csv.gz"."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() + suffix if suffix in COMPRESSIONS else suffix


def is_table(path: Path) -> bool:
    """Whether the file's ending is that of a table."""
    return ending(path) in TABLES


def open_head(path: Path) -> TableHead:
    """The head of the table at `path`; what has no ending of another container is read as CSV.

    InputError for whatever is not such a table with columns and rows.
    """
    if ending(path) in TYPED_TABLES:
        from tsattn.data.arrowread import read_typed_head

        return read_typed_head(path)
    return read_head(path)

"""Names of columns that say themselves what the column is, in lower case."""

from __future__ import annotations

ID_NAMES = ("id", "case", "case_id")
TIME_NAMES = ("time", "timestamp", "timepoint")
LABEL_NAMES = ("label", "class")

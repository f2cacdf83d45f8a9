"""What is said of options that were typed for a source that has no use for them."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from tsattn.data.columns import TableOptions
from tsattn.errors import InputError

logger = logging.getLogger(__name__)


def say_unused(options: TableOptions, place: Path | str) -> None:
    """Remarks on the roles that `options` names; `place` is what has no columns.

    InputError for a group: cases that belong together would be torn apart without a word.
    """
    if options.group is not None:
        raise InputError(
            f"--group {options.group}: {place} has no columns, so which cases belong together is not known. "
            "Leave --group away, or give the recordings as a table that has such a column."
        )
    said = vars(replace(options, label_of=None)).items()
    used = [f"--{name.replace('_', '-')} {value}" for name, value in said if value is not None]
    if used:
        logger.warning("%s has no columns: %s is not used.", place, ", ".join(used))


def say_unused_of_files(options: TableOptions, file: Path) -> None:
    """Remarks that what says the labels of several files is not used for one table."""
    said = {"--labels": options.labels, "--label-pattern": options.label_pattern}
    if used := [f"{flag} {value}" for flag, value in said.items() if value is not None]:
        logger.warning(
            "%s is one file, so %s is not used: that is for a folder of files. Its labels are a column, "
            "--label COLUMN.", file, ", ".join(used),
        )  # fmt: skip

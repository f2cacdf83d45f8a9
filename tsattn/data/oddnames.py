"""Value columns of a wide table that are not called like the others: t0, t1, t2, and a subject."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence

from tsattn.data.csvtext import listed
from tsattn.data.rows import TableHead

logger = logging.getLogger(__name__)

_COUNTED = re.compile(r"(.*?)[+-]?\d+(?:\.\d+)?")


def say_odd_names(head: TableHead, values: Sequence[str]) -> None:
    """A remark on the columns of `values` outside the pattern, a word and a number, that most follow."""
    words = {name: match[1] for name in values if (match := _COUNTED.fullmatch(name))}
    word, count = next(iter(Counter(words.values()).most_common(1)), ("", 0))
    usual = [name for name in values if words.get(name) == word]
    odd = [name for name in values if words.get(name) != word]
    if not odd or len(odd) >= count:
        return
    logger.warning(
        "%s: not called like the other timepoints (%s) and used as one all the same: %s. If a column is "
        "none, say what it is: --id, --label or --group COLUMN.",
        head.path, listed(usual), listed(odd),
    )  # fmt: skip

"""Puts what a command prints between two marks of a document.

    tsattn attention list --markdown | python docs/refresh.py README.md attention

replaces what stands between `<!-- attention -->` and `<!-- /attention -->`.
"""

from __future__ import annotations

import sys
from pathlib import Path


def replaced(document: str, block: str, content: str) -> str:
    """The document with `content` between the marks of `block`. ValueError where there are none."""
    before, begin, rest = document.partition(f"<!-- {block} -->\n")
    _, end, after = rest.partition(f"<!-- /{block} -->")
    if not begin or not end:
        raise ValueError(f"no marks <!-- {block} --> … <!-- /{block} -->")
    return f"{before}{begin}{content.strip()}\n{end}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(replaced(path.read_text("utf-8"), sys.argv[2], sys.stdin.read()), "utf-8")

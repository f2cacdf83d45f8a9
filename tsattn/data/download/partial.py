"""A file that is not whole yet, and what must hold for it to be gone on with."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Partial:
    """The bytes that have come of one file, at `path`; what the server said of it lies beside it.

    Written without a buffer, so that a process killed at any moment leaves what it had received.
    """

    path: Path

    @property
    def have(self) -> int:
        """Bytes that are there."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def resumable(self, url: str) -> dict[str, Any] | None:
        """What was said when `url` was begun (`etag`, `modified`, `total`); None to begin anew."""
        try:
            said = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        known = isinstance(said, dict) and said.keys() >= {"url", "etag", "modified", "total"}
        return said if known and said["url"] == url and self.have else None

    def begin(self, url: str, etag: str | None, modified: str | None, total: int | None) -> None:
        """Forgets what has come and notes what the server says of the file that now begins."""
        self.forget()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        said = {"url": url, "etag": etag, "modified": modified, "total": total}
        fresh = self._note.with_suffix(".new")
        fresh.write_text(json.dumps(said), encoding="utf-8")
        os.replace(fresh, self._note)

    def forget(self) -> None:
        """Removes what has come."""
        self._note.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    @property
    def _note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

"""Where tsattn keeps what it fetches: TSATTN_HOME, else where the system keeps a user's caches."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder of everything kept; it need not exist yet."""
    if chosen := os.environ.get("TSATTN_HOME"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("tsattn", appauthor=False)

"""No test reaches a real host or the user's own cache, nor does a process that a test starts."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _secluded(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("TSATTN_OFFLINE", "1")
    patch.setenv("TSATTN_HOME", str(tmp_path_factory.mktemp("home")))
    patch.delenv("TSATTN_MIRROR", raising=False)

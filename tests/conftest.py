"""No test reaches a real host or the user's own cache, nor does a process that a test starts."""

from __future__ import annotations

import os

import pytest

# Before torch, which reads it once. Processes of pytest-xdist share the cores: with as many threads as there
# are cores in each of them, all wait for each other, several times as long as they work.
PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // PROCESSES)))


@pytest.fixture(scope="session", autouse=True)
def _secluded(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("TSATTN_OFFLINE", "1")
    patch.setenv("TSATTN_HOME", str(tmp_path_factory.mktemp("home")))
    patch.delenv("TSATTN_MIRROR", raising=False)

"""tsattn bench --engine ray: tasks of a Ray on this machine do cells, stop, and are gone on with here."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tsattn.cli.app import main
from tsattn.sweeps.cell import read_cells

TINY = [
    "GunPoint", "--attention", "softmax,bn", "--seeds", "1", "--width", "8", "--heads", "2", "--layers", "1",
    "--tokens", "linear", "--epochs", "300", "--threads", "1",
]  # fmt: skip


def test_an_address_without_the_engine_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tsattn", "bench", *TINY, "-o", "sweep", "--address", "auto"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "type --engine ray too" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_cells_on_ray_stop_with_their_state_and_go_on_elsewhere(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tsattn", "bench", *TINY, "-o", "sweep"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    sweep = subprocess.Popen(
        [*words, "--engine", "ray"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    states = "sweep/cells/GunPoint/*/seed0/state/*.safetensors"
    until = time.monotonic() + 120
    while not list(tmp_path.glob(states)) and sweep.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    assert list(tmp_path.glob(states)), sweep.communicate()
    sweep.send_signal(signal.SIGINT)
    _, err = sweep.communicate(timeout=120)
    assert sweep.returncode == 130, err
    assert "Go on with" in err
    assert list(tmp_path.glob(states))
    assert len(list(read_cells(tmp_path / "sweep"))) < 2
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert {cell.status for cell in read_cells(tmp_path / "sweep")} == {"done"}
    assert len(list(read_cells(tmp_path / "sweep"))) == 2

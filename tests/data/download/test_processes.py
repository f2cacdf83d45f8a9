"""Processes: killed in the middle, two at once, interrupted; and the commands as a user types them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tsattn.data.download.fetch import Way, fetch
from tsattn.data.registry import DatasetEntry

ROOT = Path(__file__).parents[3]
ZIP = "/mirror/Motions.zip"
FETCH = (
    "import sys; from tsattn.data.download.fetch import *; from tsattn.data.registry import DatasetEntry\n"
    "entry = DatasetEntry(name='Motions', where='', train=40, test=40)\n"
    "print(fetch(entry, Way(mirror=sys.argv[1], archive=sys.argv[1])).folder)"
)


def start(web: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, f"{web.url}/mirror"]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kill_when(process: subprocess.Popen[str], ready: Callable[[], bool]) -> bool:
    """Kills the process as soon as `ready`; False if it ended before."""
    until = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < until
        if process.poll() is not None:
            break
        time.sleep(0.002)
    process.kill()
    _, err = process.communicate()
    assert not err, err
    return process.returncode == -signal.SIGKILL


def test_killed_twenty_times(
    web: Any, way: Way, entry: DatasetEntry, files: dict[str, bytes], place: Path, left: Any
) -> None:
    size = len(web.files[ZIP])
    part, unpacked = place / "partial/Motions/mirror-Motions.zip", place / "partial/Motions/unpacked"

    def have() -> int:
        return part.stat().st_size if part.is_file() else 0

    # The server falls silent after each eighteenth, so that no kill comes too late.
    web.rules[ZIP] = lambda n, honest: replace(honest, stall=size // 18)
    kills = 0
    for _ in range(15):
        goal = have() + size // 18
        kills += kill_when(start(web), lambda goal=goal: have() >= goal)  # type: ignore[misc]
        assert not (place / "datasets").exists()
    assert kills == 15
    assert have() > size // 2
    assert web.sent < 1.2 * size  # what had come was never asked for again
    web.rules.clear()
    for _ in range(5):
        kills += kill_when(start(web), unpacked.exists)
        assert not (place / "datasets/Motions").exists() or len(left()) >= 3
    assert kills >= 15
    found = fetch(entry, way)
    assert (found.train.read_bytes(), found.test.read_bytes()) == tuple(files.values())
    assert found.verify() is None
    assert web.sent < 1.5 * size


def test_two_processes_fetch_it_once(web: Any, way: Way, files: dict[str, bytes], place: Path) -> None:
    web.rules[ZIP] = lambda n, honest: replace(honest, pace=0.008)
    both = [start(web), start(web)]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert out.strip() == str(place / "datasets" / "Motions")
    assert web.times(ZIP) == 1
    assert (place / "datasets/Motions/Motions_TEST.ts").read_bytes() == files["Motions_TEST.ts"]


@pytest.fixture
def tsattn(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in a folder whose datasets.yaml knows Motions and Others."""
    facts = "{archive: Tests, train: 40, test: 40, channels: 6, classes: 4, length: 100}"
    (tmp_path / "datasets.yaml").write_text(f"Motions: {facts}\nOthers: {facts}\n")

    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **env}
        command = [sys.executable, "-m", "tsattn", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True)

    return run


def test_download_verify_and_mend(
    tsattn: Any, web: Any, way: Way, files: Any, pack: Any, place: Path
) -> None:
    others = {name.replace("Motions", "Others"): body for name, body in files.items()}
    web.files["/mirror/Others.zip"] = pack(others)
    folder = place / "datasets" / "Motions"
    done = tsattn("data", "verify")
    assert (done.returncode, done.stdout) == (0, f"Nothing is cached in {place}.\n")
    fetched = tsattn("data", "download", "--archive", "tests", "--mirror", f"{web.url}/mirror")
    assert (fetched.returncode, fetched.stderr) == (0, "")
    said = f"Motions: 0.5 MB in {folder}, fetched from {web.url}{ZIP}"
    assert min(fetched.stdout.splitlines()) == said
    done = tsattn("data", "verify")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Motions: whole\nOthers: whole\n", "")
    (folder / "Motions_TEST.ts").write_bytes(files["Motions_TEST.ts"].replace(b"1", b"2"))
    (place / "datasets" / "Others" / "Others_TRAIN.ts").unlink()
    done = tsattn("data", "verify")
    assert done.returncode == 3
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first.startswith("Error: Motions: Motions_TEST.ts is not what was fetched (md5 ")
    assert first.endswith("Type tsattn data download Motions to fetch it.")
    assert second == (
        f"Others: Others_TRAIN.ts not in {place}/datasets/Others. "
        "Type tsattn data download Others to fetch it."
    )
    words = ("data", "download", "motions", "Others", "Motions")
    done = tsattn(*words, TSATTN_MIRROR=f"{web.url}/mirror")
    assert done.returncode == 0
    assert "Motions: Motions_TEST.ts is not what was fetched" in done.stderr
    assert tsattn("data", "verify", "motions").stdout == "Motions: whole\n"
    done = tsattn("data", "download", "Motions", "--offline")
    assert done.stdout == f"Motions: 0.5 MB in {folder}, there already, whole\n"


def test_download_says_what_it_cannot(tsattn: Any, web: Any, way: Way) -> None:
    def error(*words: str, **env: str) -> str:
        done = tsattn("data", "download", *words, **env)
        assert (done.returncode, done.stdout) == (2, "")
        return str(done.stderr)

    said = "Error: Type the names of data sets, or --archive uea or another; not both and not neither.\n"
    assert error() == error("Motions", "--archive", "uea") == said
    assert "Error: 'Motins' is neither a file or folder here nor one of the 291 named" in error("Motins")
    offline = "is not on this machine, and --offline (TSATTN_OFFLINE) forbids to fetch it."
    assert error("Motions", TSATTN_OFFLINE="1").startswith(f"Error: Motions {offline}")
    several = error("Motions", "Others", "--offline")
    assert several.startswith(f"Error: 2 of 2 data sets are not there:\nMotions {offline}")
    assert f"\nOthers {offline}" in several
    done = tsattn("data", "download", "JapaneseVowels")
    assert (done.returncode, done.stderr) == (0, "JapaneseVowels: embedded in aeon, nothing to fetch.\n")
    assert "this is no address of the web" in error("Motions", "--mirror", "/data")
    assert not web.asked


def test_list(tsattn: Any, web: Any, way: Way) -> None:
    tsattn("data", "download", "Motions", "--mirror", f"{web.url}/mirror")
    rows = json.loads(tsattn("data", "list", "--json").stdout)
    assert [len(rows), rows[0]["name"]] == [291, "Motions"]
    local = json.loads(tsattn("data", "list", "--local", "--json").stdout)
    assert {row["name"]: row["here"] for row in local}["Motions"] == "cached"
    assert {row["here"] for row in local} == {"cached", "embedded"}
    rows = json.loads(tsattn("data", "list", "--archive", "uea", "--json").stdout)
    assert (len(rows), rows[0]["name"]) == (30, "ArticularyWordRecognition")
    assert [rows[0][fact] for fact in ("train", "test", "channels", "length", "classes")] == [
        275,
        300,
        9,
        144,
        25,
    ]
    table = tsattn("data", "list", "--archive", "UCR").stdout
    assert re.search(r"\nGunPoint +UCR +50/150 +1 × 150 +2 +aeon\n", table)
    assert table.endswith(
        "128 data sets, 6 of them on this machine. tsattn data download NAME fetches one.\n"
    )
    done = tsattn("data", "list", "--registry", "no.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: no.yaml: no such registry.")


def test_train_fetches_what_it_needs(tsattn: Any, web: Any, way: Way, place: Path) -> None:
    size = ("--epochs", "1", "--layers", "1", "--width", "8", "--heads", "1", "--threads", "1")
    done = tsattn("train", "Motions", *size, "--out", "run", TSATTN_MIRROR=f"{web.url}/mirror")
    assert done.returncode == 0, done.stderr
    folder = place / "datasets" / "Motions"
    assert f"Motions: 0.5 MB fetched from {web.url}{ZIP} into {folder}" in done.stderr
    (folder / "Motions_TRAIN.ts").write_bytes(b"@data")
    done = tsattn("train", "Motions", *size, "--out", "other")
    assert done.returncode == 2
    assert f"Error: {folder}: Motions_TRAIN.ts has 5 bytes and came with" in done.stderr
    assert "Type tsattn data download Motions to have it as it was." in done.stderr


def hears_ctrl_c() -> None:
    """A suite that runs in the background may have been told to ignore it, and so its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_leaves_at_once_with_130(web: Any, way: Way, tmp_path: Path, tsattn: Any, place: Path) -> None:
    web.rules[ZIP] = lambda n, honest: replace(honest, stall=20_000)
    command = [sys.executable, "-m", "tsattn", "data", "download", "Motions", "--mirror", f"{web.url}/mirror"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_ctrl_c,  # noqa: PLW1509 - it sets one signal and takes no lock
    )
    part = place / "partial/Motions/mirror-Motions.zip"
    until = time.monotonic() + 30
    while not (part.is_file() and part.stat().st_size == 20_000):
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "")
    assert part.stat().st_size == 20_000

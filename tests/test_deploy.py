"""docs/deploy.md: the container's environment is built and predicts, Node reads the same file alike."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.write_ts import write_ts
from tsattn.doctor.packages import OF_PREDICT
from tsattn.inference.session import open_model

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "deploy.md").read_text("utf-8")
SMALL = ["--epochs", "1", "--width", "8", "--heads", "2", "--layers", "1", "--tokens", "linear"]
LARGEST = 700 * 10**6


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def needed(names: set[str]) -> set[str]:
    """The packages and all that they ask for, by the metadata of what is installed here."""
    found: set[str] = set()
    while names:
        name = names.pop()
        found.add(name)
        try:
            asked = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            assert name == "onnxruntime"  # its GPU twin is here
            asked = importlib.metadata.requires("onnxruntime-gpu") or []
        for requirement in map(Requirement, asked):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                names |= {canonicalize_name(requirement.name)} - found
    return found


def block(language: str, section: str) -> str:
    part = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert found, f"docs/deploy.md, {section}: no block of {language}"
    return found[1]


def run(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, cwd=cwd, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.onnx of series of unequal length, and new.ts."""
    place = tmp_path_factory.mktemp("deploy")
    for typed in (
        ["train", "JapaneseVowels", *SMALL, "--out", str(place / "run")],
        ["export", "onnx", str(place / "run"), "-o", str(place / "model.onnx")],
    ):
        done = CliRunner().invoke(app, typed, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    cases = load_split("JapaneseVowels", "test", TableOptions()).collection.take(np.arange(0, 370, 25))
    write_ts(cases, place / "new.ts", "JapaneseVowels")
    return place


def test_the_requirements_are_what_predict_needs_in_the_tested_versions() -> None:
    known = pins("constraints.txt")
    expected = {name: known[name] for name in needed(set(map(canonicalize_name, OF_PREDICT)))}
    assert pins("deploy/requirements-predict.txt") == expected


@pytest.mark.slow
def test_the_container_predicts_without_torch(place: Path) -> None:
    lines = block("dockerfile", "Container").splitlines()
    home = place / "container"
    venv.create(home, with_pip=True)
    binaries = home / "bin"
    for line in lines:
        if line.startswith("RUN "):
            typed = line.removeprefix("RUN ").split()
            name, *words = [word.replace("/src", str(ROOT)) for word in typed]
            run(binaries / name, *words, cwd=place)
    (site,) = (home / "lib").glob("python*/site-packages")
    assert not {"torch", "aeon", "pandas", "sklearn", "onnx"} & {path.name for path in site.iterdir()}
    assert sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) < LARGEST
    (entry,) = [line.removeprefix("ENTRYPOINT ") for line in lines if line.startswith("ENTRYPOINT")]
    name, *words = [word.replace("/model.onnx", str(place / "model.onnx")) for word in json.loads(entry)]
    run(binaries / name, *words, "new.ts", "-o", "there.csv", "--proba", cwd=place)
    done = CliRunner().invoke(
        app, [*words, str(place / "new.ts"), "-o", str(place / "here.csv"), "--proba"], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    there, here = ((place / name).read_text("utf-8").splitlines() for name in ("there.csv", "here.csv"))
    assert [row.split(",")[:2] for row in there] == [row.split(",")[:2] for row in here]
    shares = [np.array([row.split(",")[2:] for row in rows[1:]], float) for rows in (there, here)]
    assert np.abs(shares[0] - shares[1]).max() < 2e-5
    assert len(here) == 16


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")
def test_node_gives_the_same_probabilities(place: Path) -> None:
    run("npm", "init", "-y", cwd=place)
    run(*block("sh", "Node").split(), cwd=place)
    (place / "classify.js").write_text(block("js", "Node"), "utf-8")
    cases = load_split("JapaneseVowels", "test", TableOptions()).collection.take(np.arange(0, 370, 25))
    values = cases.values.copy()
    values[0, :, 3] = np.nan
    values[1, 0, 5] = np.nan
    written = [
        [[None if math.isnan(value) else value for value in row[:length]] for row in case.tolist()]
        for case, length in zip(values, cases.lengths, strict=True)
    ]
    (place / "cases.json").write_text(json.dumps(written), "utf-8")
    printed = run("node", "classify.js", "model.onnx", "cases.json", cwd=place)
    shares = np.array([json.loads(line) for line in printed.splitlines()])
    assert np.abs(shares - open_model(place / "model.onnx").probabilities(values)).max() < 1e-5

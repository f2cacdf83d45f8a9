"""The wheel, installed in an environment of its own and used away from the checkout, without network."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tsattn import __version__

ROOT = Path(__file__).parents[1]

Tool = Callable[..., str]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("build") is None or importlib.util.find_spec("hatchling") is None,
    reason="build and hatchling are in the extra `dev`",
)


def run(*command: str | Path, cwd: Path) -> str:
    """What a command that must succeed writes to stdout; it hears of no PYTHONPATH."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, cwd=cwd, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, ROOT, cwd=place)
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment in a path with a space: the wheel, and this one's packages for the rest."""
    place = tmp_path_factory.mktemp("an environment")
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel, cwd=place)
    # After the installation, or pip would take this environment's tsattn for the one it is to install.
    # A path that comes from a .pth file stands behind the wheel, and .pth files in it (those of an
    # editable installation) are not read.
    paths = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site,) = (place / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")
    return place


@pytest.fixture
def python(environment: Path, tmp_path: Path) -> Tool:
    """python(*words): stdout of the new environment's Python, run in an empty folder."""
    return lambda *words: run(environment / "bin" / "python", *words, cwd=tmp_path)


@pytest.fixture
def tsattn(environment: Path, tmp_path: Path) -> Tool:
    """tsattn(*words): stdout of the new environment's console script, run in an empty folder."""
    return lambda *words: run(environment / "bin" / "tsattn", *words, cwd=tmp_path)


def test_it_holds_the_package_and_its_data_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"tsattn", f"tsattn-{__version__}.dist-info"}
    for name in ("tsattn/data/datasets.yaml", "tsattn/presets/base.yaml", "tsattn/py.typed"):
        assert name in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_it_is_the_wheel_that_is_imported(python: Tool, environment: Path) -> None:
    found = Path(python("-c", "import tsattn; print(tsattn.__file__)").strip())
    assert found.is_relative_to(environment)
    assert not found.is_relative_to(ROOT)


def test_both_ways_to_start_it(python: Tool, tsattn: Tool) -> None:
    assert tsattn("--version") == f"tsattn {__version__}\n"
    assert "Usage: tsattn" in python("-m", "tsattn", "--help")


def test_the_registry_is_found(python: Tool) -> None:
    code = "from tsattn.data.registry import load_registry; print('JapaneseVowels' in load_registry())"
    assert python("-c", code) == "True\n"


def test_the_main_job(tsattn: Tool, tmp_path: Path) -> None:
    """Train, judge, export and predict, from nothing but the wheel."""
    small = ("--tokens", "linear", "--attention", "softmax", "--width", "16", "--layers", "1")
    tsattn("train", "BasicMotions", *small, "--epochs", "1", "--out", "run")
    assert "accuracy" in tsattn("eval", "run")
    tsattn("export", "onnx", "run", "-o", "model.onnx")
    rows = ["id," + ",".join(f"{name}_{t}" for name in channels_of(tmp_path) for t in range(4))]
    rows += [f"case {case}," + ",".join(["0.25"] * 24) for case in range(3)]
    (tmp_path / "cases.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    tsattn("predict", "model.onnx", "cases.csv", "-o", "predictions.csv")
    lines = (tmp_path / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("id,label,confidence")
    assert [line.split(",")[0] for line in lines[1:]] == ["case 0", "case 1", "case 2"]


def channels_of(place: Path) -> tuple[str, ...]:
    from tsattn.inference.session import open_model

    return open_model(place / "model.onnx", "cpu").card.channels

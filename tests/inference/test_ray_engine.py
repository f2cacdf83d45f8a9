"""--engine ray: which files go where, object stores by name, and workers that write what a local run does."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.write_tables import write_long_csv
from tsattn.data.write_ts import write_ts
from tsattn.errors import InputError
from tsattn.inference import places
from tsattn.inference.ray_engine import Cluster, connected

SMALL = ["--epochs", "1", "--width", "8", "--heads", "2", "--layers", "1", "--tokens", "linear"]


def words(files: list[Path]) -> list[str]:
    return [str(file) for file in files]


def made(place: Path, *names: str) -> list[Path]:
    files = [place / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("id,x\n", "utf-8")
    return files


def test_an_output_for_each_file_below_the_folders_in_which_they_differ(tmp_path: Path) -> None:
    files = made(tmp_path, "in/may/a.csv", "in/june/a.csv.gz", "in/june/b.ts")
    out = str(tmp_path / "out")
    assert [output for _, output in places.outputs_of(words(files), out, "parquet")] == [
        f"{out}/may/a.parquet",
        f"{out}/june/a.parquet",
        f"{out}/june/b.parquet",
    ]
    assert places.outputs_of(words(files[1:]), out, "csv")[0][1] == f"{out}/a.csv"
    assert places.outputs_of([str(tmp_path / "in")], out, "csv")[-1] == (str(files[0]), f"{out}/may/a.csv")


def test_names_that_cannot_be(tmp_path: Path) -> None:
    one, other = made(tmp_path, "a.csv", "a.ts")
    for typed, out, message in (
        ([str(one), str(other)], "out", r"a\.csv and .*a\.ts would both be written to .*a\.csv"),
        ([str(one)], str(tmp_path), "is one of the files to predict"),
        ([str(one)], str(other), "is a file.*type a folder"),
        (["-"], "out", "stands for a stream"),
        (["nowhere://a/b.csv"], "out", "nowhere://a/b.csv: cannot be reached"),
        ([f"file://{tmp_path}/none"], "out", "no such file, and no folder"),
    ):
        with pytest.raises(InputError, match=message):
            places.outputs_of(typed, out, "csv")


def test_files_by_names_with_a_scheme(tmp_path: Path) -> None:
    made(tmp_path, "in/may/a.csv", "in/june/b.csv", "in/read.me")
    folder = f"file://{tmp_path}/in"
    pairs = places.outputs_of([folder], f"file://{tmp_path}/out", "csv")
    assert pairs == [
        (f"{folder}/june/b.csv", f"file://{tmp_path}/out/june/b.csv"),
        (f"{folder}/may/a.csv", f"file://{tmp_path}/out/may/a.csv"),
    ]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    copy = places.brought(pairs[0][0], scratch)
    assert copy.parent == scratch
    assert copy.read_text("utf-8") == "id,x\n"
    assert not places.exists(pairs[0][1])
    places.delivered(copy, pairs[0][1])
    assert places.exists(pairs[0][1])
    assert [path.name for path in (tmp_path / "out" / "june").iterdir()] == ["b.csv"]
    with pytest.raises(InputError, match=r"may/none\.csv: "):
        places.brought(f"{folder}/may/none.csv", scratch)


def test_what_is_missing_is_said_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"takes a model file\. Make one: `tsattn export onnx"):
        predict(tmp_path, "x.csv", "-o", "out", "--engine", "ray")
    with pytest.raises(InputError, match="type --engine ray too"):
        predict(tmp_path, "x.csv", "-o", "out", "--address", "auto")
    with pytest.raises(InputError, match="leave --providers away"):
        predict(tmp_path, "x.csv", "-o", "out", "--engine", "ray", "--providers", "cuda")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'tsattn\[ray\]'"), connected(Cluster()):
        pass


def predict(*typed: object) -> str:
    done = CliRunner().invoke(app, ["predict", *map(str, typed)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is in the extra `ray`")
def test_two_workers_write_what_a_local_run_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cases = load_split("BasicMotions", "test", TableOptions()).collection
    for name in ("may", "june"):
        Path("in", name).mkdir(parents=True)
        write_long_csv(cases, Path("in", name, "a.csv"))
    write_ts(cases, Path("in", "june", "b.ts"), "BasicMotions")
    for typed in (
        ["train", "BasicMotions", *SMALL, "--out", "run"],
        ["export", "onnx", "run", "-o", "m.onnx"],
    ):
        assert CliRunner().invoke(app, typed, catch_exceptions=False).exit_code == 0
    # A folder by its path and one by a name with a scheme; then a file that cannot be read, beside others.
    typed = ["m.onnx", "in/may", f"file://{tmp_path}/in/june", "-o", f"file://{tmp_path}/out", "--proba"]
    answer = json.loads(in_ray(*typed, "--json"))
    assert (answer["cases"], answer["provider"]) == (120, "CPUExecutionProvider")
    files = ("may/a.csv", "june/a.csv", "june/b.ts")
    for file in files:
        predict("m.onnx", f"in/{file}", "-o", "local.csv", "--proba")
        assert Path("local.csv").read_bytes() == Path("out", file).with_suffix(".csv").read_bytes()
    made(tmp_path, "in/may/bad.csv")
    shutil.rmtree("out/may")
    kept = Path("out/june/b.csv").stat().st_mtime_ns
    said = in_ray("m.onnx", "in", "-o", "out", "--proba", "--resume", code=2)
    assert "1 of 2 files could not be predicted; the others are written" in said
    assert "bad.csv" in said
    assert "2 of 4 files have their output already" in said
    assert Path("out/may/a.csv").is_file()
    assert Path("out/june/b.csv").stat().st_mtime_ns == kept


def in_ray(*typed: str, code: int = 0) -> str:
    """stdout, or stderr where it fails, of a process with a Ray on this machine, a worker a core."""
    done = subprocess.run(
        [sys.executable, "-m", "tsattn", "predict", *typed, "--engine", "ray"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout

"""--resume goes on with what a killed process wrote: no case is lost and none is there twice."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tsattn.data.columns import TableOptions
from tsattn.errors import InputError
from tsattn.inference import output as output_of
from tsattn.inference.pipeline import Wanted, predict_files
from tsattn.inference.session import OnnxPredictor, open_model

MakeModel = Callable[..., Path]
SCRIPT = Path(__file__).with_name("resuming.py")


@pytest.fixture
def model(make_model: MakeModel) -> Path:
    return make_model(("a", "b", "c"), ("x", "y"))


def wide(path: Path, cases: range) -> Path:
    generator = np.random.default_rng(cases.start)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "site", *(f"{c}_{t}" for c in "xy" for t in range(3))])
        for n in cases:
            values = ["bad"] if n % 500 == 77 else [f"{generator.normal():.3f}"]
            writer.writerow([f"case {n}", f"s{n}", *values, *(f"{v:.3f}" for v in generator.normal(size=5))])
    return path


def long(path: Path, cases: range) -> Path:
    generator = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "time", "x", "y", "site"])
        for n in cases:
            for t in range(2 + n % 3):
                writer.writerow([f"case {n}", t, *(f"{v:.3f}" for v in generator.normal(size=2)), f"s{n}"])
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="forks and kills")
@pytest.mark.parametrize(("form", "kills"), [("csv", 14), ("parquet", 6)])
def test_killed_at_random_moments(form: str, kills: int, model: Path, tmp_path: Path) -> None:
    if form == "csv":
        files = [wide(tmp_path / "1.csv", range(4000)), wide(tmp_path / "2.csv", range(4000, 9000))]
        cases = 9000
    else:
        files, cases = [long(tmp_path / "long.csv", range(4500))], 4500
    out = tmp_path / f"out.{form}"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(model), str(out), str(kills), *map(str, files)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["killed"] == kills
    assert 0 < said["resumed"] < cases
    assert f".out.{form}.part" in said["left"]
    assert f".out.{form}.part.json" in said["left"]
    assert not list(tmp_path.glob(f".out.{form}.*"))
    if form == "csv":
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = pq.read_table(out).to_pylist()
    assert [row["id"] for row in rows] == [f"case {n}" for n in range(cases)]
    assert [row["site"] for row in rows] == [f"s{n}" for n in range(cases)]
    faulty = [n for n, row in enumerate(rows) if row["error"]]
    assert faulty == ([n for n in range(cases) if n % 500 == 77] if form == "csv" else [])
    whole = tmp_path / "whole.csv"
    predictor = open_model(model, "cpu", 2, parallel_calls=True)
    wanted = Wanted(on_error="mark", keep=("site",))
    summary = predict_files(predictor, files, whole, TableOptions(), batch_size=64, wanted=wanted)
    with whole.open(newline="") as file:
        for row, other in zip(rows, csv.DictReader(file), strict=True):
            assert (row["label"] or "") == other["label"]
            if other["confidence"]:
                assert float(row["confidence"]) == pytest.approx(float(other["confidence"]), abs=2e-6)
    assert summary.marked == len(faulty)


class Stops(OnnxPredictor):
    """Ends with an error after some calls."""

    calls = 0

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """As those of the model, for a while."""
        self.calls += 1
        if self.calls > 40:
            raise InputError("enough")
        return super().probabilities(values)


def test_what_is_torn_is_cut_and_what_is_other_refused(
    model: Path, make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_of, "_SECONDS", 0.0)
    source, out = wide(tmp_path / "in.csv", range(1000)), tmp_path / "o.csv"
    predictor = open_model(model, "cpu", 1)

    def go_on(one: OnnxPredictor = predictor, **how: object) -> int:
        wanted = Wanted(resume=True, on_error="skip", **how)  # type: ignore[arg-type]
        return predict_files(
            one, [source], out, TableOptions(), batch_size=8, wanted=wanted, threads=1
        ).resumed

    stops = open_model(model, "cpu", 1)
    stops.__class__ = Stops
    with pytest.raises(InputError, match="enough"):
        go_on(stops)
    assert not out.exists()
    partial, journal = tmp_path / ".o.csv.part", tmp_path / ".o.csv.part.json"
    noted = json.loads(journal.read_text())
    assert noted["state"]["written"] > 0
    with partial.open("ab") as file:
        file.write(b"case 1")
    with pytest.raises(InputError, match="begun with other model than now"):
        go_on(open_model(make_model(("a", "b", "d"), ("x", "y"), name="other.onnx"), "cpu", 1))
    with pytest.raises(InputError, match="begun with other options than now"):
        go_on(proba=True)
    os.utime(source, ns=(1, 1))
    with pytest.raises(InputError, match="begun with other files than now"):
        go_on()
    os.utime(source, ns=(noted["identity"]["files"][0][2],) * 2)
    assert go_on() == noted["state"]["written"]
    with out.open(newline="") as lines:
        ids = [row["id"] for row in csv.DictReader(lines)]
    assert ids == [f"case {n}" for n in range(1000) if n % 500 != 77]
    assert not partial.exists()
    assert go_on() == 0  # a whole output is no partial one: it is made anew


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"identity": [1]}, "part.json is damaged"),
        ({"bytes": -1}, "part.json is damaged"),
        ({"state": None}, "part.json is damaged"),
        ({"state": {}}, "of another tsattn"),
        ({"state": {"rows": "x", "outside": {}}}, "of another tsattn"),
        ({"state": {"rows": -1, "outside": {}}}, "of another tsattn"),
        ({"state": {"lines": 1, "outside": {}}}, "of another tsattn"),
        ({"state": {"outside": {"height": 1}}}, "of another tsattn"),
    ],
)
def test_a_journal_that_cannot_be_gone_on_with(
    change: dict[str, object],
    said: str,
    model: Path,
    make_model: MakeModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output_of, "_SECONDS", 0.0)
    source, out = wide(tmp_path / "in.csv", range(400)), tmp_path / "o.csv"
    how = {"batch_size": 8, "wanted": Wanted(resume=True, on_error="skip"), "threads": 1}
    stops = open_model(model, "cpu", 1)
    stops.__class__ = Stops
    with pytest.raises(InputError, match="enough"):
        predict_files(stops, [source], out, TableOptions(), **how)  # type: ignore[arg-type]
    journal = tmp_path / ".o.csv.part.json"
    journal.write_text(json.dumps(json.loads(journal.read_text()) | change))
    with pytest.raises(InputError, match=said):
        predict_files(open_model(model, "cpu", 1), [source], out, TableOptions(), **how)  # type: ignore[arg-type]
    assert not out.exists()
    assert (tmp_path / ".o.csv.part").exists()


def test_many_files_are_gone_on_with_where_the_rows_end(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading is ahead of writing by whole files."""
    monkeypatch.setattr(output_of, "_SECONDS", 0.0)
    files = [wide(tmp_path / f"{n:02}.csv", range(10 * n, 10 * n + 10)) for n in range(50)]
    out = tmp_path / "o.csv"
    how = {"batch_size": 4, "wanted": Wanted(resume=True, on_error="mark"), "threads": 2}
    stops = open_model(model, "cpu", 1)
    stops.__class__ = Stops
    with pytest.raises(InputError, match="enough"):
        predict_files(stops, files, out, TableOptions(), **how)  # type: ignore[arg-type]
    state = json.loads((tmp_path / ".o.csv.part.json").read_text())["state"]
    assert len(state["files"]) == state["rows"] // 10
    done = predict_files(open_model(model, "cpu", 1), files, out, TableOptions(), **how)  # type: ignore[arg-type]
    assert done.resumed == state["written"] > 10
    with out.open(newline="") as lines:
        assert [row["id"] for row in csv.DictReader(lines)] == [f"case {n}" for n in range(500)]

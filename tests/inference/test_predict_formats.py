"""A model file answers the same whatever form the cases come in."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.write_npz import write_npz
from tsattn.data.write_tables import write_long_csv, write_wide_csv

MakeModel = Callable[..., Path]


def predicted(model: Path, *files: Path) -> list[dict[str, str]]:
    """The rows of one `tsattn predict`, and that nothing heavy was imported for it."""
    out = model.with_name("out.csv")
    program = (
        "import sys\nfrom tsattn.cli.app import main\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = {'pandas', 'torch', 'aeon', 'sklearn'} & set(sys.modules)\n"
        "    print('\\n'.join(heavy), file=sys.stderr, end='')\n"
    )
    words = [sys.executable, "-c", program, "predict", str(model), *map(str, files), "-o", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[1:] == [], done.stderr  # the first line names the model
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def write(cases: Collection, form: str, folder: Path) -> Path:
    path = folder / f"v{form}"
    if form == ".npz":
        write_npz(cases, path)
        return path
    if form == ".npy":
        np.save(folder / "X.npy", cases.values)
        return folder / "X.npy"
    write_long = write_wide_csv if form == ".csv.gz" else write_long_csv
    write_long(cases, folder / "plain.csv")
    plain = (folder / "plain.csv").read_bytes()
    if form == ".csv.gz":
        path.write_bytes(gzip.compress(plain))
    else:
        strings = pa_csv.ConvertOptions(column_types={"id": pa.string(), "label": pa.string()})
        table = pa_csv.read_csv(folder / "plain.csv", convert_options=strings)
        pq.write_table(table, path) if form == ".parquet" else feather.write_feather(table, str(path))
    return path


@pytest.mark.parametrize("form", [".csv.gz", ".parquet", ".feather", ".npz", ".npy"])
def test_every_form_gives_the_rows_of_the_csv(make_model: MakeModel, tmp_path: Path, form: str) -> None:
    cases = load_split("JapaneseVowels", "test", TableOptions()).collection.take(np.arange(0, 370, 10))
    model = make_model(cases.classes, cases.channels)
    write_long_csv(cases, tmp_path / "v.csv")
    expected = predicted(model, tmp_path / "v.csv")
    rows = predicted(model, write(cases, form, tmp_path))
    if form == ".npy":  # has no ids
        expected = [row | {"id": str(i)} for i, row in enumerate(expected)]
    assert [row["id"] for row in rows] == [row["id"] for row in expected]
    assert [row["label"] for row in rows] == [row["label"] for row in expected]
    for row, other in zip(rows, expected, strict=True):
        assert float(row["confidence"]) == pytest.approx(float(other["confidence"]), abs=1e-6)


def test_files_that_are_a_case_each(make_model: MakeModel, tmp_path: Path) -> None:
    """The model file knows from its training that a file is a case."""
    cases = load_split("BasicMotions", "test", TableOptions()).collection.take(np.arange(0, 40, 10))
    table = {"layout": "file", "time": "time"}
    model = make_model(cases.classes, cases.channels, table=table, lengths=(100, 100, 100))
    files = []
    for name, series in zip(cases.ids, cases.values, strict=True):
        files.append(tmp_path / f"run{name}.csv")
        columns = {"time": np.arange(series.shape[1])} | dict(zip(cases.channels, series, strict=True))
        pa_csv.write_csv(pa.table(columns), files[-1])
    rows = predicted(model, *files)
    assert [row["id"] for row in rows] == [f"run{name}" for name in cases.ids]
    write_long_csv(cases, tmp_path / "all.csv")
    assert [row["label"] for row in predicted(model, tmp_path / "all.csv")] == [row["label"] for row in rows]

"""The pipeline: the same answers from every form, faulty rows, kept columns, order, what is counted."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.write_npz import write_npz
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.data.write_ts import write_ts
from tsattn.errors import InputError
from tsattn.inference.pipeline import PredictSummary, Wanted, predict_files
from tsattn.inference.session import OnnxPredictor, open_model

MakeModel = Callable[..., Path]
CHANNELS = ("x", "y")


@pytest.fixture(scope="module")
def vowels() -> Collection:
    """Every third test case of JapaneseVowels: 12 channels, unequal lengths."""
    return load_split("JapaneseVowels", "test", TableOptions()).collection.take(np.arange(0, 370, 3))


@pytest.fixture
def small(make_model: MakeModel) -> OnnxPredictor:
    """A model of the channels x and y."""
    return open_model(make_model(("a", "b", "c"), CHANNELS), "cpu", 2, parallel_calls=True)


def predicted(
    predictor: OnnxPredictor, source: Path | bytes, **how: Any
) -> tuple[list[dict[str, Any]], PredictSummary]:
    """The rows as JSON says them, and the summary; batches are small so that there are many."""
    roles = {name: how.pop(name) for name in ("id", "time", "layout", "label") if name in how}
    out = io.BytesIO()
    wanted = Wanted(format="jsonl", proba=True, **how)
    stdin = io.BytesIO(source) if isinstance(source, bytes) else None
    files = [Path("-") if isinstance(source, bytes) else source]
    summary = predict_files(
        predictor, files, out, TableOptions(**roles), batch_size=5, wanted=wanted, threads=2, stdin=stdin
    )
    return [json.loads(line) for line in out.getvalue().splitlines()], summary


def assert_alike(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same rows; numbers of cases that were computed beside other ones may differ in the last digit."""
    assert [list(row) for row in rows] == [list(row) for row in expected]
    for row, other in zip(rows, expected, strict=True):
        for name, value in row.items():
            near = pytest.approx(other[name], abs=2e-6) if isinstance(other[name], float) else other[name]
            assert value == near, (row, other)


def shares(rows: list[dict[str, Any]]) -> np.ndarray:
    return np.array([[value for name, value in row.items() if "probability" in name] for row in rows], float)


def test_every_form_gives_the_same_answers(make_model: MakeModel, vowels: Collection, tmp_path: Path) -> None:
    model = open_model(make_model(vowels.classes, vowels.channels), "cpu", 2, parallel_calls=True)
    expected = model.probabilities(vowels.values)
    write_long_csv(vowels, tmp_path / "long.csv")
    write_wide_csv(vowels, tmp_path / "wide.csv")
    write_ts(vowels, tmp_path / "v.ts")
    write_npz(vowels, tmp_path / "v.npz")
    wide, long = (tmp_path / "wide.csv").read_bytes(), (tmp_path / "long.csv").read_bytes()
    (tmp_path / "wide.csv.gz").write_bytes(gzip.compress(wide))
    with pa.CompressedOutputStream(str(tmp_path / "long.csv.zst"), "zstd") as packed:
        packed.write(long)
    for name in ("wide", "long"):
        strings = pa_csv.ConvertOptions(column_types={"id": pa.string(), "label": pa.string()})
        table = pa_csv.read_csv(tmp_path / f"{name}.csv", convert_options=strings)
        pq.write_table(table, tmp_path / f"{name}.parquet")
    files = ("wide.csv", "long.csv", "wide.csv.gz", "long.csv.zst", "wide.parquet", "long.parquet", "v.ts")
    sources: list[Path | bytes] = [*(tmp_path / name for name in files), tmp_path / "v.npz"]
    for source in [*sources, wide, gzip.compress(long)]:
        rows, summary = predicted(model, source)
        ids = tuple(map(str, range(len(vowels)))) if source == tmp_path / "v.ts" else vowels.ids
        assert tuple(row["id"] for row in rows) == ids, source
        np.testing.assert_allclose(shares(rows), expected, atol=1e-5)
        assert [row["label"] for row in rows] == [vowels.classes[at] for at in expected.argmax(axis=1)]
        assert summary.cases == len(vowels)


def test_channels_are_matched_by_name(
    small: OnnxPredictor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = {
        "as trained.csv": "id,x_0,x_1,y_0,y_1\np,1,2,3,4\nq,5,6,7,8\n",
        "turned.csv": "id,y_0,y_1,x_0,x_1\np,3,4,1,2\nq,7,8,5,6\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    values = np.array([[[3, 4], [1, 2]], [[7, 8], [5, 6]]], np.float32)
    np.savez(tmp_path / "turned.npz", X=values, channels=np.array(["y", "x"]), ids=np.array(["p", "q"]))
    expected, _ = predicted(small, tmp_path / "as trained.csv")
    assert "another order" not in caplog.text
    assert_alike(predicted(small, tmp_path / "turned.csv")[0], expected)
    assert "turned.csv: the channels stand in another order than in training; they are matched" in caplog.text
    assert_alike(predicted(small, tmp_path / "turned.npz")[0], expected)


def wide_rows(count: int) -> list[list[str]]:
    generator = np.random.default_rng(0)
    return [[f"case {n}", *(f"{v:.3f}" for v in generator.normal(size=6))] for n in range(count)]


WIDE_HEADER = ["id", "x_0", "x_1", "x_2", "y_0", "y_1", "y_2"]


def written(path: Path, header: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def test_faulty_rows_of_a_wide_table(small: OnnxPredictor, tmp_path: Path) -> None:
    rows = wide_rows(60)
    expected, _ = predicted(small, written(tmp_path / "good.csv", WIDE_HEADER, rows))
    faults = {7: "line 9", 20: "2 fields", 21: "8 fields", 22: "inf", 40: "1e39", 59: "'high'"}
    rows[7][2] = "high\nup"
    rows[20] = rows[20][:2]
    rows[21] = [*rows[21], "9"]
    rows[22][1], rows[40][6], rows[59][3] = "inf", "1e39", "high"
    source = written(tmp_path / "bad.csv", WIDE_HEADER, rows)
    with pytest.raises(InputError, match=r"bad\.csv:9: column 'x_1' holds .*--on-error mark"):
        predicted(small, source)
    marked, summary = predicted(small, source, on_error="mark")
    assert (summary.cases, summary.marked, summary.skipped) == (60, 6, 0)
    for at, row in enumerate(marked):
        if at not in faults:
            assert_alike([row], [expected[at] | {"error": None}])
            continue
        line = at + 2 + (at > 7)  # one cell holds a line's end
        assert row["error"].startswith(f"{source}:{line}: "), row
        assert (row["id"], row["label"], row["confidence"]) == (f"case {at}", None, None)
        assert faults[at] in row["error"] or at == 7
    skipped, summary = predicted(small, source, on_error="skip")
    assert_alike(skipped, [row for at, row in enumerate(expected) if at not in faults])
    assert (summary.cases, summary.marked, summary.skipped) == (54, 0, 6)


def test_faulty_rows_of_a_long_table_are_their_cases(small: OnnxPredictor, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    rows = [
        [f"c{n}", str(t), *(f"{v:.3f}" for v in generator.normal(size=2))]
        for n in range(40)
        for t in range(2 + n % 4)
    ]
    header = ["id", "time", "x", "y"]
    expected, _ = predicted(small, written(tmp_path / "good.csv", header, rows))
    first = {f"c{n}": next(i for i, row in enumerate(rows) if row[0] == f"c{n}") for n in range(40)}
    rows[first["c3"] + 1][2] = "none at all"
    rows[first["c5"]][1] = "noon"
    rows[first["c6"] + 1][1] = "0"
    rows[first["c9"] + 1] = rows[first["c9"] + 1][:3]
    for nameless in rows[first["c12"] : first["c13"]]:
        nameless[0] = ""
    source = written(tmp_path / "bad.csv", header, rows)
    with pytest.raises(InputError, match=rf"bad\.csv:{first['c3'] + 3}: column 'x' holds 'none at all'"):
        predicted(small, source)
    marked, summary = predicted(small, source, on_error="mark")
    assert summary.marked == 5
    said = {3: "none at all", 5: "'noon'", 6: "twice, first at", 9: "3 fields", 12: "no id in column 'id'"}
    for at, row in enumerate(marked):
        if at in said:
            assert said[at] in row["error"]
            assert row["label"] is None
        else:
            assert_alike([row], [expected[at] | {"error": None}])
    skipped, _ = predicted(small, source, on_error="skip")
    assert_alike(skipped, [row for at, row in enumerate(expected) if at not in said])


def test_an_id_that_comes_back_is_named_and_sort_puts_it_together(
    small: OnnxPredictor, tmp_path: Path
) -> None:
    generator = np.random.default_rng(2)
    rows = [
        [f"c{n}", str(t), f"{generator.normal():.3f}", f"{n}", f"s{n}"] for n in range(900) for t in range(3)
    ]
    header = ["id", "time", "x", "y", "site"]
    expected, _ = predicted(small, written(tmp_path / "good.csv", header, rows), keep=("site",))
    mixed = sorted(rows, key=lambda row: random.Random(str(row[:2])).random())
    source = written(tmp_path / "mixed.csv", header, mixed)
    with pytest.raises(InputError, match=r"mixed\.csv:\d+: case 'c\d+' comes back .*type --sort"):
        predicted(small, source)
    found, _ = predicted(small, source, sort=True, keep=("site",))
    order = list(dict.fromkeys(row[0] for row in mixed))
    assert [row["id"] for row in found] == order
    by_id = {row["id"]: row for row in expected}
    assert_alike(found, [by_id[name] for name in order])
    mixed[5][2] = "?!"
    marked, _ = predicted(small, written(source, header, mixed), sort=True, on_error="mark")
    assert [row["id"] for row in marked if row["error"]] == [mixed[5][0]]


def test_a_file_that_is_one_case_of_many_pieces(small: OnnxPredictor, tmp_path: Path) -> None:
    """Of a long table too: a case of more rows than a piece has."""
    values = np.random.default_rng(3).normal(size=(2, 30_000)).astype(np.float32)
    rows = [[str(t), *(f"{v:.5f}" for v in values[:, t])] for t in range(30_000)]
    file = written(tmp_path / "press 7.csv", ["time", "x", "y"], rows)
    long = written(
        tmp_path / "l.csv", ["id", "time", "x", "y"], [["one", *row] for row in rows] + [["two", *rows[0]]]
    )
    (row,), _ = predicted(small, file, layout="file")
    again, _ = predicted(small, long)
    assert row["id"] == "press 7"
    assert [one["id"] for one in again] == ["one", "two"]
    np.testing.assert_allclose(shares([row]), small.probabilities(values[None]), atol=1e-5)
    np.testing.assert_allclose(shares(again)[:1], shares([row]), atol=1e-6)


def test_a_row_of_other_width_is_its_neighbours_case(small: OnnxPredictor, tmp_path: Path) -> None:
    rows = [[f"c{n}", str(t), "0.5", "1"] for n in range(6) for t in range(3)]
    rows[4] = ["c0", "1"]  # cut, and its id torn from c1
    rows[10] = ["0.25", "c3", "1", "0.5", "1"]
    marked, _ = predicted(
        small, written(tmp_path / "in.csv", ["id", "time", "x", "y"], rows), on_error="mark"
    )
    assert [row["id"] for row in marked] == [f"c{n}" for n in range(6)]
    assert [row["id"] for row in marked if row["error"]] == ["c1", "c3"]


def test_columns_are_carried_through_in_every_form_of_output(small: OnnxPredictor, tmp_path: Path) -> None:
    rows = [[*row, "north, wing", str(at)] for at, row in enumerate(wide_rows(12))]
    rows[3][1] = "bad"
    source = written(tmp_path / "in.csv", [*WIDE_HEADER, "site", "label"], rows)
    tables = {}
    for name in ("o.csv", "o.jsonl", "o.parquet"):
        how = Wanted(proba=True, keep=("site", "label"), on_error="mark")
        predict_files(small, [source], tmp_path / name, TableOptions(), batch_size=4, wanted=how, threads=2)
    with (tmp_path / "o.csv").open(newline="") as file:
        tables["csv"] = list(csv.DictReader(file))
    tables["jsonl"] = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    tables["parquet"] = pq.read_table(tmp_path / "o.parquet").to_pylist()
    names = ["id", "label", "confidence", *(f"probability_{c}" for c in "abc"), "site", "kept_label", "error"]
    for table in tables.values():
        assert list(table[0]) == names
        assert [row["site"] for row in table] == ["north, wing"] * 12
        assert [row["kept_label"] for row in table] == list(map(str, range(12)))
        assert [bool(row["error"]) for row in table] == [at == 3 for at in range(12)]
    for at, (row, other, third) in enumerate(zip(*tables.values(), strict=True)):
        if at == 3:
            assert row["label"] == row["confidence"] == ""
            assert [other["label"], third["confidence"], third["probability_b"]] == [None] * 3
        else:
            assert row["label"] == other["label"] == third["label"]
            assert float(row["confidence"]) == pytest.approx(other["confidence"], abs=1e-6)
            assert third["probability_c"] == pytest.approx(other["probability_c"], abs=1e-6)
    with pytest.raises(InputError, match="no column 'nobody'"):
        predicted(small, source, keep=("nobody",), on_error="skip")
    with pytest.raises(InputError, match="--keep x_0 is one of the values"):
        predicted(small, source, keep=("x_0",), on_error="skip")


def test_cases_unlike_those_of_training_are_counted(make_model: MakeModel, tmp_path: Path) -> None:
    path = make_model(
        ("a", "b"), CHANNELS, lengths=(2, 2, 3), least=(-1.0, 0.0), greatest=(1.0, 2.0), missing=0.25
    )
    rows = [
        ["within", "1", "0", "-1", "2", "0", "0"],
        ["short", "1", "", "", "2", "", ""],
        ["one gap", "1", "", "0", "1", "1", "1"],
        ["x too high", "1.5", "0", "0", "0", "0", "0"],
        ["y too low", "1", "0", "0", "0", "0", "-0.1"],
        ["gaps", "1", "", "", "", "1", "1"],
        ["nothing", "", "", "", "", "", ""],
    ]
    source = written(tmp_path / "in.csv", WIDE_HEADER, rows)
    _, summary = predicted(open_model(path, "cpu", 2, parallel_calls=True), source)
    assert summary.outside.as_dict() == {"length": 2, "range": 2, "missing": 2}
    out = tmp_path / "o.csv"
    done = CliRunner().invoke(app, ["predict", str(path), str(source), "-o", str(out), "--json"])
    assert json.loads(done.stdout)["outside"] == {"length": 2, "range": 2, "missing": 2}
    assert "2 shorter or longer than any in training; 2 with a value outside" in done.stderr


def test_an_answer_below_the_threshold_of_the_file_is_unknown(
    small: OnnxPredictor, make_model: MakeModel, tmp_path: Path
) -> None:
    source = written(tmp_path / "in.csv", WIDE_HEADER, wide_rows(40))
    plain, _ = predicted(small, source)
    middle = float(np.median([row["confidence"] for row in plain]))
    careful = make_model(("a", "b", "c"), CHANNELS, unknown_below=middle)
    rows, _ = predicted(open_model(careful, "cpu", 2, parallel_calls=True), source)
    for row, before in zip(rows, plain, strict=True):
        if abs(row["confidence"] - middle) > 1e-5:
            assert row["label"] == (before["label"] if row["confidence"] > middle else "unknown")
        assert {**row, "label": ""} == {**before, "label": ""}
    assert {row["label"] for row in rows} > {"unknown"}


def test_patterns_folders_and_stdin(make_model: MakeModel, tmp_path: Path) -> None:
    model, data = make_model(("a", "b", "c"), CHANNELS), tmp_path / "data"
    data.mkdir()
    for name in ("b.csv", "a.csv", "c.csv"):
        written(data / name, WIDE_HEADER, [[f"{name}{row[0]}", *row[1:]] for row in wide_rows(3)])
    out = data / "out.csv"
    ids = {}
    for key, words in {
        "folder": [str(data)],
        "pattern": [str(data / "[ab].csv")],
        "again": [str(data)],
    }.items():
        done = CliRunner().invoke(app, ["predict", str(model), *words, "-o", str(out), "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["output"] == str(out)
        with out.open(newline="") as file:
            ids[key] = [row["id"] for row in csv.DictReader(file)]
    assert ids["folder"] == ids["again"] == [f"{n}.csvcase {i}" for n in "abc" for i in range(3)]
    assert ids["pattern"] == ids["folder"][:6]
    words = ["predict", str(model), "-", "-o", "-", "--format", "jsonl", "--on-error", "skip"]
    text = (data / "a.csv").read_bytes() + b"last,1,2,3,4,5\n"
    done = CliRunner().invoke(app, words, input=text)
    assert done.exit_code == 3, done.output
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ids["folder"][:3]
    assert "1 of 4 cases cannot be read and are left out" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in.csv", "-o", "-", "--json"], "both write to stdout"),
        (["in.csv", "-o", "-", "--format", "parquet"], "not written to stdout"),
        (["in.csv", "-o", "-", "--resume"], "--resume needs -o FILE"),
        (["-", "-o", "o.csv", "--resume"], "stdin cannot be read again"),
        (["-", "-", "-o", "o.csv"], "can be read once"),
        (["empty", "-o", "o.csv"], "a folder without files"),
        (["*.nothing", "-o", "o.csv"], "no file fits"),
        (["X.npy", "-o", "o.csv", "--keep", "site"], "has no columns: --keep site"),
    ],
)
def test_what_does_not_go_together(
    words: list[str], said: str, make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    written(tmp_path / "in.csv", WIDE_HEADER, wide_rows(2))
    np.save(tmp_path / "X.npy", np.zeros((2, 2, 3), np.float32))
    done = CliRunner().invoke(app, ["predict", str(make_model(("a", "b"), CHANNELS)), *words], input="")
    assert isinstance(done.exception, InputError), done.output
    assert said in str(done.exception)
    assert not (tmp_path / "o.csv").exists()


def test_every_spelling_of_a_missing_value_anywhere_in_the_file(small: OnnxPredictor, tmp_path: Path) -> None:
    rows = wide_rows(3000)
    spelled = ["", "NaN", "nan", "NA", " n/a", "null", "None", "?", "  "]
    empty = [list(row) for row in rows]
    for at, word in enumerate(spelled):
        rows[2000 + 3 * at][2], empty[2000 + 3 * at][2] = word, ""
    expected, _ = predicted(small, written(tmp_path / "empty.csv", WIDE_HEADER, empty))
    assert_alike(predicted(small, written(tmp_path / "spelled.csv", WIDE_HEADER, rows))[0], expected)

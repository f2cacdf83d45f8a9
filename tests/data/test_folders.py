"""Several files as one source: globs, folders with a file a case, where their labels come from, splits."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.data import inspection
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import LoadedSplit, Split, load_split
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import InputError

SPLITS: tuple[Split, ...] = ("train", "test")
NAN = float("nan")


def load(source: Path | str, split: Split = "train", **options: str) -> LoadedSplit:
    return load_split(str(source), split, TableOptions(**options))


def said(source: Path | str, split: Split = "train", **options: str) -> str:
    with pytest.raises(InputError) as caught:
        load(source, split, **options)
    return str(caught.value)


def motions(split: Split) -> Collection:
    return load("BasicMotions", split).collection


def write_cases(cases: Collection, folder: Path, *, by_label: bool = False, form: str = ".csv") -> None:
    """A file a case, its rows timepoints; the label is in the file's name, or is its folder."""
    assert cases.labels is not None
    for name, label, series in zip(cases.ids, cases.labels, cases.values, strict=True):
        place = folder / label if by_label else folder
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{label.lower()}_{int(name):02d}{form}"
        columns = {"time": np.arange(series.shape[1])} | dict(zip(cases.channels, series, strict=True))
        if form == ".parquet":
            pq.write_table(pa.table(columns), path)
        else:
            rows = np.array(list(columns.values())).T
            path.write_text(
                ",".join(columns) + "\n" + "".join(",".join(f"{x:.9g}" for x in row) + "\n" for row in rows)
            )


def same_cases(loaded: Collection, cases: Collection) -> None:
    """The same cases, in the order of the files' names."""
    assert cases.labels is not None
    order = sorted(range(len(cases)), key=lambda i: f"{(cases.labels or ())[i].lower()}_{i:02d}")
    assert [label.lower() for label in loaded.labels or ()] == [cases.labels[i].lower() for i in order]
    assert loaded.channels == cases.channels
    np.testing.assert_array_equal(loaded.values, cases.values[order])


# Labels


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_a_file_a_case_with_the_label_as_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    write_cases(motions("train"), tmp_path / "m", by_label=True, form=form)
    loaded = load(tmp_path / "m")
    same_cases(loaded.collection, motions("train"))
    assert set(loaded.collection.classes) == {"Standing", "Running", "Walking", "Badminton"}
    assert loaded.collection.ids[0] == "badminton_30"
    assert loaded.table == {"layout": "file", "time": "time"}
    assert (loaded.name, loaded.undivided) == ("m", True)
    assert caplog.text.count("each file is taken for one case and its rows for timepoints") == 1


def test_the_label_in_the_name(tmp_path: Path) -> None:
    write_cases(motions("train"), tmp_path)
    loaded = load(tmp_path, label_pattern=r"([a-z]+)_\d+")
    same_cases(loaded.collection, motions("train"))
    assert loaded.table["label_pattern"] == r"([a-z]+)_\d+"
    assert "has 0 groups" in said(tmp_path, label_pattern="[a-z]+")
    assert "is no regular expression" in said(tmp_path, label_pattern="(")
    message = said(tmp_path, label_pattern="(walk).*")
    assert message.startswith(f"{tmp_path / 'badminton_30.csv'}: --label-pattern '(walk).*' finds no label")


@pytest.mark.parametrize("inside", [True, False])
def test_a_table_of_labels(tmp_path: Path, caplog: pytest.LogCaptureFixture, *, inside: bool) -> None:
    folder = tmp_path / "m"
    write_cases(motions("train"), folder)
    files = sorted(folder.iterdir())
    labels = (folder if inside else tmp_path) / "labels.csv"
    spelled = [file.name if i % 2 else file.stem for i, file in enumerate(files)]
    rows = [f"{name},{file.stem.split('_')[0]}" for name, file in zip(spelled, files, strict=True)]
    labels.write_text("\n".join(["file,label", *rows, "gone.csv,walking"]) + "\n")
    same_cases(load(folder, labels=str(labels)).collection, motions("train"))
    assert f"{labels}: rows for files that are not there: gone.csv." in caplog.text
    labels.write_text("\n".join(["name;kind", *[row.replace(",", ";") for row in rows]]) + "\n")
    same_cases(load(folder, labels=str(labels), label="kind").collection, motions("train"))
    labels.write_text("\n".join(["file,label", *rows[1:]]) + "\n")
    assert said(folder, labels=str(labels)) == f"{labels}: no label for badminton_30.csv. Add a row for it."
    labels.write_text("\n".join(["file,label", *rows, f"{spelled[0]},other"]) + "\n")
    message = f"{labels}:42: '{spelled[0]}' had the label 'badminton' before."
    assert said(folder, labels=str(labels)) == message
    assert "has the columns file and label" in said(folder, labels=str(files[0]))
    both = said(folder, labels=str(labels), label_pattern="(.)")
    assert both.startswith("--labels and --label-pattern cannot both")


def test_the_label_as_a_column_of_each_file(tmp_path: Path) -> None:
    for name, label in (("a", "u"), ("b", "v")):
        (tmp_path / f"{name}.csv").write_text(f"x,kind\n1,{label}\n2,{label}\n")
    cases = load(tmp_path, label="kind").collection
    assert (cases.ids, cases.labels) == (("a", "b"), ("u", "v"))
    np.testing.assert_array_equal(cases.values, [[[1, 2]], [[1, 2]]])
    (tmp_path / "b.csv").write_text("x,kind\n1,v\n2,u\n")
    message = said(tmp_path, label="kind")
    assert message.startswith(f"{tmp_path / 'b.csv'}:3: the label changes from 'v' to 'u' within a case")
    assert "(column 'kind'; the file is one case)" in message


def test_nothing_says_the_labels(tmp_path: Path) -> None:
    write_cases(motions("train").take(np.arange(3)), tmp_path)
    message = said(tmp_path)
    assert message.startswith(f"{tmp_path} (3 files): nothing says the labels. Put the files of each class")
    assert said(tmp_path / "*.csv").startswith(f"{tmp_path / '*.csv'} (3 files): nothing says the labels.")


def test_sub_folders_in_sub_folders_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for subject in ("s1", "s2"):
        for kind in ("run", "walk"):
            write_cases(motions("train").take(np.arange(2)), tmp_path / subject / kind)
    assert load(tmp_path).collection.classes == ("s1", "s2")
    said = (
        f"{tmp_path}: the label is the first sub-folder (s1, s2); those within it (run, walk) say nothing. "
        "If they are the labels, type --label-pattern '^[^/]+/([^/]+)/'."
    )
    assert said in caplog.text
    caplog.clear()
    assert load(tmp_path, label_pattern="^[^/]+/([^/]+)/").collection.classes == ("run", "walk")
    load(tmp_path / "s1")
    assert "first sub-folder" not in caplog.text


# Files


def test_cases_of_unequal_length_and_names_in_several_folders(tmp_path: Path) -> None:
    for label, rows in (("u", "1\n2\n3\n"), ("v", "4\n")):
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.csv").write_text("x\n" + rows)
    cases = load(tmp_path).collection
    assert (cases.ids, cases.labels) == (("u/1", "v/1"), ("u", "v"))
    np.testing.assert_array_equal(cases.values, [[[1, 2, 3]], [[4, NAN, NAN]]])


def test_a_glob_of_long_tables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cases = load("JapaneseVowels", "train").collection
    for i in range(3):
        write_long_csv(cases.take(np.arange(i * 90, (i + 1) * 90)), tmp_path / f"part{i}.csv")
    (tmp_path / "notes.md").write_text("x")
    loaded = load(tmp_path / "part*.csv")
    assert loaded.collection.ids == cases.ids
    assert loaded.collection.labels == cases.labels
    np.testing.assert_array_equal(loaded.collection.values, cases.values)
    assert loaded.table == {"layout": "long", "id": "id", "time": "time", "label": "label"}
    assert not caplog.records
    folder = load(tmp_path).collection
    np.testing.assert_array_equal(folder.values, cases.values)
    assert f"{tmp_path}: files that are no data are not used: notes.md." in caplog.text


@pytest.mark.parametrize("write", [write_wide_csv, write_long_csv])
def test_ids_in_two_files_are_told_apart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, write: object
) -> None:
    cases = load("GunPoint", "train").collection.take(np.arange(4))
    for name in ("a", "b"):
        write(cases, tmp_path / f"{name}.csv")  # type: ignore[operator]
    loaded = load(tmp_path / "*.csv").collection
    assert loaded.ids == tuple(f"{name}/{i}" for name in "ab" for i in range(4))
    assert caplog.text.count("stands in more than one file, so the file's name goes before every id") == 1


def test_files_of_series_too(tmp_path: Path) -> None:
    for name, label in (("a", "u"), ("b", "v")):
        (tmp_path / f"{name}.ts").write_text(f"@classLabel true u v\n@data\n1,2:{label}\n")
    cases = load(tmp_path / "*.ts").collection
    assert (cases.ids, cases.labels) == (("a/0", "b/0"), ("u", "v"))


def test_columns_named_for_series_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, label in (("a", "u"), ("b", "v")):
        (tmp_path / f"{name}.ts").write_text(f"@classLabel true u v\n@data\n1,2:{label}\n")
    load(tmp_path / "*.ts", time="t")
    assert f"{tmp_path}/*.ts has no columns: --time t is not used." in caplog.text
    caplog.clear()
    load(tmp_path / "*.ts", label_pattern="(.)")
    assert "no columns" not in caplog.text
    assert said(tmp_path / "*.ts", group="subject").startswith("--group subject: ")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("time,x\n0,1\n", "channels x, where a.csv has x, y. Files of one source"),
        ("time,y,x\n0,1,2\n", "channels y, x, where a.csv has x, y."),
        ("x,y\n1,2\n", "no column 'time' (--time)."),
        ("time,x,y,label\n0,1,2,u\n", "labels, unlike"),
        ("", "the file is empty."),
    ],
)
def test_files_that_are_not_alike(tmp_path: Path, second: str, expected: str) -> None:
    (tmp_path / "a.csv").write_text("time,x,y\n0,1,2\n1,3,4\n")
    (tmp_path / "b.csv").write_text(second)
    assert said(tmp_path).startswith(f"{tmp_path / 'b.csv'}: {expected}")


def test_patterns_that_fit_nothing_or_too_much(tmp_path: Path) -> None:
    assert said(tmp_path / "*.csv") == f"{tmp_path / '*.csv'}: no file fits this pattern."
    (tmp_path / "a.txt").write_text("x")
    assert said(tmp_path / "*").startswith(f"{tmp_path / 'a.txt'}: this form is not known.")
    (tmp_path / "b.csv").write_text("x\n1\n")
    (tmp_path / "a.ts").write_text("@data\n1,2\n")
    (tmp_path / "a.txt").unlink()
    assert "are of unlike forms and no one source" in said(tmp_path / "*")


def test_an_empty_folder(tmp_path: Path) -> None:
    assert said(tmp_path) == f"{tmp_path}: no NAME_TRAIN.ts and NAME_TEST.ts in it."
    (tmp_path / ".hidden.csv").write_text("x\n1\n")
    assert said(tmp_path) == f"{tmp_path}: no NAME_TRAIN.ts and NAME_TEST.ts in it."


# Splits


def test_sub_folders_are_the_splits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for split in SPLITS:
        write_cases(motions(split), tmp_path / "m" / split.capitalize(), by_label=True)
    for split in SPLITS:
        loaded = load(tmp_path / "m", split)
        same_cases(loaded.collection, motions(split))
        assert (loaded.name, loaded.undivided) == ("m", False)
    (tmp_path / "m" / "Test" / "Walking" / "walking_99.csv").write_text("time,a,b\n1,2,3\n")
    message = said(tmp_path / "m", "test")
    assert "channels a, b, where the training split has dim_0, dim_1" in message


def test_one_split_only(tmp_path: Path) -> None:
    write_cases(motions("train"), tmp_path / "train", by_label=True)
    assert said(tmp_path, "test") == f"{tmp_path} has no sub-folder test, only the other split."
    same_cases(load(tmp_path).collection, motions("train"))


def test_a_sub_folder_beside_the_splits_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for folder in (*SPLITS, "valid"):
        write_cases(motions("train").take(np.arange(0, 40, 4)), tmp_path / folder, by_label=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "read.me").write_text("x")
    load(tmp_path, "test")
    assert "not used" not in caplog.text
    load(tmp_path)
    assert (
        f"{tmp_path}: beside train and test, these sub-folders are not used: valid. To hold the cases of one "
        f"out in training, type --val-file {tmp_path / 'valid'}."
    ) in caplog.text


def test_what_says_the_labels_of_files_is_not_used_for_one_table(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_wide_csv(motions("train"), tmp_path / "one.csv")
    load(tmp_path / "one.csv", label_pattern="(.)")
    said = "one.csv is one file, so --label-pattern (.) is not used: that is for a folder of files."
    assert said in caplog.text
    caplog.clear()
    inspection.inspect(str(tmp_path / "one.csv"), TableOptions(label_pattern="(.)"))
    assert [said in record.getMessage() for record in caplog.records] == [True]


def test_inspect_info_and_convert_take_the_labels_of_files(tmp_path: Path) -> None:
    pattern = "^([a-z]+)_"
    write_cases(motions("train").take(np.arange(0, 40, 4)), folder := tmp_path / "m")
    labels = tmp_path / "labels.csv"
    rows = [f"{file.name},{file.name.split('_')[0]}" for file in sorted(folder.iterdir())]
    labels.write_text("\n".join(["file,kind", *rows]) + "\n")

    def tsattn(*words: str) -> str:
        done = CliRunner().invoke(app, ["data", *words], prog_name="tsattn")
        assert done.exit_code == 0, done.output
        return done.stdout

    for typed, shown in (
        (["--label-pattern", pattern], f"labels from the files' names by {pattern!r}"),
        (["--labels", str(labels), "--label", "kind"], f"labels from {labels}"),
    ):
        seen = tsattn("inspect", str(folder), *typed)
        assert f"files of one case each, a row a timepoint; {shown}" in seen
        (command,) = [line for line in seen.splitlines() if line.startswith("tsattn train")]
        words = shlex.split(command)
        assert words[:3] == ["tsattn", "train", str(folder)]
        assert sorted(words[3:]) == sorted(typed)
        parts = json.loads(tsattn("info", str(folder), *typed, "--json"))["parts"]
        assert sorted(parts["all"]["classes"]) == ["badminton", "running", "standing", "walking"]
        assert "4 classes" in tsattn("convert", str(folder), "-o", str(tmp_path / "m.npz"), *typed)


def test_inspect_says_where_labels_come_from(tmp_path: Path) -> None:
    def inspect(source: Path, *words: str) -> str:
        done = CliRunner().invoke(app, ["data", "inspect", str(source), *words], prog_name="tsattn")
        assert done.exit_code == 0, done.output
        return done.stdout

    for name, label in (("a", "u"), ("b", "v")):
        (tmp_path / "s").mkdir(exist_ok=True)
        (tmp_path / "s" / f"{name}.ts").write_text(f"@classLabel true u v\n@data\n1,2:{label}\n")
        (tmp_path / "w" / label).mkdir(parents=True)
        (tmp_path / "w" / label / "x.csv").write_text("x_0,x_1\n1,2\n3,5\n")
    seen = inspect(tmp_path / "s", "--label-pattern", "(.)")
    assert "series; labels from the files' names by '(.)'; no columns to choose" in seen
    assert "wide table, a row a case; labels from the sub-folders" in inspect(tmp_path / "w")
    assert "--layout wide" in inspect(tmp_path / "w", "--layout", "wide").splitlines()[-1]


def test_train_eval_and_predict_on_a_folder(tmp_path: Path) -> None:
    """In real processes: the model file knows that a file is a case."""

    def tsattn(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tsattn", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    for split in SPLITS:
        cases = motions(split).take(np.arange(0, 40, 4))
        write_cases(cases, tmp_path / "m" / split)
    pattern = r"^([a-z]+)_"
    small = ["--epochs", "1", "--width", "16", "--heads", "2", "--layers", "1", "--out", "run"]
    trained = tsattn("train", "m", "--label-pattern", pattern, *small)
    assert trained.returncode == 0, trained.stderr
    judged = tsattn("eval", "run", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["cases"] == 10
    files = sorted(str(path) for path in (tmp_path / "m" / "test").iterdir())
    predicted = tsattn("predict", "run", *files, "-o", "out.csv")
    assert predicted.returncode == 0, predicted.stderr
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [Path(file).stem for file in files]

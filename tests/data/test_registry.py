"""datasets.yaml: complete, found, and forgiving about case; a user's own, checked line by line."""

from __future__ import annotations

import csv
import importlib.util
import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tsattn.data.columns import TableOptions
from tsattn.data.named import embedded_folder
from tsattn.data.registry import find_entry, load_registry, own_entry
from tsattn.data.selection import of_archive
from tsattn.data.sources import load_split
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import InputError

ROOT = Path(__file__).parents[2]
FACTS = ROOT.parent / "shared" / "uea" / "facts.csv"
NONE = TableOptions()


def test_both_archives_are_complete() -> None:
    entries = load_registry().values()
    assert [sum(entry.archive == archive for entry in entries) for archive in ("UEA", "UCR")] == [30, 128]
    for entry in entries:
        if entry.archive in ("UEA", "UCR"):
            assert entry.zenodo
            assert None not in (entry.channels, entry.length, entry.classes)
        if entry.archive == "UCR":
            assert entry.channels == 1


def test_every_collection_of_aeon_is_there() -> None:
    spec = importlib.util.find_spec("aeon")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    file = Path(spec.submodule_search_locations[0]) / "datasets" / "tsc_datasets.py"
    module = importlib.util.module_from_spec(loaded := importlib.util.spec_from_file_location("tsc", file))  # type: ignore[arg-type]
    loaded.loader.exec_module(module)  # type: ignore[union-attr]
    entries = load_registry()
    assert {name: entries[name].zenodo for name in module.tsc_zenodo} == module.tsc_zenodo
    for word, names in {
        "uea": module.UEA,
        "ucr": module.UCR2019,
        "redux": module.redux,
        "eeg": module.eeg2026,
        "rehabpile": module.rehab_pile,
        "monster": module.monster,
        "multiverse": module.multiverse2026,
    }.items():
        assert set(names) <= {entry.name for entry in of_archive(word, entries)}, word


@pytest.mark.skipif(not FACTS.exists(), reason="the archives' summary is not beside the checkout")
def test_facts_are_the_archives_own() -> None:
    with FACTS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            entry = find_entry(row["name"])
            for fact in ("train", "test", "channels", "length", "classes"):
                assert str(getattr(entry, fact) or "") == row[fact], (row["name"], fact)
            assert (entry.archive, entry.kind) == (row["archive"], row["kind"])
            assert (entry.unequal, entry.missing) == (row["remark"] == "unequal", row["remark"] == "missing")


def test_embedded_means_that_aeon_has_it() -> None:
    for entry in load_registry().values():
        assert entry.embedded == (embedded_folder(entry.name) is not None), entry.name
    assert sum(entry.embedded for entry in load_registry().values()) == 9


def test_a_name_is_found_in_any_case() -> None:
    assert find_entry("japanesevowels").name == "JapaneseVowels"


def test_an_unknown_name_brings_near_ones() -> None:
    with pytest.raises(InputError) as caught:
        find_entry("JapanseVowls")
    assert str(caught.value).startswith(
        "'JapanseVowls' is neither a file or folder here nor one of the 289 named data sets. "
        "Did you mean JapaneseVowels? Type the name of a set (tsattn data list shows all), or a .csv file"
    )
    with pytest.raises(InputError, match=r"289 named data sets\. Type the name of a set"):
        find_entry("qqqqqq")


def test_an_unknown_archive_brings_near_ones() -> None:
    with pytest.raises(InputError) as caught:
        of_archive("uce", load_registry())
    assert str(caught.value).startswith("--archive uce: no archive of that name. Did you mean u")
    assert "Known: uea, " in str(caught.value)


FAULTS = {
    "a: {train: x.csv, lable: y}": ":1: a: unknown key 'lable'. Did you mean label?",
    "a: {train: x.csv, qqq: y}": ":1: a: unknown key 'qqq'. Known: archive, also, channels,",
    "a:\n  train: x.csv\n  label: 3": ":3: a: label is 3; expected a column's name as text, in quotes if",
    "a:\n  train: x.csv\n  time: 2024-01-01": ":3: a: time is datetime.date(2024, 1, 1); expected a column's",
    "a:\n  train: x.csv\n  layout: tall": ":3: a: layout is 'tall'; expected long or wide.",
    "a:\n  train: [x.csv]": ":2: a: train is ['x.csv']; expected the path of a file, or a number of cases.",
    "a:\n  zenodo: yes": ":2: a: zenodo is True; expected a whole number above 0.",
    "a:\n  archive: UEA\n  classes: -1": ":3: a: classes is -1; expected a whole number above 0.",
    "a:\n  archive: UEA\n  also: Redux": ":3: a: also is 'Redux'; expected a list of words: [one, two].",
    "a:\n  archive: UEA\n  unequal: 1": ":3: a: unequal is 1; expected true or false.",
    "a:\n  archive: ''": ":2: a: archive is ''; expected text.",
    "a:\n  train: x.csv\n  test: 9": ":3: a: test is 9 and the other split is a file; expected the",
    "a:\n  test: x.csv": ":1: a names a test file and none to train on. Add train: FILE.",
    "a:\n  zenodo: 3\n  label: y": ":3: a: label describes a file, and none is named. Add train: FILE.",
    "a: {channels: 3}": ":1: a names no data. Add train: FILE.",
    "a: x.csv": ":1: a is 'x.csv'; expected {train: FILE, test: FILE}.",
    "a:\n  - x.csv": ":2: a is a list; expected {train: FILE, test: FILE}.",
    "- a": ":1: the registry is a list; expected NAME: {train: FILE, test: FILE}.",
    "a: {train: x}\n\na: {train: y}": ":3: a has an entry already, at own.yaml:1. Name it otherwise.",
    "a: {train: x, train: y}": ":1: a: train stands here twice. Keep one.",
    "3: {train: x}": ':1: 3 is no text. If it is a name, write "3".',
    "a/b: {train: x}": ":1: 'a/b' is no name for a data set: write one without / and \\ and no dot first.",
    "a: {train: x\nb: 3": ":2: this is no YAML (",
    "a: {train: !!python/object:os.system x}": ":1: a value that cannot be read (",
    "": ": the registry is empty. An entry is NAME: {train: FILE, test: FILE}.",
}


@pytest.mark.parametrize(("text", "said"), FAULTS.items(), ids=range(len(FAULTS)))
def test_faults_are_told_with_their_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_registry(Path("own.yaml"))
    assert str(caught.value).startswith(f"own.yaml{said}")


def test_a_registry_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    with pytest.raises(InputError) as caught:
        load_registry(path)
    assert str(caught.value) == f"{path}: no such registry. Type the path of a YAML file after --registry."
    path.write_bytes(b"a: {train: x}\nb\xff: {train: x}\n")
    with pytest.raises(InputError, match=r":2: this is not UTF-8 text\. Save the registry as UTF-8\."):
        load_registry(path)
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load_registry(tmp_path)


def test_a_file_here_that_was_not_asked_for_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("datasets.yaml").write_text("train: s3://somewhere\n")
    assert "GunPoint" in load_registry()
    said = "datasets.yaml:1: train is 's3://somewhere'; expected {train: FILE, test: FILE}."
    assert f"{said} Nothing of this file is used." in caplog.text
    assert find_entry("GunPoint").embedded
    with pytest.raises(InputError) as caught:
        find_entry("my-sensors")
    assert str(caught.value) == said


def test_the_registry_of_the_checkout_is_no_own_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    assert own_entry("GunPoint") is None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets.yaml").write_bytes((ROOT / "datasets.yaml").read_bytes())
    assert own_entry("GunPoint") is None


@pytest.fixture
def sensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder whose datasets.yaml names two long tables in the folder data/."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "test"):
        cases = load_split("BasicMotions", split, NONE).collection
        write_long_csv(cases, folder / f"{split}.csv")
        text = (folder / f"{split}.csv").read_text()
        (folder / f"{split}.csv").write_text(text.replace("id", "recording", 1).replace("label", "state", 1))
    (tmp_path / "datasets.yaml").write_text(
        "my-sensors:\n  train: data/train.csv\n  test: data/test.csv\n"
        "  layout: long\n  id: recording\n  label: state\n"
    )
    return tmp_path


def test_own_files_come_by_name(sensors: Path, tmp_path: Path) -> None:
    train, test = (load_split("my-sensors", split, NONE) for split in ("train", "test"))
    assert (train.name, train.undivided, test.undivided) == ("my-sensors", False, False)
    assert train.table["label"] == "state"
    assert (train.origin, test.origin) == (
        str(sensors / "data" / "train.csv"),
        str(sensors / "data" / "test.csv"),
    )
    named = load_split("BasicMotions", "test", NONE).collection
    assert test.collection.labels == named.labels
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    registry = (sensors / "datasets.yaml").rename(elsewhere / "mine.yaml")
    registry.write_text(registry.read_text().replace("data/", "../data/"))
    assert len(load_split("My-Sensors", "train", NONE, registry).collection) == 40
    typed = TableOptions(label="dim_0")
    with pytest.raises(InputError, match="dim_0"):
        load_split("my-sensors", "train", typed, registry)


def test_own_files_that_are_not_there_are_told_when_used(sensors: Path) -> None:
    (sensors / "data" / "test.csv").unlink()
    assert len(load_split("my-sensors", "train", NONE).collection) == 40
    with pytest.raises(InputError) as caught:
        load_split("my-sensors", "test", NONE)
    assert str(caught.value) == (
        f"datasets.yaml:3: my-sensors: {sensors / 'data' / 'test.csv'} is not there. Mend the path; "
        "a relative one is relative to the folder of the registry."
    )
    (sensors / "datasets.yaml").write_text("my-sensors: {train: data/train.csv, id: recording}")
    with pytest.raises(InputError) as caught:
        load_split("my-sensors", "test", NONE)
    assert str(caught.value) == (
        "datasets.yaml:1: my-sensors names no test file. Add test: FILE, or type a file."
    )


def test_an_own_entry_wins_over_a_shipped_one_and_a_folder_and_says_so(
    sensors: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_wide_csv(load_split("GunPoint", "train", NONE).collection, sensors / "mine.csv")
    (sensors / "datasets.yaml").write_text("gunpoint: {train: mine.csv}\ndata: {train: mine.csv}\n")
    assert load_split("GunPoint", "train", NONE).origin == str(sensors / "mine.csv")
    assert "datasets.yaml:1: GunPoint is taken from here, not as the UCR set of that name." in caplog.text
    assert [name for name in load_registry() if name.lower() == "gunpoint"] == ["gunpoint"]
    assert load_split("data", "train", NONE).origin == str(sensors / "mine.csv")
    assert "datasets.yaml:2: data is taken from here. To have the file or folder of that name" in caplog.text


def test_own_folders_zips_and_series_files(sensors: Path) -> None:
    folder = embedded_folder("GunPoint")
    assert folder is not None
    (sensors / "datasets.yaml").write_text(
        f"both: {{train: '{folder}', test: '{folder}'}}\n"
        f"files: {{train: '{folder}/GunPoint_TEST.ts', test: '{folder}/GunPoint_TRAIN.ts'}}\n"
    )
    assert [len(load_split("both", split, NONE).collection) for split in ("train", "test")] == [50, 150]
    assert [len(load_split("files", split, NONE).collection) for split in ("train", "test")] == [150, 50]


def test_columns_named_for_a_file_without_columns(sensors: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Groups that cannot be kept together are not torn apart without a word."""
    folder = embedded_folder("BasicMotions")
    assert folder is not None
    train, test = folder / "BasicMotions_TRAIN.ts", folder / "BasicMotions_TEST.ts"
    (sensors / "datasets.yaml").write_text(
        f"zz: {{train: '{train}', group: s}}\nyy: {{train: '{train}', label: state, layout: long}}\n"
        f"mixed: {{train: 'six.csv', test: '{test}', group: who}}\n"
    )
    write_wide_csv(
        replace(load_split("BasicMotions", "train", NONE).collection, groups=("s",) * 40), Path("six.csv")
    )
    Path("six.csv").write_text(Path("six.csv").read_text().replace("group", "who", 1))
    for name, typed in (("zz", NONE), ("yy", TableOptions(group="s"))):
        with pytest.raises(InputError, match=f"^--group s: {train} has no columns, so which cases belong"):
            load_split(name, "train", typed)
    assert len(load_split("yy", "train", NONE).collection) == 40
    assert f"{train} has no columns: --layout long, --label state is not used." in caplog.text
    assert load_split("mixed", "train", NONE).collection.groups is not None
    assert len(load_split("mixed", "test", NONE).collection) == 40


def test_train_and_eval_take_a_registry(sensors: Path) -> None:
    (sensors / "datasets.yaml").rename(sensors / "mine.yaml")
    own = ("--registry", "mine.yaml")
    size = ("--epochs", "1", "--layers", "1", "--width", "8", "--heads", "1", "--threads", "1")
    for words in (("train", "my-sensors", *own, *size, "--out", "run"), ("eval", "run", *own, "--json")):
        command = [sys.executable, "-m", "tsattn", *words]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, cwd=sensors, env=env)
        assert done.returncode == 0, done.stderr
    assert '"source": "my-sensors"' in done.stdout


def test_the_log_names_no_other_module(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_registry()
    assert not caplog.records

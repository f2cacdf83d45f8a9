"""SOURCE: names, folders, zips and files, and which of their cases each split is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tsattn.data.columns import TableOptions
from tsattn.data.sources import LoadedSplit, Split, embedded_folder, load_file, load_split
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import InputError

UEA = Path(__file__).parents[3] / "shared" / "uea"
NONE = TableOptions()
SPLITS: tuple[Split, ...] = ("train", "test")


def message(source: str | Path, split: Split = "train", options: TableOptions = NONE) -> str:
    with pytest.raises(InputError) as caught:
        load_split(str(source), split, options)
    return str(caught.value)


def same(one: LoadedSplit, other: LoadedSplit) -> None:
    np.testing.assert_array_equal(one.collection.values, other.collection.values)
    assert one.collection.labels == other.collection.labels


@pytest.fixture
def motions(tmp_path: Path) -> Path:
    """A folder with both .ts files of BasicMotions."""
    folder = embedded_folder("BasicMotions")
    assert folder is not None
    return Path(shutil.copytree(folder, tmp_path / "motions"))


def test_embedded_sets_come_by_name_with_their_own_lengths() -> None:
    train, test = (load_split("japanesevowels", split, NONE) for split in SPLITS)
    assert (train.name, train.table, train.undivided) == ("JapaneseVowels", {}, False)
    assert train.origin == "JapaneseVowels_TRAIN.ts (embedded in aeon)"
    assert (len(train.collection), len(test.collection)) == (270, 370)
    assert (test.collection.lengths.min(), test.collection.lengths.max()) == (7, 29)


def test_loading_a_named_set_imports_neither_aeon_nor_torch() -> None:
    program = (
        "import sys; from tsattn.data.sources import *\n"
        "load_split('GunPoint', 'train', TableOptions())\n"
        "print(sorted({'torch', 'aeon', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("split", SPLITS)
def test_folder_files_and_zip_are_the_same(tmp_path: Path, motions: Path, split: Split) -> None:
    named = load_split("BasicMotions", split, NONE)
    folder = load_split(str(motions), split, NONE)
    same(folder, named)
    assert folder.name == "BasicMotions"
    file = load_split(str(motions / "BasicMotions_TRAIN.ts"), split, NONE)
    same(file, named)
    assert file.origin == str(motions / f"BasicMotions_{split.upper()}.ts")
    packed = tmp_path / "some.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in motions.iterdir():
            archive.write(path, f"inner/{path.name}")
            archive.writestr(f"__MACOSX/._{path.name}", b"shadow")
    zipped = load_split(str(packed), split, NONE)
    same(zipped, named)
    assert zipped.origin == f"{packed}:inner/BasicMotions_{split.upper()}.ts"


@pytest.mark.skipif(not UEA.exists(), reason="the archive's zips are not beside the checkout")
@pytest.mark.parametrize("name", ["StandWalkJump", "PLAID", "DodgerLoopDay"])
def test_zips_of_the_archive(name: str) -> None:
    for split in SPLITS:
        assert load_split(str(UEA / f"{name}.zip"), split, NONE).name == name


@pytest.mark.parametrize("write", [write_wide_csv, write_long_csv])
def test_csv_files_named_train_and_test(tmp_path: Path, write: type) -> None:
    for split in SPLITS:
        write(load_split("BasicMotions", split, NONE).collection, tmp_path / f"m_{split.upper()}.csv")
    source = str(tmp_path / "m_TRAIN.csv")
    for split in SPLITS:
        loaded = load_split(source, split, NONE)
        same(loaded, load_split("BasicMotions", split, NONE))
        assert loaded.name == "m"
        assert loaded.table["label"] == "label"
        assert not loaded.undivided
    same(load_split(str(tmp_path / "m_TEST.csv"), "test", NONE), load_split("BasicMotions", "test", NONE))
    said = f"{tmp_path / 'm_TEST.csv'} is the test split by its name. To train, type its TRAIN file."
    assert message(tmp_path / "m_TEST.csv") == said


def test_the_test_table_is_read_as_the_training_table(tmp_path: Path) -> None:
    (tmp_path / "m_TRAIN.csv").write_text("who,x,y,kind\na,1,2,u\na,3,4,u\nb,5,6,v\nb,5,6,v\n")
    (tmp_path / "m_TEST.csv").write_text("kind,who,y,x\nu,a,2,1\n")
    options = TableOptions(id="who", label="kind")
    said = message(tmp_path / "m_TRAIN.csv", "test", options)
    assert "m_TEST.csv: read as long (a row a timepoint), every case has exactly one row" in said
    (tmp_path / "m_TEST.csv").write_text("kind,who,y,x\nu,a,2,1\nu,a,4,3\n")
    loaded = load_split(str(tmp_path / "m_TRAIN.csv"), "test", options)
    np.testing.assert_array_equal(loaded.collection.values, [[[1, 3], [2, 4]]])
    assert loaded.collection.channels == ("x", "y")


def test_one_file_is_the_data_for_either_split(tmp_path: Path, motions: Path) -> None:
    path = tmp_path / "all.csv"
    write_wide_csv(load_split("BasicMotions", "train", NONE).collection, path)
    (motions / "BasicMotions_TRAIN.ts").rename(tmp_path / "all.ts")
    for source in (path, tmp_path / "all.ts"):
        for split in SPLITS:
            loaded = load_split(str(source), split, NONE)
            assert (loaded.name, loaded.undivided, loaded.origin) == ("all", True, str(source))
            same(loaded, load_split("BasicMotions", "train", NONE))
        same(load_file(source, NONE), load_split("BasicMotions", "train", NONE))


def test_a_path_wins_over_a_name_and_says_so(
    motions: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    motions.rename(motions.with_name("GunPoint"))
    monkeypatch.chdir(motions.parent)
    assert load_split("GunPoint", "train", NONE).name == "BasicMotions"
    assert "GunPoint: taken from the file or folder here, not as the data set of that name." in caplog.text


def test_table_options_for_what_is_no_table_are_not_used(
    motions: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_split(str(motions), "train", TableOptions(label="y"))
    assert f"{motions} has no columns: --label y is not used." in caplog.text
    load_split("GunPoint", "train", TableOptions(time="t"))
    assert "GunPoint has no columns: --time t is not used." in caplog.text


@pytest.mark.parametrize("split", ["train", "test"])
def test_groups_are_refused_where_there_are_no_columns(motions: Path, split: Split) -> None:
    """A split that was asked not to leak must not leak without a word."""
    for source in (str(motions), "GunPoint"):
        with pytest.raises(InputError, match=f"^--group subject: {source} has no columns, so which cases"):
            load_split(source, split, TableOptions(group="subject"))


def test_columns_of_a_single_file_without_columns(motions: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = motions / "BasicMotions_TRAIN.ts"
    with pytest.raises(InputError, match=f"^--group s: {file} has no columns, so which cases belong"):
        load_file(file, TableOptions(group="s"))
    load_file(file, TableOptions(layout="long", id="i", label="y", label_of="timepoint"))
    assert [record.getMessage() for record in caplog.records] == [
        f"{file} has no columns: --layout long, --id i, --label y is not used."
    ]


def test_sources_that_are_not_there() -> None:
    assert message("no/such") == "no/such: no such file or folder."
    assert message("no.csv") == "no.csv: no such file or folder."
    assert message("Banana").startswith("'Banana' is neither a file or folder here nor one of the 289")
    said = message("Beef")
    assert said.startswith("Beef is not on this machine, and --offline (TSATTN_OFFLINE) forbids to fetch it.")


def test_files_of_unknown_form(tmp_path: Path) -> None:
    for name, form in (("t.xlsx", "the form '.xlsx'"), ("t", "a file without an ending")):
        (tmp_path / name).write_text("x")
        said = (
            f"{tmp_path / name}: {form} is not known. Type a file .ts, .csv (also .gz, .zst), .parquet, "
            ".feather, .tsv, .arff, .npz or .npy, or a folder or zip with NAME_TRAIN.ts"
        )
        assert message(tmp_path / name).startswith(said)
        with pytest.raises(InputError, match="is not known"):
            load_file(tmp_path / name, NONE)


def test_folders_without_a_pair(tmp_path: Path, motions: Path) -> None:
    nothing = f"{tmp_path}: no NAME_TRAIN.ts and NAME_TEST.ts in it."
    assert message(tmp_path) == f"{nothing} Did you mean {motions}?"
    (motions / "BasicMotions_TEST.ts").unlink()
    said = f"{motions} holds no BasicMotions_TEST.ts, only the other split."
    assert message(motions, "test") == said
    file = motions / "BasicMotions_TRAIN.ts"
    assert message(file, "test").startswith(f"{file} is the training split by its name, and {motions}")
    shutil.copy(file, motions / "Other_TRAIN.ts")
    said = f"{motions} holds several data sets: BasicMotions, Other. Type the file BasicMotions_TRAIN.ts"
    assert message(motions).startswith(said)
    shutil.rmtree(motions)
    assert message(tmp_path) == nothing


def test_zips_that_are_none(tmp_path: Path, motions: Path) -> None:
    packed = tmp_path / "t.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("readme.txt", "x")
    assert (
        message(packed)
        == f"{packed}: no NAME_TRAIN.ts and NAME_TEST.ts in it. Type a zip with these two files."
    )
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(motions / "BasicMotions_TRAIN.ts", "BasicMotions_TRAIN.ts")
    whole = packed.read_bytes()
    packed.write_bytes(whole[: len(whole) // 2])
    assert message(packed) == f"{packed} is no zip file, or only a part of one. Get it again from its source."
    packed.write_bytes(whole[:2000] + bytes(200) + whole[2200:])
    assert f"{packed}:BasicMotions_TRAIN.ts: the zip is damaged" in message(packed)


def test_labels_are_needed(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("who,x_0,x_1,kind\na,1,2,u\nb,3,4,v\n")
    said = f"{table}: no column holds the labels. Type --label COLUMN, one of: who, x_0, x_1, kind."
    assert message(table) == message(table, "test") == said
    assert load_split(str(table), "train", TableOptions(label="kind")).collection.labels == ("u", "v")
    assert load_file(table, NONE).collection.labels is None
    series = tmp_path / "t.ts"
    series.write_text("@classLabel false\n@data\n1,2\n")
    assert message(series).startswith(f"{series}: its cases have no labels (@classLabel false)")


def test_one_class_is_nothing_to_learn(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x_0,label\n1,u\n2,u\n")
    said = f"{table}: every case has the label 'u'. Training needs at least two classes."
    assert message(table) == said
    assert len(load_split(str(table), "test", NONE).collection) == 2


def test_train_and_test_need_the_same_channels(tmp_path: Path, motions: Path) -> None:
    folder = embedded_folder("GunPoint")
    assert folder is not None
    test = motions / "BasicMotions_TEST.ts"
    shutil.copy(folder / "GunPoint_TEST.ts", test)
    said = (
        f"{test}: 1 channels, {motions / 'BasicMotions_TRAIN.ts'} has 6. Both splits need the same channels."
    )
    assert message(motions, "test") == message(motions / "BasicMotions_TRAIN.ts", "test") == said
    (tmp_path / "m_TRAIN.csv").write_text("x_0,y_0,label\n1,2,u\n3,4,v\n")
    (tmp_path / "m_TEST.csv").write_text("x_0,label\n1,u\n")
    said = f"{tmp_path / 'm_TEST.csv'}: 1 channels, {tmp_path / 'm_TRAIN.csv'} has 2."
    assert message(tmp_path / "m_TRAIN.csv", "test").startswith(said)


def test_a_named_set_is_held_against_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = embedded_folder("GunPoint")
    monkeypatch.setattr("tsattn.data.sources.embedded_folder", lambda name: folder)
    said = message("BasicMotions")
    assert said.startswith("BasicMotions_TRAIN.ts (embedded in aeon): 50 cases where the registry has 40")


@pytest.mark.parametrize(
    ("mark", "after", "value"),
    [
        (b"PK\x01\x02", 6, 99),  # a version of zip that does not exist
        (b"PK\x01\x02", 10, 14),  # LZMA where deflate was
        (b"PK\x01\x02", 10, 77),  # no method at all
        (b"PK\x01\x02", 46, 0xFF),  # a name that is no text
        (b"PK\x05\x06", 16, 0xFF),  # a table of contents elsewhere
        (b"PK\x01\x02", 42, 0xFF),  # a member elsewhere
    ],
)
def test_a_zip_with_one_wrong_byte(mark: bytes, after: int, value: int, tmp_path: Path) -> None:
    whole = tmp_path / "Motions.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ü_TRAIN.ts", "@classLabel true a b\n@data\n1:a\n2:b\n")
    content = bytearray(whole.read_bytes())
    content[content.index(mark) + after] = value
    whole.write_bytes(content)
    with pytest.raises(InputError, match=r"Motions\.zip.*(damaged|no zip file|cannot be unpacked)"):
        load_split(str(whole), "train", NONE)

"""Files of series beside .ts: UCR's .tsv, ARFF and numpy's, each against the .ts file of the same set."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsattn.data.archives import Member
from tsattn.data.arff import parse_arff
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.formats import is_series, series_blocks
from tsattn.data.npz import labels_name, parse_npz
from tsattn.data.sources import Split, embedded_folder, load_file, load_split
from tsattn.data.tsv import parse_tsv
from tsattn.data.write_npz import write_npz
from tsattn.data.write_tables import write_wide_parquet
from tsattn.errors import InputError

NONE = TableOptions()
SPLITS: tuple[Split, ...] = ("train", "test")
NAN = float("nan")


def same(one: Collection, other: Collection, *, classes: bool = True) -> None:
    assert (one.ids, one.channels, one.labels) == (other.ids, other.channels, other.labels)
    assert one.classes == other.classes if classes else set(one.classes) == set(other.classes)
    longest = int(one.lengths.max())
    assert longest == other.lengths.max()
    np.testing.assert_array_equal(one.values[:, :, :longest], other.values[:, :, :longest])


def in_folder(name: str) -> Path:
    folder = embedded_folder(name)
    assert folder is not None
    return folder


def as_tsv(cases: Collection, separator: str = "\t") -> str:
    """As the UCR archive writes it: the label first, NaN to the end."""
    assert cases.labels is not None
    rows = zip(cases.labels, cases.values[:, 0].tolist(), strict=True)
    return "".join(separator.join([label, *(f"{x:.9g}" for x in row)]) + "\n" for label, row in rows)


def said(parse: object, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    with pytest.raises(InputError) as caught:
        parse(data, "t")  # type: ignore[operator]
    return str(caught.value)


# .tsv


@pytest.mark.parametrize("separator", ["\t", ",", "  "])
def test_tsv_equals_ts_also_at_unequal_lengths(separator: str) -> None:
    cases = load_split("PickupGestureWiimoteZ", "train", NONE).collection
    same(parse_tsv(as_tsv(cases, separator).encode(), "t"), cases, classes=False)


def test_tsv_keeps_labels_as_spelled() -> None:
    cases = parse_tsv(b"\xef\xbb\xbf1.0\t1\tNaN\t?\r\n\r\n-1\t2\t\tNaN\r\nup 2\t3\t4\tNaN", "t")
    assert cases.labels == ("1.0", "-1", "up 2")
    np.testing.assert_array_equal(cases.values[:, 0], [[1, NAN], [2, NAN], [3, 4]])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "t:1: the file is empty"),
        ("1\t2\t3\n1\t2\n", "t:2: 1 values, the first case has 2."),
        ("1\t2\n\n\t3\n", "t:3: no label in this line."),
        ("1\t2\n1\n", "t:2: no values in this line."),
        ("1\t2\n1\tx\n", "t:2: found 'x' where a number belongs"),
        ("1\t2\n1\tinf\n", "t:2: found 'inf' where a number belongs"),
        ("1\t2\n1\t2:3\n", "t:2: found '2:3' where a number belongs"),
        ("1\t2\n1\t1e99\n", "t:2: '1e99' is too large"),
        (b"1\t2\n\xff\t1\n", "t:2: not UTF-8."),
        ("1\t2\n1\t\0\n", "t:2: a NUL byte"),
    ],
)
def test_what_is_wrong_in_a_tsv_is_said_with_its_line(content: str | bytes, expected: str) -> None:
    assert said(parse_tsv, content).startswith(expected)


def test_a_tsv_with_column_names_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    for header in ("label\tx_0\tx_1", "kind\t0\t1"):
        path.write_text(f"{header}\nu\t1\t2\nv\t3\t4\n")
        assert not is_series(path)
        cases = load_file(path, TableOptions(label=header.split("\t")[0])).collection
        assert cases.labels == ("u", "v")
        np.testing.assert_array_equal(cases.values[:, 0], [[1, 2], [3, 4]])
    path.write_text("7\t1\t2\n8\t3\t4\n")
    assert is_series(path)


# ARFF


@pytest.mark.parametrize("name", ["BasicMotions", "ArrowHead", "GunPoint"])
def test_arff_equals_ts(name: str) -> None:
    arff = in_folder(name) / f"{name}_TRAIN.arff"
    ts = load_file(arff.with_suffix(".ts"), NONE).collection
    same(load_file(arff, NONE).collection, ts)
    text = arff.read_text().replace("\n", "\r\n").replace("@attribute", "@ATTRIBUTE")
    same(parse_arff(b"\xef\xbb\xbf% one\r\n" + text.encode(), "t"), ts)


UNI = (
    "@relation r\n@attribute a numeric\n@attribute 'b c' REAL\n"
    "@attribute target {1,'two words',\"x,y\"}\n@data\n"
)
MULTI = (
    "@relation r\n@attribute bag relational\n@attribute a numeric\n@attribute b numeric\n@end bag\n"
    "@attribute class {u,v}\n@data\n"
)


def test_arff_spellings() -> None:
    cases = parse_arff(
        (UNI + "% comment\n1, ?,1\n\n?,2.5e1, 'two words'\n3,4,\"x,y\"\n3,4,'x\\,y'\n").encode(), "t"
    )
    assert cases.labels == ("1", "two words", "x,y", "x,y")
    assert cases.classes == ("1", "two words", "x,y")
    np.testing.assert_array_equal(cases.values[:, 0], [[1, NAN], [NAN, 25], [3, 4], [3, 4]])


def test_relational_arff_spellings() -> None:
    rows = "\"1,2\\n3,?\",u\n'5,6\\n7,8\\n' , 'v'\n"
    cases = parse_arff((MULTI + rows).encode(), "t")
    assert cases.labels == ("u", "v")
    np.testing.assert_array_equal(cases.values, [[[1, 2], [3, NAN]], [[5, 6], [7, 8]]])


def test_arff_without_classes() -> None:
    cases = parse_arff(b"@attribute a numeric\n@data\n1\n2\n", "t")
    assert (cases.labels, cases.classes) == (None, ())
    numbered = parse_arff(b"@attribute a numeric\n@attribute class numeric\n@data\n1,10\n2,9\n", "t")
    assert (numbered.labels, numbered.classes) == (("10", "9"), ("9", "10"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("@relation r\n@attribute a numeric\n", "t:3: no line @data up to this last line"),
        ("@relation r\n@data\n1\n", "t:2: no @attribute before @data."),
        ("@relation r\n1,2\n@data\n", "t:2: found '1,2' before @data."),
        ("@attribute a\n@data\n1\n", "t:1: found '@attribute a'. Write @attribute NAME TYPE."),
        ("@attribute a {1,2\n@data\n1\n", "t:1: the list of classes of 'a' is not closed"),
        ("@attribute b relational\n@attribute a numeric\n@data\n1\n", "t:3: @end b is missing before @data."),
        (UNI, "t:6: no row after @data"),
        (UNI + "1,2,3\n", "t:6: the class '3' is not one of the attribute's, which has '1', 'two words'"),
        (UNI + "1,2,?\n", "t:6: the case has no class ('?')."),
        (UNI + "1,2,1\n1,1\n", "t:7: 2 fields, the header has 3 attributes."),
        (UNI + "1,2,'two\n", 't:6: cannot be parted into fields from "\'two" on'),
        (UNI + "{0 1, 2 1}\n", "t:6: a sparse row"),
        (UNI + "1,x,1\n", "t:6: found 'x' where a number belongs (channel dim_0, timepoint 1)."),
        (UNI + "1,2:3,1\n", "t:6: found ':' where numbers belong"),
        (MULTI + "'1,2\\n3,4',u\n'1,2',v\n", "t:9: 1 channel(s) where 2 were expected"),
        ("@attribute a {1,2}\n@attribute b {1,2}\n@attribute c numeric\n@data\n1,1,1\n", "t:4: several attr"),
        ("@attribute a {1,2}\n@data\n1\n", "t:2: one relational attribute, or numeric ones, should hold"),
    ],
)
def test_what_is_wrong_in_an_arff_is_said_with_its_line(content: str, expected: str) -> None:
    assert said(parse_arff, content).startswith(expected)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_arff_and_tsv_are_read_or_refused(data: st.DataObject) -> None:
    content = bytearray((MULTI + "'1,2\\n3,?',u\n" * 3).encode())
    parse = parse_arff
    if data.draw(st.booleans()):
        content, parse = bytearray(b"1\t2\t3\n2\t4\tNaN\n" * 3), parse_tsv
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        if not content:
            return
    try:
        said = f"t: {len(parse(bytes(content), 't'))} cases"
    except InputError as error:
        said = str(error)
    assert said.startswith("t:")


# numpy


@pytest.mark.parametrize("name", ["JapaneseVowels", "BasicMotions"])
def test_npz_there_and_back(tmp_path: Path, name: str) -> None:
    cases = load_split(name, "train", NONE).collection
    write_npz(cases, tmp_path / "t.npz")
    same(load_file(tmp_path / "t.npz", NONE).collection, cases)


def test_npz_with_both_splits(tmp_path: Path) -> None:
    train, test = (load_split("BasicMotions", split, NONE).collection for split in SPLITS)
    path = tmp_path / "t.npz"
    np.savez(
        path,
        X_train=train.values,
        y_train=np.array(train.labels),
        X_test=test.values,
        y_test=np.array(test.labels),
    )
    for split, cases in zip(SPLITS, (train, test), strict=True):
        loaded = load_split(str(path), split, NONE)
        same(loaded.collection, cases, classes=False)
        assert not loaded.undivided
    same(load_file(path, NONE).collection, test, classes=False)


def test_npy_pairs(tmp_path: Path) -> None:
    for split, word in zip(SPLITS, ("train", "test"), strict=True):
        cases = load_split("GunPoint", split, NONE).collection
        np.save(tmp_path / f"X_{word}.npy", cases.values[:, 0].astype(np.float64))
        np.save(tmp_path / f"y_{word}.npy", np.array(cases.labels, dtype=int))
    for source in (tmp_path, tmp_path / "X_train.npy"):
        for split in SPLITS:
            loaded = load_split(str(source), split, NONE)
            same(loaded.collection, load_split("GunPoint", split, NONE).collection)
    with pytest.raises(InputError, match=r"call the one with the values NAME_X\.npy"):
        load_file(tmp_path / "y_train.npy", NONE)


def test_the_name_of_the_labels() -> None:
    names = ("X_train.npy", "my_X.npy", "x.npy", "a-X-TEST.npy", "axis.npy", "y.npy")
    assert [labels_name(name) for name in names] == [
        "y_train.npy", "my_y.npy", "y.npy", "a-y-TEST.npy", None, None,
    ]  # fmt: skip


def npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def test_labels_of_numpy_become_text() -> None:
    values = np.zeros((3, 1, 2))
    for labels, words in (
        (np.array([1.0, 2.5, -1]), ("1", "2.5", "-1")),
        (np.array([[1], [2], [3]], np.uint8), ("1", "2", "3")),
        (np.array([True, False, True]), ("True", "False", "True")),
        (np.array([b"a", b"\xc3\xa9", b"1.0"]), ("a", "é", "1.0")),
    ):
        assert parse_npz(npz(X=values, y=labels), "t", None).labels == words
    assert parse_npz(npz(X=values), "t", "train").labels is None


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"A": np.zeros(2)}, "t: no array X or X_train in it, only A."),
        ({"X": np.zeros(3)}, "t: X has the shape (3,). X is (cases, channels, timepoints)"),
        ({"X": np.zeros((0, 1, 2))}, "t: X has the shape (0, 1, 2)."),
        ({"X": np.array([["a", "b"]])}, "t: X holds <U1 where numbers belong."),
        ({"X": np.zeros((2, 3), complex)}, "t: X holds complex128 where numbers belong."),
        ({"X": np.array([[1, np.inf]])}, "t: X[0, 0, 1] is inf, which is infinite"),
        ({"X": np.array([[1, 1e99]])}, "t: X[0, 0, 1] is 1e+99, which is infinite or beyond"),
        ({"X": np.zeros((2, 3)), "y": np.zeros(3)}, "t: y has the shape (3,) and X (2, 3)."),
        ({"X": np.zeros((2, 3)), "y": np.zeros(2, complex)}, "t: y holds complex128."),
        ({"X_test": np.zeros((2, 3))}, "t: no X_train in it, only X_test."),
        ({"X": np.array([[object()]])}, "t: holds Python objects, which are not loaded"),
        ({"X": np.zeros((1, 2)), "y": np.array(["a"], object)}, "t: holds Python objects"),
    ],
)
def test_what_is_wrong_in_an_npz(arrays: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_npz(npz(**arrays), "t", "train")
    assert str(caught.value).startswith(expected)


def test_nothing_that_a_file_says_is_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (str(tmp_path / "run"),))

    for name in ("t.npz", "X.npy"):
        (tmp_path / name).write_bytes(pickle.dumps(Evil()))
        with pytest.raises(InputError, match=r"cannot be read as|holds Python objects"):
            load_file(tmp_path / name, NONE)
    assert not (tmp_path / "run").exists()


def test_an_npz_that_is_damaged() -> None:
    whole = npz(X=np.random.default_rng(0).random((20, 30)))
    array = io.BytesIO()
    np.save(array, np.zeros((2, 3)))
    for content in (b"", b"x", whole[: len(whole) // 2], whole[:-30], array.getvalue()):
        with pytest.raises(InputError, match=r"cannot be read as \.npz|holds Python objects"):
            parse_npz(content, "t", None)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    with pytest.raises(InputError, match="cannot be read as"):
        parse_npz(bytes(flipped), "t", None)


# As a SOURCE, and for a model


def as_arff(cases: Collection) -> str:
    attributes = "".join(f"@attribute t{i} numeric\n" for i in range(cases.values.shape[2]))
    rows = "".join(
        ",".join([*(f"{x:.9g}" for x in row), label]) + "\n"
        for row, label in zip(cases.values[:, 0].tolist(), cases.labels or (), strict=True)
    )
    return f"@relation g\n{attributes}@attribute target {{1,2}}\n@data\n{rows}"


def write_pair(folder: Path, form: str) -> None:
    for split in SPLITS:
        cases = load_split("GunPoint", split, NONE).collection
        path = folder / f"GunPoint_{split.upper()}{form}"
        if form == ".tsv":
            path.write_text(as_tsv(cases))
        elif form == ".arff":
            path.write_text(as_arff(cases))
        elif form == ".npz":
            write_npz(cases, path)
        elif form == ".npy":
            np.save(folder / f"GunPoint_X_{split.upper()}.npy", cases.values)
            np.save(folder / f"GunPoint_y_{split.upper()}.npy", np.array(cases.labels))
        else:
            write_wide_parquet(cases, path)


@pytest.mark.parametrize("form", [".tsv", ".arff", ".npz", ".npy", ".parquet"])
@pytest.mark.parametrize("place", ["file", "folder", "zip"])
def test_pairs_of_every_form(tmp_path: Path, form: str, place: str) -> None:
    folder = tmp_path / "GunPoint"
    folder.mkdir()
    write_pair(folder, form)
    source = folder
    if place == "file":
        source = next(folder.glob("*_TRAIN*")) if form != ".npy" else folder / "GunPoint_X_TRAIN.npy"
    if place == "zip":
        source = tmp_path / "GunPoint.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for file in folder.iterdir():
                archive.write(file, f"GunPoint/{file.name}")
        if form == ".parquet":
            with pytest.raises(InputError, match="tables are not read inside a zip"):
                load_split(str(source), "train", NONE)
            return
    for split in SPLITS:
        loaded = load_split(str(source), split, NONE)
        assert not loaded.undivided
        same(loaded.collection, load_split("GunPoint", split, NONE).collection)


def test_ts_wins_where_a_set_lies_there_in_several_forms(tmp_path: Path) -> None:
    folder = in_folder("GunPoint")
    for split in ("TRAIN", "TEST"):
        (tmp_path / f"GunPoint_{split}.ts").write_bytes((folder / f"GunPoint_{split}.ts").read_bytes())
        (tmp_path / f"GunPoint_{split}.arff").write_text("broken")
        (tmp_path / f"GunPoint_{split}.txt").write_text("of no known form")
    assert len(load_split(str(tmp_path), "train", NONE).collection) == 50


def test_another_number_of_channels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "X.npy"
    np.save(path, np.zeros((5, 2, 3)))
    assert [len(block) for block in series_blocks(path, ("a", "b"), 2)] == [2, 2, 1]
    with pytest.raises(InputError, match=r"2 channels; the model was trained on 1: a\."):
        next(series_blocks(path, ("a",), 2))
    assert Member(path).beside("no.npy") is None


def test_labels_of_npz_are_whole_or_refused(tmp_path: Path) -> None:
    path, values = tmp_path / "t.npz", np.zeros((2, 1, 3), np.float32)
    np.savez(path, X=values, y=np.array([0.1, 2], np.float32))
    assert load_file(path, TableOptions()).collection.labels == ("0.1", "2")
    np.savez(path, X=values, y=np.array([1, np.nan]))
    with pytest.raises(InputError, match=r"t\.npz: y\[1\] is NaN\. Give every case its own"):
        load_file(path, TableOptions())
    np.savez(path, X=values, y=np.array([b"a", b"b\xff"]))
    with pytest.raises(InputError, match=r"t\.npz: y holds b'b\\xff', which is not UTF-8 text\."):
        load_file(path, TableOptions())

"""Collections from one format into another and back, `data convert` in real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from tsattn.data.atomic import whole_file
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.convert import FORMATS, Layout, write_file
from tsattn.data.sources import embedded_folder, load_file, load_split
from tsattn.data.tables import sorted_classes
from tsattn.data.write_npz import write_npz
from tsattn.data.write_tables import GROUP
from tsattn.data.write_ts import write_ts
from tsattn.errors import InputError

NAN = float("nan")
WAYS: tuple[tuple[str, Layout | None], ...] = (
    (".ts", None),
    (".csv", "long"),
    (".csv", "wide"),
    (".parquet", "long"),
    (".parquet", "wide"),
    (".npz", None),
)
each_way = pytest.mark.parametrize(("suffix", "layout"), WAYS)
SETS = ["JapaneseVowels", "BasicMotions", "GunPoint", "PickupGestureWiimoteZ"]


def collection(
    values: list[list[list[float]]],
    labels: tuple[str, ...] | None = None,
    ids: tuple[str, ...] = (),
    channels: tuple[str, ...] = (),
) -> Collection:
    array = np.array(values, np.float32)
    return Collection(
        values=array,
        ids=ids or tuple(map(str, range(array.shape[0]))),
        channels=channels or tuple(f"dim_{i}" for i in range(array.shape[1])),
        labels=labels,
        classes=sorted_classes(labels or ()),
    )


def there_and_back(cases: Collection, path: Path, layout: Layout | None = None) -> Collection:
    write_file(cases, path, layout=layout, name="some set")
    table = path.suffix in (".csv", ".parquet")
    group = GROUP if table and cases.groups is not None else None
    return load_file(path, TableOptions(layout=layout, group=group)).collection


def same(one: Collection, other: Collection, *, whole: bool = True) -> None:
    """Whether both hold the same, padding aside; whole: ids and names of channels too."""
    longest = max(int(one.lengths.max()), 1)
    assert max(int(other.lengths.max()), 1) == longest
    np.testing.assert_array_equal(one.values[:, :, :longest], other.values[:, :, :longest])
    assert (one.labels, one.classes) == (other.labels, other.classes)
    if whole:
        assert (one.ids, one.channels, one.groups) == (other.ids, other.channels, other.groups)


# Every word is a label that some file has held; the last six are what a .ts file cannot spell.
IN_TS = [
    "a,b",
    '"',
    "NaN",
    "1.0",
    "1",
    "01",
    "🙂",
    "null",
    "?",
    "-",
    "true",
    "@data",
    "(1,2)",
    "#",
    "é",
    "a\u00a0b",
]
NOT_IN_TS = [" x", "x ", "two words", "a:b", "a\nb", "é\r\nö"]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)
LABELS = st.one_of(st.sampled_from([*IN_TS, *NOT_IN_TS]), TEXT)
SPELLED = st.one_of(
    st.sampled_from(IN_TS),
    st.text(st.characters(codec="utf-8", exclude_characters="\0: \t\n\r\v\f"), min_size=1, max_size=5),
)
CHANNELS = st.sampled_from(
    [("x",), ("x", "y"), ("b c", 'q"', "a,b"), ("acc_1", "acc_2"), ("1", "2"), ("nan", "x"), ("é", "🙂", "-")]
)


@st.composite
def collections(draw: st.DrawFn, labels: st.SearchStrategy[str] = LABELS) -> Collection:
    """Cases of unequal length with gaps, some of which hold nothing."""
    channels = draw(CHANNELS)
    cases, points = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    floats = st.floats(width=32, allow_infinity=False)
    values = draw(st_np.arrays(np.float32, (cases, len(channels), points), elements=floats))
    for case in values:
        case[:, draw(st.integers(0, points)) :] = np.nan
    drawn = draw(st.none() | st.lists(labels, min_size=cases, max_size=cases).map(tuple))
    groups = draw(st.none() | st.lists(LABELS, min_size=cases, max_size=cases).map(tuple))
    return Collection(
        values=values,
        ids=tuple(draw(st.lists(LABELS, min_size=cases, max_size=cases, unique=True))),
        channels=channels,
        labels=drawn,
        classes=sorted_classes(drawn or ()),
        groups=groups,
    )


quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(("suffix", "layout"), [way for way in WAYS if way[0] != ".ts"])
@quick
@given(cases=collections())
def test_there_and_back_nothing_is_lost(
    tmp_path: Path, suffix: str, layout: Layout | None, cases: Collection
) -> None:
    path = tmp_path / f"t{suffix}"
    same(there_and_back(cases, path, layout), cases)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@quick
@given(cases=collections(labels=SPELLED))
def test_there_and_back_through_ts(tmp_path: Path, cases: Collection) -> None:
    back = there_and_back(cases, tmp_path / "t.ts")
    same(back, cases, whole=False)
    assert back.channels == tuple(f"dim_{i}" for i in range(len(cases.channels)))


@quick
@given(cases=collections(), label=LABELS)
def test_a_ts_file_holds_a_label_or_refuses_it(tmp_path: Path, cases: Collection, label: str) -> None:
    assume(cases.labels is not None)
    cases = replace(cases, labels=(label,) * len(cases), classes=(label,))
    try:
        same(there_and_back(cases, tmp_path / "t.ts"), cases, whole=False)
    except InputError as error:
        assert "has no spelling in a .ts file" in str(error)  # noqa: PT017
        assert any(letter in label for letter in ": \t\n\r\v\f")


@pytest.mark.parametrize("name", SETS)
@each_way
def test_archive_sets_there_and_back(tmp_path: Path, name: str, suffix: str, layout: Layout | None) -> None:
    cases = load_split(name, "train", TableOptions()).collection
    if suffix in (".csv", ".parquet"):  # a table is read with its classes in order
        cases = replace(cases, classes=sorted_classes(cases.classes))
    same(there_and_back(cases, tmp_path / f"t{suffix}", layout), cases)


def test_npz_keeps_the_order_of_classes_and_those_without_a_case(tmp_path: Path) -> None:
    cases = replace(collection([[[1]], [[2]]], labels=("b", "a")), classes=("c", "b", "a"))
    same(there_and_back(cases, tmp_path / "t.npz"), cases)
    same(there_and_back(cases, tmp_path / "t.ts"), cases)


def test_what_a_format_has_no_place_for_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cases = collection([[[1]], [[2]]], labels=("b", "a"), ids=("u", "v"), channels=("x",))
    write_file(cases, tmp_path / "t.ts", layout=None, name="n")
    assert f"{tmp_path / 't.ts'}: a .ts file has no place for ids and names of channels" in caplog.text
    caplog.clear()
    write_file(replace(cases, groups=("s", "s")), tmp_path / "t.ts", layout=None, name="n")
    assert f"{tmp_path / 't.ts'}: a .ts file has no place for the groups of the cases." in caplog.text
    write_file(replace(cases, groups=("s", "s")), tmp_path / "t.csv", layout=None, name="n")
    assert f"{tmp_path / 't.csv'}: to keep groups together, train on it with --group group." in caplog.text
    caplog.clear()
    write_file(replace(cases, classes=("b", "a")), tmp_path / "t.csv", layout=None, name="n")
    assert "no place for the order of the classes" in caplog.text
    caplog.clear()
    write_file(replace(cases, classes=("a", "b", "c")), tmp_path / "t.csv", layout=None, name="n")
    assert "no place for classes without a case (c)" in caplog.text
    caplog.clear()
    write_file(cases, tmp_path / "t.csv", layout=None, name="n")
    write_file(cases, tmp_path / "t.npz", layout=None, name="n")
    assert caplog.text == ""


ONE = collection([[[1, 2]], [[3, 4]]], labels=("a", "b"))


def labelled(*labels: str) -> Collection:
    return replace(ONE, labels=labels, classes=sorted_classes(labels))


def named(*channels: str) -> Collection:
    return collection([[[1, 1]] * len(channels)] * 2, channels=channels)


INFINITE = collection([[[1, np.inf]]])
REFUSED: dict[str, tuple[Collection, str, Layout | None, str]] = {
    "a blank in a label": (labelled("a b", "b"), ".ts", None, "'a b' has no spelling"),
    "a colon in a label": (labelled("a:b", "b"), ".ts", None, "'a:b' has no spelling"),
    "an empty label, .ts": (labelled("", "b"), ".ts", None, "'' has no spelling"),
    "an empty label, table": (labelled("a", ""), ".csv", None, "label of case '1' is empty"),
    "an empty id": (replace(ONE, ids=("a", "")), ".csv", "long", "case 1 has an empty id"),
    "an id twice": (replace(ONE, ids=("a", "a")), ".csv", "long", "id 'a' stands for two cases"),
    "a channel called time": (named("x", "time"), ".csv", "long", "two columns would be called 'time'"),
    "a channel called Class": (named("x", "Class"), ".csv", "long", "the number of channels, 2 and 1,"),
    "a channel with a blank": (named("x", "y "), ".csv", "long", "the channel name 'y ' as 'y'"),
    "infinity, .ts": (INFINITE, ".ts", None, "infinite"),
    "infinity, table": (INFINITE, ".csv", None, "the new file:2: column 'dim_0_1' holds"),
    "NUL at the end": (replace(ONE, ids=("a\0", "b")), ".npz", None, "ends in NUL"),
    "no known ending": (ONE, ".xlsx", None, "the ending '.xlsx' cannot be written. Type one of .ts, .csv"),
    "no ending": (ONE, "", None, "a file without an ending cannot be written"),
    "a layout of no table": (ONE, ".npz", "wide", "a .npz file has no layout. Leave out --layout wide"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, name: str) -> None:
    cases, suffix, layout, says = REFUSED[name]
    with pytest.raises(InputError) as caught:
        write_file(cases, tmp_path / f"t{suffix}", layout=layout, name="n")
    assert says in str(caught.value)
    assert ".part." not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_place_that_cannot_be_written(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        write_file(ONE, tmp_path / "no" / f"t{suffix}", layout=None, name="n")
    (tmp_path / f"t{suffix}").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_file(ONE, tmp_path / f"t{suffix}", layout=None, name="n")


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail() -> None:
        with whole_file(path) as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def test_the_text_of_a_ts_file(tmp_path: Path) -> None:
    cases = collection([[[1, NAN, 0.1], [2, 3, NAN]], [[NAN] * 3, [NAN] * 3]], labels=("b", "a"))
    write_ts(cases, tmp_path / "t.ts", "my set")
    assert (tmp_path / "t.ts").read_text().splitlines() == [
        "@problemName my_set",
        "@timeStamps false",
        "@missing true",
        "@univariate false",
        "@dimensions 2",
        "@equalLength false",
        "@classLabel true a b",
        "@data",
        "1,?,0.1:2,3,?:b",
        "?:?:a",
    ]


def test_aeon_reads_what_is_written(tmp_path: Path) -> None:
    from aeon.datasets import load_from_ts_file

    for name in ("JapaneseVowels", "GunPoint"):
        cases = load_split(name, "train", TableOptions()).collection
        write_ts(cases, tmp_path / f"{name}.ts")
        values, labels = load_from_ts_file(str(tmp_path / f"{name}.ts"))
        assert tuple(labels) == cases.labels
        for case, series, length in zip(cases.values, values, cases.lengths, strict=True):
            np.testing.assert_array_equal(case[:, :length], np.asarray(series, np.float32))


def test_an_npz_file_holds_plain_arrays(tmp_path: Path) -> None:
    write_npz(ONE, tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == ["X", "channels", "classes", "ids", "y"]
        assert arrays["X"].shape == (2, 1, 2)
        assert arrays["y"].tolist() == ["a", "b"]


def convert(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tsattn", "data", "convert", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd)


def test_a_chain_of_real_processes_ends_where_it_began(tmp_path: Path) -> None:
    words = ["BasicMotions", "--split", "train"]
    for file, layout in (
        ("a.csv", "long"),
        ("b.parquet", "wide"),
        ("c.npz", None),
        ("d.csv", "wide"),
        ("e.ts", None),
    ):
        done = convert(*words, "-o", file, *(("--layout", layout) if layout else ()), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        # Said once, on the way from the .ts files, whose order of classes is not that of sorting.
        assert ("no place for the order of the classes" in done.stderr) == (file == "a.csv")
        assert done.stdout.startswith(f"{file}: 40 cases, 6 channels, 4 classes, ")
        words = [file]
    first = load_split("BasicMotions", "train", TableOptions()).collection
    last = load_file(tmp_path / "e.ts", TableOptions()).collection
    same(last, replace(first, classes=sorted_classes(first.classes)))


def test_both_splits_go_into_a_folder(tmp_path: Path) -> None:
    done = convert("GunPoint", "-o", "new/", "--format", "csv", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    written = json.loads(done.stdout)["written"]
    assert [document["file"] for document in written] == ["new/GunPoint_TRAIN.csv", "new/GunPoint_TEST.csv"]
    assert [document["cases"] for document in written] == [50, 150]
    (tmp_path / "back").mkdir()
    done = convert("new/GunPoint_TRAIN.csv", "-o", "back", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.name for file in (tmp_path / "back").iterdir()] == ["GunPoint_TRAIN.ts"]
    folder = embedded_folder("GunPoint")
    assert folder is not None
    original = load_file(folder / "GunPoint_TRAIN.ts", TableOptions()).collection
    same(load_file(tmp_path / "back" / "GunPoint_TRAIN.ts", TableOptions()).collection, original)


def test_the_other_split_and_the_columns_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("rec,t,x,state\na,1,1.5,u\na,0,1,u\nb,0,2,v\nb,1,,v\n")
    words = [
        "t.csv",
        "--source-layout",
        "long",
        "--id",
        "rec",
        "--time",
        "t",
        "--label",
        "state",
        "-o",
        "t2.csv",
    ]
    done = convert(*words, "--layout", "wide", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "t2.csv").read_text() == '"id","x_0","x_1","label"\n"a",1,1.5,"u"\n"b",2,,"v"\n'
    done = convert("GunPoint", "--split", "test", "-o", "test.npz", cwd=tmp_path)
    assert done.stdout.startswith("test.npz: 150 cases, 1 channel, 2 classes")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["GunPoint", "-o", "x.csv"],
            "x.csv is one file. Type --split train or --split test; or a folder, x/",
        ),
        (
            ["GunPoint", "-o", "x.csv", "--split", "train", "--format", "ts"],
            "the ending is not that of --format ts",
        ),
        (["t.csv", "-o", "x.ts", "--split", "train"], "t.csv has no splits. Leave out --split train"),
        (["t.csv", "-o", "t.csv/"], "t.csv cannot be made a folder"),
        (["t.csv", "-o", "x.doc"], "the ending '.doc' cannot be written"),
        (["gone.csv", "-o", "x.ts"], "gone.csv: no such file or folder"),
        (["t.csv", "-o", "no/x.ts"], "no/x.ts cannot be written"),
    ],
)
def test_what_cannot_be_converted(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "t.csv").write_text("id,x_0,x_1,label\na,1,2,u\nb,3,4,v\n")
    done = convert(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]

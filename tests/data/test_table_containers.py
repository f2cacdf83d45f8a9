"""Tables in other spellings of CSV, compressed, and in typed containers: the same cases come out."""

from __future__ import annotations

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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsattn.data import arrowread
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.csvdialect import sniff
from tsattn.data.sources import load_split
from tsattn.data.tables import read_table, stream_table
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import InputError

NONE = TableOptions()


def same(one: Collection, other: Collection) -> None:
    assert (one.ids, one.channels, one.labels, one.classes) == (
        other.ids,
        other.channels,
        other.labels,
        other.classes,
    )
    np.testing.assert_array_equal(one.values, other.values)


def gz(table: Path) -> Path:
    path = table.with_suffix(".csv.gz")
    path.write_bytes(gzip.compress(table.read_bytes()))
    return path


def zst(table: Path) -> Path:
    path = table.with_suffix(".csv.zst")
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(table.read_bytes())
    return path


def typed(table: Path) -> pa.Table:
    strings = {name: pa.string() for name in ("id", "label")}
    return pa_csv.read_csv(table, convert_options=pa_csv.ConvertOptions(column_types=strings))


def parquet(table: Path) -> Path:
    path = table.with_suffix(".parquet")
    pq.write_table(typed(table), path, row_group_size=100)
    return path


def feathered(table: Path) -> Path:
    path = table.with_suffix(".feather")
    feather.write_feather(typed(table), str(path), chunksize=100)
    return path


def arrow_stream(table: Path) -> Path:
    path = table.with_suffix(".arrow")
    whole = typed(table)
    with pa.ipc.new_stream(str(path), whole.schema) as writer:
        writer.write_table(whole, max_chunksize=77)
    return path


def respelled(separator: str, decimal: str) -> Callable[[Path], Path]:
    def write(table: Path) -> Path:
        path = table.with_name("respelled.csv")
        text = table.read_text().replace(".", decimal).replace(",", "\0") if decimal == "." else None
        if text is None:
            text = table.read_text().replace(",", "\0").replace(".", decimal)
        path.write_text("\ufeff" + text.replace("\0", separator).replace("\n", "\r\n"))
        return path

    return write


CONTAINERS = [
    gz,
    zst,
    parquet,
    feathered,
    arrow_stream,
    respelled(";", "."),
    respelled(";", ","),
    respelled("\t", "."),
    respelled("\t", ","),
    respelled("|", "."),
]


@pytest.mark.parametrize("pack", CONTAINERS)
@pytest.mark.parametrize("write", [write_wide_csv, write_long_csv])
def test_every_container_gives_the_cases_of_the_csv(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Collection, Path], None],
    pack: Callable[[Path], Path],
) -> None:
    monkeypatch.setattr(arrowread, "_BATCH_ROWS", 50)
    vowels = load_split("JapaneseVowels", "train", NONE).collection.take(np.arange(30))
    table = tmp_path / "v.csv"
    write(vowels, table)
    packed = pack(table)
    whole, roles = read_table(table, NONE)
    other, other_roles = read_table(packed, NONE)
    same(whole, other)
    assert roles == other_roles
    streamed = list(stream_table(packed, NONE, cases=7))
    assert [name for block in streamed for name in block.ids] == list(vowels.ids)
    for block, start in zip(streamed, range(0, 30, 7), strict=True):
        longest = block.values.shape[2]
        np.testing.assert_array_equal(block.values, whole.values[start : start + 7, :, :longest])


# Spellings of CSV


def read(path: Path, content: str, **options: str) -> Collection:
    path.write_text(content)
    return read_table(path, TableOptions(**options))[0]


def test_a_decimal_comma_is_told_from_the_cells_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t.csv"
    cases = read(path, 'id;time;x;"y, left";label\na;0,5;1,25;3;1,0\na;0,25;2,5;4;1,0\nb;1;-,5;1e-1;2\n')
    assert cases.channels == ("x", "y, left")
    assert cases.labels == ("1,0", "2")
    np.testing.assert_array_equal(cases.values[0], [[2.5, 1.25], [4, 3]])
    assert f"{path}: columns are separated by ';' with decimal commas." in caplog.text


def test_a_comma_is_not_remarked_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path / "t.csv", "id,note;x,x_0\na,b;c,1\n", label="note;x")
    assert not caplog.records


def test_a_fault_in_another_spelling_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with pytest.raises(InputError) as caught:
        read(path, "id;x_0;x_1\na;1,5;2\nb;1.5;2\n")
    assert "column 'x_0' holds '1.5' where a number belongs" in str(caught.value)
    assert str(caught.value).startswith(f"{path}:3:")


def test_two_separators_that_fit_are_not_guessed_between(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="separated by ',' or by ';': both give 2 in every row"):
        read(tmp_path / "t.csv", "a,b;c\n1,2;3\n4,5;6\n")


def test_decimal_points_and_commas_together_are_not_guessed_between(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"column 'b' has decimal commas and column 'a' decimal points"):
        read(tmp_path / "t.csv", "a;b\n1.5;2,5\n")


def test_thousands_of_columns(tmp_path: Path) -> None:
    count = 7000
    names = [f"x_{i}" for i in range(count)]
    cases = read(tmp_path / "t.csv", ";".join(["label", *names]) + "\nTrue" + ";0,5" * count + "\n")
    assert cases.values.shape == (1, 1, count)
    assert cases.labels == ("True",)


def test_labels_keep_their_spelling(tmp_path: Path) -> None:
    cases = read(tmp_path / "t.csv", "label,x_0\nTrue,1\nfalse,2\nFALSE,3\n")
    assert cases.labels == ("True", "false", "FALSE")
    assert read(tmp_path / "t.csv", "label,x_0\n1.0,1\n01,2\n").labels == ("1.0", "01")


@given(
    separator=st.sampled_from(",;\t|"),
    names=st.lists(st.text("ab ,;|\t\"'é", min_size=1), min_size=2, max_size=5),
    rows=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_header_in_quotes_leaves_the_separator_clear(
    tmp_path: Path, separator: str, names: list[str], rows: int
) -> None:
    quoted = separator.join('"' + name.replace('"', '""') + '"' for name in names)
    text = "\n".join([quoted, *[separator.join("1.5" for _ in names)] * rows]) + "\n"
    assert sniff(tmp_path / "t.csv", text, True).separator == separator


# Compressed


@pytest.mark.parametrize("pack", [gz, zst])
def test_lines_are_those_of_the_unpacked_text(tmp_path: Path, pack: Callable[[Path], Path]) -> None:
    (tmp_path / "t.csv").write_text("id,x_0\na,1\n\nb,two\nc,3\n")
    path = pack(tmp_path / "t.csv")
    with pytest.raises(InputError) as caught:
        read_table(path, NONE)
    assert str(caught.value).startswith(f"{path}:4: column 'x_0' holds 'two' where a number belongs")


@pytest.mark.parametrize("pack", [gz, zst])
@pytest.mark.parametrize("keep", [0.1, 0.9])
def test_a_compressed_file_that_is_cut_short(
    tmp_path: Path, pack: Callable[[Path], Path], keep: float
) -> None:
    rows = np.random.default_rng(0).integers(0, 10**9, 40_000)
    (tmp_path / "t.csv").write_text("id,x_0\n" + "".join(f"{i},{x}\n" for i, x in enumerate(rows)))
    path = pack(tmp_path / "t.csv")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_table(path, NONE)


def test_an_ending_that_is_not_true(tmp_path: Path) -> None:
    for name in ("t.csv.gz", "t.csv.zst"):
        (tmp_path / name).write_text("id,x_0\na,1\n")
        with pytest.raises(InputError, match="cannot be unpacked"):
            read_table(tmp_path / name, NONE)
    for name, form in (("t.parquet", "Parquet"), ("t.feather", "Arrow or Feather")):
        (tmp_path / name).write_text("id,x_0\na,1\n")
        with pytest.raises(InputError, match=f"cannot be read as {form}"):
            read_table(tmp_path / name, NONE)


# Typed columns


def written(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([1, 2]), ("1", "2")),
        (pa.array([1.0, -2.0]), ("1", "-2")),
        (pa.array([1.5, 2.0]), ("1.5", "2")),
        (pa.array([True, False]), ("True", "False")),
        (pa.array(["1.0", " x"]), ("1.0", " x")),
        (pa.array(["b", "é"]).dictionary_encode(), ("b", "é")),
        (pa.array([7, 8], pa.uint8()).dictionary_encode(), ("7", "8")),
        (pa.array(["u", "v"], pa.large_string()), ("u", "v")),
    ],
)
def test_labels_become_text(tmp_path: Path, labels: pa.Array, expected: tuple[str, ...]) -> None:
    path = written(tmp_path / "t.parquet", label=labels, x_0=[1.0, 2.0], x_1=[None, float("nan")])
    cases = read_table(path, NONE)[0]
    assert cases.labels == expected
    np.testing.assert_array_equal(cases.values, [[[1]], [[2]]])


@pytest.mark.parametrize(
    "times",
    [
        pa.array([20, 10], pa.timestamp("us")),
        pa.array([20, 10], pa.timestamp("ms", tz="Europe/Berlin")),
        pa.array([20, 10], pa.date32()),
        pa.array([20, 10], pa.time32("s")),
        pa.array([20, 10], pa.duration("ns")),
        pa.array([2**62 + 1, 2**62]),
        pa.array([0.2, 0.1], pa.float32()),
        pa.array(["2024-02-01", "2024-01-01"]),
    ],
)
def test_times_of_every_type(tmp_path: Path, times: pa.Array) -> None:
    path = written(tmp_path / "t.parquet", id=["a", "a"], time=times, x=pa.array([1, 2], pa.int16()))
    np.testing.assert_array_equal(read_table(path, NONE)[0].values, [[[2, 1]]])


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"id": ["a", "a", "b"], "x": [1.0, 2.0, float("inf")]}, {}, ", row 3: column 'x' holds 'inf'"),
        ({"id": ["a", "b", "a"], "x": [1, 2, 3]}, {"layout": "long"}, ", row 3: case 'a' comes back after"),
        ({"id": ["a", "a", None], "x": [1, 2, 3]}, {}, ", row 3: no id in column 'id'."),
        ({"id": ["a", "a"], "time": [1, None], "x": [1, 2]}, {}, ", row 2: column 'time' holds None where a"),
        ({"label": ["a", None], "x_0": [1, 2]}, {}, ", row 2: the label of case '1' is empty"),
        ({"label": ["a", "b"]}, {}, ": no column with numbers is left for the series. Columns: label."),
        ({"x_0": pa.array([], pa.int64())}, {}, ": no rows. A table needs one row a case or timepoint."),
    ],
)
def test_faults_have_their_row(
    tmp_path: Path, columns: dict[str, object], options: dict[str, str], said: str
) -> None:
    path = written(tmp_path / "t.parquet", **columns)
    with pytest.raises(InputError) as caught:
        read_table(path, TableOptions(**options))
    assert str(caught.value).startswith(f"{path}{said}")


def test_text_where_the_model_wants_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", x_0=["1", "2"], x_1=["3", "?"])
    with pytest.raises(InputError, match=r"row 2: column 'x_1' holds '\?' where a number belongs"):
        list(stream_table(path, NONE, channels=("x",)))


def test_lists_are_no_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", x=[[1.0, 2.0]], y=[1.0])
    assert read_table(path, NONE)[0].values.shape == (1, 1, 1)
    with pytest.raises(InputError, match=r"column 'x' holds list<.*> where numbers belong"):
        list(stream_table(path, TableOptions(layout="file"), channels=("x",)))


def test_a_parquet_file_that_is_cut_short(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", x_0=list(range(1000)))
    content = path.read_bytes()
    for keep in (0, 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:keep])
        with pytest.raises(InputError, match="cannot be read as Parquet"):
            read_table(path, NONE)
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "no.parquet", NONE)


def test_reading_parquet_imports_neither_pandas_nor_torch_nor_aeon(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", id=["a", "a"], time=[1, 2], x=[1.0, None], label=[1.0, 1.0])
    program = (
        "import sys; from pathlib import Path; from tsattn.data.tables import *\n"
        "list(stream_table(Path(sys.argv[1]), TableOptions()))\n"
        "print(sorted({'pandas', 'torch', 'aeon', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The spool


@given(
    lengths=st.lists(st.integers(1, 90), min_size=2, max_size=30).filter(lambda x: max(x) > 1),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_case_may_lie_in_many_batches_and_pieces(tmp_path: Path, lengths: list[int], seed: int) -> None:
    from tsattn.data import csvread, spool

    generator = np.random.default_rng(seed)
    values = np.full((len(lengths), 2, max(lengths)), np.nan, np.float32)
    for case, length in zip(values, lengths, strict=True):
        case[:, :length] = generator.random((2, length), np.float32)
        case[0, :length][generator.random(length) < 0.2] = np.nan
    cases = Collection(values, tuple(map(str, range(len(lengths)))), ("x", "y"))
    write_long_csv(cases, tmp_path / "t.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csvread, "_BLOCK_BYTES", 300)
        patch.setattr(csvread, "_BYTES_A_CELL", 1)
        patch.setattr(spool, "_PIECE_BYTES", 8 * 37)
        same(read_table(tmp_path / "t.csv", NONE)[0], cases)

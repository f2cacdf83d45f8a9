"""CSV tables in both layouts, whole and as a stream, and the channels a model asks for."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tsattn.data import csvread, csvtext
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.csvdialect import Unpacked
from tsattn.data.heads import open_head
from tsattn.data.readings import readings
from tsattn.data.sources import load_split
from tsattn.data.tables import read_table, sorted_classes, stream_table, table_roles
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import InputError

NONE = TableOptions()
NAN = float("nan")


def table(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, **options: str) -> Collection:
    return read_table(path, TableOptions(**options))[0]


# Reading


def test_wide_columns_are_channels_and_timepoints_in_any_order(tmp_path: Path) -> None:
    path = table(tmp_path, "y_2,id,x_1,label,y_1,x_2\n6,a,1,up,5,2\n,b,3,down,NaN,?\n")
    cases, roles = read_table(path, NONE)
    assert roles.layout == "wide"
    assert roles.columns == (("y_1", "y_2"), ("x_1", "x_2"))
    assert roles.as_dict() == {"layout": "wide", "id": "id", "label": "label"}
    assert cases.channels == ("y", "x")
    assert cases.ids == ("a", "b")
    assert cases.labels == ("up", "down")
    assert cases.classes == ("down", "up")
    np.testing.assert_array_equal(cases.values, [[[5, 6], [1, 2]], [[NAN, NAN], [3, NAN]]])


def test_plain_wide_is_one_channel_and_numbers_stay_as_spelled(tmp_path: Path) -> None:
    cases = read(table(tmp_path, "label,a,b,c\n1.0,1,2,3\n1,4,5,6\n"))
    assert cases.channels == ("value",)
    assert cases.labels == ("1.0", "1")
    assert cases.ids == ("0", "1")
    np.testing.assert_array_equal(cases.values, [[[1, 2, 3]], [[4, 5, 6]]])


def test_long_rows_are_put_together_and_ordered_by_time(tmp_path: Path) -> None:
    path = table(tmp_path, "case_id,TIME,x,y,class\n7,10,1,5,NaN\n7,9,2,,NaN\n3,1,3,4,b\n")
    cases, roles = read_table(path, NONE)
    assert roles.as_dict() == {"layout": "long", "id": "case_id", "time": "TIME", "label": "class"}
    assert cases.ids == ("7", "3")
    assert cases.labels == ("NaN", "b")
    np.testing.assert_array_equal(cases.values, [[[2, 1], [NAN, 5]], [[3, NAN], [4, NAN]]])


def test_long_without_time_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    cases, roles = read_table(table(tmp_path, "who,x\np,3\np,1\nq,2\nq,5\n"), TableOptions(id="who"))
    assert roles.as_dict() == {"layout": "long", "id": "who"}
    assert cases.labels is None
    np.testing.assert_array_equal(cases.values[:, 0], [[3, 1], [2, 5]])


@pytest.mark.parametrize(
    "times",
    [
        ("2024-02-01", "2024-01-31"),
        ("2024-01-01T10:00:00", "2024-01-01 09:59"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:30:00+02:00"),
        ("1700000000000000001", "1700000000000000000"),
        ("1.5", "-2"),
        (" 1e3", "999"),
    ],
)
def test_times_are_numbers_or_timestamps(tmp_path: Path, times: tuple[str, str]) -> None:
    cases = read(table(tmp_path, f"id,time,x\na,{times[0]},1\na,{times[1]},2\n"))
    np.testing.assert_array_equal(cases.values, [[[2, 1]]])


def test_numbered_sensors_beside_time_and_a_repeating_id_are_long(tmp_path: Path) -> None:
    roles = table_roles(table(tmp_path, "id,time,acc_1,acc_2\na,0,1,2\na,1,3,4\n"), NONE)
    assert (roles.layout, roles.channels) == ("long", ("acc_1", "acc_2"))


def test_subjects_that_repeat_stay_wide_where_columns_are_timepoints(tmp_path: Path) -> None:
    cases = read(table(tmp_path, "id,x_0,x_1\na,1,2\na,3,4\n"))
    assert cases.ids == ("a", "a")
    assert cases.values.shape == (2, 1, 2)


INTERLEAVED = [f"c{case},{time},{case + time},{'ab'[case % 2]}" for time in range(5) for case in range(12)]


def test_a_long_table_sorted_by_time_is_no_wide_one(tmp_path: Path) -> None:
    path = table(tmp_path, "\n".join(["id,time,x,label", *INTERLEAVED]) + "\n")
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == (
        f"{path}:14: case 'c0' comes back after another case. Rows of one case have to stand together: "
        "sort the file by 'id'."
    )
    with pytest.raises(InputError, match=r":14: case 'c0' .* sort the file by 'id'\."):
        readings(open_head(path), NONE)
    path = table(tmp_path, "id,x,y\n" + "a,1,2\nb,3,4\n" * 2)
    with pytest.raises(
        InputError, match=r"sort the file by 'id'. If a row is a whole case, type --layout wide"
    ):
        read(path)


@pytest.mark.parametrize("header", ["id,time,x,label", "id,y,x,label"])
def test_an_id_that_repeats_after_the_sample_is_noticed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    monkeypatch.setattr(csvtext, "_SAMPLE_ROWS", 5)
    path = table(tmp_path, "\n".join([header, *INTERLEAVED]) + "\n")
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value).startswith(
        f"{path}:14: case 'c0' comes back after another case, first at {path}:2"
    )
    assert "sort the file by 'id'. If a row is a whole case, type --layout wide." in str(error.value)


def test_an_id_of_two_rows_of_a_wide_table_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(tmp_path, "id,x_0,x_1\na,1,2\nb,3,4\na,5,6\n")
    assert read(path).ids == ("a", "b", "a")
    assert (
        f"{path}: 'a' in column 'id' is the id of more than one row, first of {path}:2 and {path}:4; "
        "each row is a case of its own." in caplog.text
    )


def test_a_table_trained_on_as_wide_stays_wide(tmp_path: Path) -> None:
    path = table(tmp_path, "id,x,y\n" + "a,1,2\nb,3,4\n" * 2)
    cases, roles = read_table(path, TableOptions(layout="wide"))
    trained = TableOptions(columns=roles.for_card()["columns"])
    assert table_roles(path, trained, cases.channels).layout == "wide"
    assert len(read_table(path, trained, cases.channels)[0]) == 4


def test_layout_option_decides(tmp_path: Path) -> None:
    path = table(tmp_path, "id,x,y\na,1,2\na,3,4\n")
    assert read(path).values.shape == (1, 2, 2)
    assert read(path, layout="wide").values.shape == (2, 1, 2)


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf"id","x_0","x_1"\r\n"a",1,2\r\n\r\nb,3,4\r\n',
        b"\n\nid, x_0, x_1\na,1, 2\nb, 3 ,+4",
        b"id,x_0,x_1\ra,1,2\rb,3,4\r",
    ],
)
def test_spellings_of_csv(tmp_path: Path, content: bytes) -> None:
    cases = read(table(tmp_path, content))
    assert cases.ids == ("a", "b")
    np.testing.assert_array_equal(cases.values[:, 0], [[1, 2], [3, 4]])


def test_missing_values_have_many_spellings(tmp_path: Path) -> None:
    cases = read(table(tmp_path, 'id,x_0,x_1,x_2,x_3\na,,NaN,nan,1\nb, NA,null,"?",2\nc," ",-nan,"",3\n'))
    np.testing.assert_array_equal(cases.values[:, 0], [[NAN, NAN, NAN, i] for i in (1, 2, 3)])


@pytest.mark.parametrize("word", ["NULL", "Null", "None", "none", "NONE", "N/A", "n/a", "NAN", "na", " None"])
def test_words_for_missing_are_missing_among_numbers_and_words_among_labels(
    tmp_path: Path, word: str
) -> None:
    rows = f"id,x_0,x_1,kind\na,{word},1,{word}\nb,{word},3,u\n"
    cases = read(table(tmp_path, rows), label="kind")
    np.testing.assert_array_equal(cases.values[:, 0], [[NAN, 1], [NAN, 3]])
    assert cases.labels == (word, "u")


def test_timepoints_that_no_case_has_are_left_out(tmp_path: Path) -> None:
    assert read(table(tmp_path, "id,x_0,x_1,x_2\na,1,,\nb,2,3,\n")).values.shape == (2, 1, 2)
    assert read(table(tmp_path, "id,x_0,x_1\na,,\nb,,\n")).values.shape == (2, 1, 1)


def test_text_columns_and_unnamed_ones_are_left_out_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = table(tmp_path, ",id,note,x_0,x_1,age\n0,a,hm,1,2,30\n1,b,,3,4,40\n")
    assert read(path).channels == ("x",)
    assert "columns of text are not used: note" in caplog.text
    assert "column 1 has no name" in caplog.text
    assert "not of the form CHANNEL_TIMEPOINT and therefore not used: age" in caplog.text


def test_a_number_that_says_something_of_the_case_is_remarked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [f"c{case},{time},{case // 2},7,{case * time}.5,a" for case in range(20) for time in range(3)]
    path = table(tmp_path, "\n".join(["id,time,subject,gain,x,label", *rows]) + "\n")
    assert read(path).channels == ("subject", "gain", "x")
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{path}: column 'subject' never changes within a case; it is used as a channel. If it says which "
        "cases belong together, type --group subject; if it is their class, --label subject."
    )
    caplog.clear()
    assert read(path, group="subject").channels == ("gain", "x")
    read_table(path, NONE, ("subject", "gain", "x"))
    assert caplog.text == ""


def test_a_timepoint_that_is_not_called_like_the_others_is_remarked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = table(tmp_path, "subject,t0,t1,t2,label\n1,0.5,0.6,0.7,a\n1,0.8,0.9,0.1,b\n")
    assert read(path).values.shape == (2, 1, 4)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{path}: not called like the other timepoints (t0, t1, t2) and used as one all the same: subject. "
        "If a column is none, say what it is: --id, --label or --group COLUMN."
    )
    caplog.clear()
    assert read(path, group="subject").values.shape == (2, 1, 3)
    assert read(table(tmp_path, "a,b,c1,label\n1,2,3,u\n4,5,6,v\n")).values.shape == (2, 1, 3)
    assert caplog.text == ""


def test_classes_are_sorted_as_numbers_if_all_are() -> None:
    assert sorted_classes(["10", "9", "-1", "9"]) == ("-1", "9", "10")
    assert sorted_classes(["10", "9", "a"]) == ("10", "9", "a")
    assert sorted_classes(["10", "9", "nan"]) == ("10", "9", "nan")


# Streaming


@pytest.mark.parametrize("cases", [1, 7, 64, 10_000])
@pytest.mark.parametrize("write", [write_wide_csv, write_long_csv])
def test_a_stream_gives_every_case_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Collection, Path], None], cases: int
) -> None:
    monkeypatch.setattr(csvread, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(csvread, "_BYTES_A_CELL", 40)
    vowels = load_split("JapaneseVowels", "test", NONE).collection.take(np.arange(40))
    path = tmp_path / "v.csv"
    write(vowels, path)
    blocks = list(stream_table(path, NONE, cases=cases))
    assert [len(block) for block in blocks[:-1]] == [cases] * (len(blocks) - 1)
    assert [name for block in blocks for name in block.ids] == list(vowels.ids)
    assert [x for block in blocks for x in block.labels or ()] == list(vowels.labels or ())
    start = 0
    for block in blocks:
        expected = vowels.take(np.arange(start, start + len(block)))
        assert block.values.shape[2] == expected.lengths.max()
        np.testing.assert_array_equal(block.values, expected.values[:, :, : block.values.shape[2]])
        assert block.classes == sorted_classes(block.labels or ())
        start += len(block)


def test_reading_imports_neither_pandas_nor_torch_nor_aeon(tmp_path: Path) -> None:
    path = table(tmp_path, "id,time,x,label\na,1,2,l\na,0,,l\n")
    program = (
        "import sys; from pathlib import Path; from tsattn.data.tables import *\n"
        "list(stream_table(Path(sys.argv[1]), TableOptions()))\n"
        "print(sorted({'pandas', 'torch', 'aeon', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The channels of a model


def test_the_model_s_channels_are_found_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wide = table(tmp_path, "note,z_0,x_0,y_0,x_1,y_1\nhm,9,1,2,3,4\n")
    (block,) = stream_table(wide, NONE, channels=("y", "x"))
    assert block.channels == ("y", "x")
    np.testing.assert_array_equal(block.values, [[[2, 4], [1, 3]]])
    long = table(tmp_path, "id,note,z,x,y\na,hm,9,1,2\na,hm,9,3,4\n")
    (block,) = stream_table(long, NONE, channels=("y", "x"))
    np.testing.assert_array_equal(block.values, [[[2, 4], [1, 3]]])
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "not in the training data and not used: z."
    ] * 2


def test_other_names_are_taken_in_order_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(tmp_path, "a_0,b_0\n1,2\n")
    (block,) = stream_table(path, NONE, channels=("y", "x"))
    assert block.channels == ("y", "x")
    np.testing.assert_array_equal(block.values, [[[1], [2]]])
    assert "channels are taken in order, a, b as y, x" in caplog.text


def test_another_number_of_channels_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "a_0,b_0\n1,2\n")
    with pytest.raises(InputError) as caught:
        next(stream_table(path, NONE, channels=("x", "y", "z")))
    assert str(caught.value) == f"{path}: 2 channels (a, b), the model expects 3 (x, y, z)."


def test_groups_are_read_in_either_layout(tmp_path: Path) -> None:
    long = tmp_path / "long.csv"
    long.write_text("id,subject,x,label\na,s1,1,u\na,s1,2,u\nb,s2,3,v\nb,s2,4,v\nc,s1,5,v\nc,s1,6,v\n")
    wide = tmp_path / "wide.csv"
    wide.write_text("id,subject,x_0,x_1,label\na,7,1,2,u\nb,8,3,4,v\n")
    cases, roles = read_table(long, TableOptions(group="subject"))
    assert cases.groups == ("s1", "s2", "s1")
    assert cases.channels == ("x",)
    assert roles.as_dict()["group"] == "subject"
    assert read_table(wide, TableOptions(group="subject"))[0].groups == ("7", "8")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("a,s1,1\na,s2,2\nb,s1,3\n", "3: column 'subject' changes from 's1' to 's2' within case 'a'"),
        ("a,s1,1\na,s1,2\nb,,3\nb,,4\n", "4: column 'subject' is empty in case 'b'"),
    ],
)
def test_a_case_belongs_to_one_group(rows: str, says: str, tmp_path: Path) -> None:
    table = tmp_path / "long.csv"
    table.write_text("id,subject,x\n" + rows)
    with pytest.raises(InputError) as error:
        read_table(table, TableOptions(group="subject", layout="long"))
    assert f"long.csv:{says}. A case belongs to one group." in str(error.value)


def test_a_row_of_a_wide_table_without_a_group_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "id,subj,x_0,x_1\na,s1,1,2\nb,,3,4\nc,,5,6\n")
    with pytest.raises(InputError) as error:
        read(path, group="subj")
    assert str(error.value) == f"{path}:3: column 'subj' is empty. A case belongs to one group."


def test_labels_of_timepoints(tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text("id,time,x,state\nm,2,3,run\nm,0,1,idle\nm,1,2,run\nm,3,4,\nn,0,5,idle\nn,1,6,idle\n")
    options = TableOptions(label="state", label_of="timepoint")
    cases, _ = read_table(table, options)
    assert (cases.classes, cases.labels) == (("idle", "run"), None)
    assert cases.timepoint_labels is not None
    assert cases.timepoint_labels.tolist() == [[0, 1, 1, -1], [0, 0, -1, -1]]
    np.testing.assert_array_equal(cases.values[:, 0], [[1, 2, 3, 4], [5, 6, np.nan, np.nan]])
    with pytest.raises(InputError) as error:
        read_table(table, TableOptions(label="state"))
    assert str(error.value) == (
        f"{table}:3: the label changes from 'run' to 'idle' within a case (columns 'state' and 'id'). A case "
        "has one label. To cut it into windows that take the label of most of their rows, train with "
        "--window LENGTH."
    )
    table.write_text("id,time,x,state\nm,2,3,\nm,0,1,\n")
    with pytest.raises(InputError, match="no row has a label, column 'state' is empty"):
        read_table(table, options)


@pytest.mark.parametrize("first", [0, 1])
def test_a_header_that_counts_is_a_header_with_and_without_the_label(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, first: int
) -> None:
    names = ",".join(map(str, range(first, first + 4)))
    (tmp_path / "labelled.csv").write_text(f"{names},target\n1,2,3,4,a\n5,6,7,8,b\n")
    (tmp_path / "new.csv").write_text(f"{names}\n1,2,3,4\n5,6,7,8\n")
    labelled, _ = read_table(tmp_path / "labelled.csv", TableOptions(label="target"))
    assert "counts" not in caplog.text
    new, _ = read_table(tmp_path / "new.csv", TableOptions(), labelled.channels)
    assert f"the first line counts from {first} and is taken for column names" in caplog.text
    assert new.channels == labelled.channels
    np.testing.assert_array_equal(new.values, labelled.values)


@pytest.mark.parametrize(
    "header",
    [
        "0.0,0.1,0.2,kind",
        "400,402,404,kind",
        "9,8,7,kind",
        "7,3,5,label",
        "id,0,5,kind",
        ",0,1,kind",
        "#,1,2,kind",
    ],
)
def test_numbers_may_name_timepoints(tmp_path: Path, header: str) -> None:
    path = table(tmp_path, header + "\n1,2,3,a\n4,5,6,b\n7,8,9,a\n")
    kind = header.rsplit(",", 1)[-1]
    assert read(path, label=kind).labels == ("a", "b", "a")


def test_threads_of_the_reader_never_call_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # They outlive an error, and a thread that calls Python while it ends aborts the process.
    threads = set()
    read = Unpacked.read

    def watched(file: Unpacked, size: int = -1) -> bytes:
        threads.add(threading.current_thread())
        return read(file, size)

    monkeypatch.setattr(Unpacked, "read", watched)
    (tmp_path / "t.csv").write_text("x_0,x_1\n" + "1,2\n" * 999 + "1,two\n")
    with pytest.raises(InputError, match=r"t.csv:1001: column 'x_1' holds 'two'"):
        read_table(tmp_path / "t.csv", TableOptions())
    assert threads == {threading.main_thread()}

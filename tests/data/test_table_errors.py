"""Every message about a CSV table: one sentence with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tsattn.data import csvread
from tsattn.data.columns import TableOptions
from tsattn.data.tables import read_table, stream_table
from tsattn.errors import InputError


def table(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def message(path: Path, **options: str) -> str:
    """What reading says that cannot be done."""
    with pytest.raises(InputError) as caught:
        read_table(path, TableOptions(**options))
    return str(caught.value)


NO_NAMES = (
    "t.csv:1: the first line holds only numbers and 'a' ('0.1, 0.2, 0.3, a'), as the lines below it do. "
    "A table begins with a line of column names: add one."
)
NO_NUMBER = (
    "t.csv:3: column 'x_0' holds '-' where a number belongs. A missing value is an empty cell or one of "
    "NaN, NA, N/A, null, None, ?."
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "t.csv: the file is empty. A table begins with a line of column names."),
        (b"\n \n", "t.csv: the file is empty."),
        (b"id,x_0\n", "t.csv: a header and no rows below it."),
        (b"id,x\x00\n1,2\n", "t.csv:1: a NUL byte: this is a binary file or damaged, not CSV."),
        ("id,x_0\na,1\n".encode("utf-16"), "t.csv: UTF-16 text. Save the file as UTF-8"),
        (b"id,x_0\na,1\n\xfc,2\n", "t.csv:3: not UTF-8. Save the file as UTF-8 text"),
        (b"1,2\n3,4\n", "t.csv:1: the first line holds only numbers ('1, 2')."),
        (b"0,2,1\n3,4,5\n", "t.csv:1: the first line holds only numbers ('0, 2, 1')."),
        (b"2,3,4\n3,4,5\n", "t.csv:1: the first line holds only numbers ('2, 3, 4')."),
        (b"0.1,0.2,0.3,a\n0.4,0.5,0.6,b\n0.7,0.8,0.9,a\n", NO_NAMES),
        (b"a,3,4,2\nb,4,5,1\n", "t.csv:1: the first line holds only numbers and 'a' ('a, 3, 4, 2')"),
        (b"c0,0,2,a\nc0,1,3,a\nc1,0,5,b\n", "t.csv:1: the first line holds only numbers and 'c0' ('c0, 0,"),
        (
            b"u;0,3;0,2;a\nv;0,5;0,1;a\n",
            "t.csv:1: the first line holds only numbers and 'a' ('u, 0,3, 0,2, a'",
        ),
        (
            b"# made by hand\nid,x_0,x_1\na,1,2\n",
            "t.csv:1: a comment ('# made by hand'); comments are not read: remove the line. A table begins",
        ),
        (b"# made, by hand\nid,x_0,x_1\na,1,2\n", "t.csv:1: a comment ('# made'); comments are not read"),
        (b"# by hand\nid;x_0;x_1\na;1,5;2\n", "t.csv:1: a comment ('# by hand'); comments are not read"),
        (b"id,x_0\na,1\n# end\n", "t.csv:3: 1 fields, the header has 2. Comments are not read: remove the"),
        (b"id,x,x\na,1,2\n", "t.csv:1: two columns are called 'x'. Rename one of them."),
        (b"id,x_0\na,1\n\nb,2,3\n", "t.csv:4: 3 fields, the header has 2."),
        (b"id,x_0\na\n", "t.csv:2: 1 fields, the header has 2."),
        (b'id,x_0\n"a\na",1\nb,zwei\n', "t.csv:4: column 'x_0' holds 'zwei' where a number belongs."),
        (b"id,x_0\na,1\nb,-\n", NO_NUMBER),
        (b"id,x_0\na,1\nb,1_0\n", "t.csv:3: column 'x_0' holds '1_0' where a number belongs."),
        (b"id,x_0\na,1\nb,-inf\n", "t.csv:3: column 'x_0' holds '-inf', which is infinite or beyond"),
        (b"id,x_0\na,1\nb,1e39\n", "t.csv:3: column 'x_0' holds '1e39', which is infinite or beyond"),
        (b'id,x_0,label\na,1,u\nb,2,"v\nc,3,w\n', "t.csv:3: a quote is opened and never closed."),
        (b"id,x_0,label\na,1,u\nb,2,\n", "t.csv:3: the label of case 'b' is empty (column 'label')."),
        (b"id,note\na,b\n", "t.csv: no column with numbers is left for the series. Columns: id, note."),
        (b"x_0,x_1,x_3\n1,2,3\n", "t.csv: column 'x_2' is missing. Columns CHANNEL_TIMEPOINT count"),
        (b"x_1,x_2,y_1\n1,2,3\n", "t.csv: column 'y_2' is missing."),
        (b"x_0,y_1\n1,2\n", "t.csv: column 'x_1' is missing."),
        (b"x_7,x_8\n1,2\n", "t.csv: column 'x_1' is missing."),
        (b"x_0,x_1,x_01\n1,2,3\n", "t.csv: columns 'x_01' and 'x_1' are the same timepoint of channel 'x'."),
        (b"time,x\n1,2\n", "t.csv: a column 'time' and none that names the case. If a row is a timepoint,"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = table(tmp_path, content)
    assert message(path).startswith(said.replace("t.csv", str(path), 1))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,x\na,1\na,2\nb,3\na,4\n", ":5: case 'a' comes back after another case."),
        ("id,x\na,1\na,2\n,3\n", ":4: no id in column 'id'. Every row needs its case's id."),
        (
            "id,time,x\na,1,1\na,2,2\na,1,3\n",
            ":4: case 'a' has the time of this row (column 'time') twice, first at",
        ),
        ("id,x,label\na,1,u\n\na,2,v\n", ":4: the label changes from 'u' to 'v' within a case"),
        (
            "id,time,x\na,1,1\na,soon,2\n",
            ":3: column 'time' holds 'soon' where a number belongs.",
        ),
        (
            "id,time,x\na,1,1\na,nan,2\n",
            ":3: column 'time' holds 'nan' where a number belongs.",
        ),
        ("id,time,x\na,1,1\na,,2\n", ":3: column 'time' holds '' where a number belongs."),
        (
            "id,time,x\na,soon,2\na,later,3\n",
            ":2: column 'time' holds 'soon' where a number or a timestamp such as",
        ),
        ("id,time,x\na,2024-01-01,2\na,2,2\n", ":3: column 'time' holds '2' where a timestamp such as"),
        (
            "id,time,x\na,2024-01-01T10:00:00Z,2\na,2024-01-01T11:00:00,2\n",
            ":3: column 'time' holds '2024-01-01T11:00:00' where a timestamp with its time zone, such as",
        ),
        (
            "id,time,x\na,2024-01-01T10:00:00,2\na,2024-01-01T11:00:00+02:00,2\n",
            ":3: column 'time' holds '2024-01-01T11:00:00+02:00' where a timestamp without a time zone,",
        ),
        ("id,x\na,1\na,2\nb,x\n", ":4: column 'x' holds 'x' where a number belongs."),
    ],
)
def test_what_is_wrong_in_a_long_table(tmp_path: Path, content: str, said: str) -> None:
    path = table(tmp_path, content)
    assert message(path).startswith(f"{path}{said}")


def test_lines_are_right_far_into_a_long_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks end in the middle of cases, and what spans two of them is still noticed."""
    monkeypatch.setattr(csvread, "_BLOCK_BYTES", 300)
    rows = [f"{row // 50},{row},{row},l" for row in range(1000)]
    path = table(tmp_path, "\n".join(["id,time,x,label", *rows]) + "\n")
    assert read_table(path, TableOptions())[0].values.shape == (20, 1, 50)

    def changed(line: int, row: str) -> str:
        lines = ["id,time,x,label", *rows]
        lines[line - 1] = row
        return message(table(tmp_path, "\n".join(lines) + "\n"))

    assert changed(941, "18,939,1,m").startswith(f"{path}:941: the label changes from 'l' to 'm'")
    assert changed(941, "18,939,inf,l").startswith(f"{path}:941: column 'x' holds 'inf'")
    assert changed(941, "18,939,1 1,l").startswith(f"{path}:941: column 'x' holds '1 1'")
    assert changed(941, "18,2024-01-01,1,l").startswith(
        f"{path}:941: column 'time' holds '2024-01-01' where a number belongs."
    )
    assert changed(941, "18,901,1,l").startswith(f"{path}:941: case '18' has the time of this row")
    assert changed(941, "3,939,1,l").startswith(f"{path}:941: case '3' comes back")
    for line in (700, 1001):
        assert changed(line, f'{(line - 2) // 50},{line - 2},1,"l').startswith(
            f"{path}:{line}: a quote is opened and never closed."
        )


@pytest.mark.parametrize("zones", [("", "Z"), ("Z", "")])
def test_time_zones_that_begin_in_a_later_block_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zones: tuple[str, str]
) -> None:
    """Wherever a block ends; each alone would read well."""
    monkeypatch.setattr(csvread, "_BLOCK_BYTES", 300)
    for change in range(20, 40):
        rows = [f"c{row},2024-01-01T10:00:{row:02}{zones[row >= change]},1" for row in range(60)]
        path = table(tmp_path, "\n".join(["id,time,x", *rows]) + "\n")
        said = f"{path}:{change + 2}: column 'time' holds '2024-01-01T10:00:{change:02}{zones[1]}' where"
        assert message(path, layout="long").startswith(said)


def test_a_long_table_of_single_rows_is_suspected_to_be_wide(tmp_path: Path) -> None:
    path = table(tmp_path, "id,x\n" + "".join(f"{i},1\n" for i in range(300)))
    said = f"{path}: read as long (a row a timepoint), every case has exactly one row. If a row is"
    assert message(path, layout="long").startswith(said)
    with pytest.raises(InputError, match="exactly one row"):
        list(stream_table(path, TableOptions(layout="long"), cases=1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label": "lable"}, "no column 'lable' (--label). Did you mean label?"),
        ({"id": "zzz"}, "no column 'zzz' (--id). Columns: id, when, x_0, label."),
        ({"id": "label", "label": "label"}, "column 'label' cannot be --id and --label at once."),
        ({"time": "when", "layout": "wide"}, "--time when orders the rows of a case; in the wide layout"),
        ({"layout": "tall"}, "layout 'tall' is not known. Type long, wide or file."),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: dict[str, str], said: str) -> None:
    path = table(tmp_path, "id,when,x_0,label\na,1,2,u\n")
    assert said in message(path, **options)


def test_the_long_layout_needs_an_id(tmp_path: Path) -> None:
    path = table(tmp_path, "when,x\n1,2\n")
    expected = (
        "the long layout needs the column that names the case of a row. Type --id COLUMN, one of: when, x."
    )
    assert message(path, layout="long") == f"{path}: {expected}"
    assert message(path, time="when") == f"{path}: {expected}"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert message(tmp_path / "no.csv") == f"{tmp_path / 'no.csv'}: no such file."
    assert message(tmp_path).startswith(f"{tmp_path} is a folder where a CSV file was expected.")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (b"c\0", "15002: a NUL byte: this is a binary file or damaged"),
        (b"\xff", "15002: not UTF-8. Save the"),
    ],
)
def test_a_fault_far_from_where_the_reader_looks_first(found: bytes, said: str, tmp_path: Path) -> None:
    rows = [b"c%d,%d,%d" % (i // 50, i % 50, i) for i in range(20_000)]
    rows[15_000] = rows[15_000].replace(b"c", found)
    path = tmp_path / "t.csv"
    path.write_bytes(b"\n".join([b"id,time,x", *rows]) + b"\n")
    assert f"t.csv:{said}" in message(path)
    with pytest.raises(InputError, match=said[:20]):
        list(stream_table(path, TableOptions()))

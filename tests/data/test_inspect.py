"""`data inspect`: every reading of a file, the facts of the first, and commands that work."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.cli.sparkline import sparkline
from tsattn.data.columns import TableOptions
from tsattn.data.heads import open_head
from tsattn.data.readings import readings, train_command
from tsattn.data.sources import LoadedSplit, embedded_folder, load_split
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import InputError

NOTHING = TableOptions()


def write(path: Path, header: str, rows: Iterable[Iterable[Any]]) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def noise(seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    return lambda: round(float(generator.normal()), 3)


def long_rows(word: tuple[Any, Any] = ("a", "b"), cases: int = 6) -> list[tuple[Any, ...]]:
    """Id, time, two values, label; the labels take turns."""
    value = noise()
    return [(f"c{i}", t, value(), value(), word[i % 2]) for i in range(cases) for t in range(5)]


def wide_rows(word: tuple[Any, Any] = ("a", "b")) -> list[tuple[Any, ...]]:
    """Six values, label."""
    value = noise()
    return [(*(value() for _ in range(6)), word[i % 2]) for i in range(10)]


def read(path: Path, options: TableOptions = NOTHING) -> list[tuple[dict[str, str], str]]:
    """Roles and command of every reading, the command without `tsattn train FILE`."""
    found = readings(open_head(path), options)
    prefix = f"tsattn train {shlex.quote(str(path))}"
    return [
        (r.roles.as_dict(), train_command(str(path), r.options).removeprefix(prefix).strip()) for r in found
    ]


LONG = {"layout": "long", "id": "id", "time": "time", "label": "label"}


def test_names_that_say_their_role_need_no_option(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,time,x,y,label", long_rows())
    assert read(path) == [(LONG, "")]


def test_an_integer_that_is_constant_in_a_case_may_be_label_or_channel(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,time,x,y,state", long_rows((0, 1)))
    label, channel = read(path)
    assert label == ({**LONG, "label": "state"}, "--label state")
    assert channel == ({"layout": "long", "id": "id", "time": "time"}, "")


def test_a_word_can_only_be_a_label(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,time,x,y,state", long_rows())
    assert read(path) == [({**LONG, "label": "state"}, "--label state")]


def test_id_and_time_without_a_name_are_found_and_the_time_may_be_a_channel(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "device,t,x,y,state", long_rows())
    time, channel = read(path)
    roles = {"layout": "long", "id": "device", "time": "t", "label": "state"}
    assert time == (roles, "--id device --time t --label state")
    del roles["time"]
    assert channel == (roles, "--id device --label state")


def test_a_date_is_a_time(tmp_path: Path) -> None:
    rows = [(name, f"2024-05-0{day + 1}", x, word) for name, day, x, _, word in long_rows()]
    path = write(tmp_path / "t.csv", "rec,date,x,act", rows)
    assert [command for _, command in read(path)] == ["--id rec --time date --label act"]


def test_a_trailing_integer_of_a_wide_table_may_be_label_or_value(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,c,d,e,f,y", wide_rows((0, 1)))
    assert read(path) == [({"layout": "wide", "label": "y"}, "--label y"), ({"layout": "wide"}, "")]


def test_a_leading_integer_too_also_where_it_is_sorted(tmp_path: Path) -> None:
    rows = sorted((row[-1], *row[:-1]) for row in wide_rows((0, 1)))
    path = write(tmp_path / "t.csv", "kind,a,b,c,d,e,f", rows)
    assert [roles.get("label") for roles, _ in read(path)] == ["kind", None]


def test_a_word_of_a_wide_table_is_the_label_wherever_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,kind,c", [(*r[:2], r[6], r[2]) for r in wide_rows()])
    assert read(path) == [({"layout": "wide", "label": "kind"}, "--label kind")]


def test_none_is_a_class_beside_another_word(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,c,d,e,f,kind", wide_rows(("none", "fire")))
    assert read(path) == [({"layout": "wide", "label": "kind"}, "--label kind")]


def test_beside_numbered_columns(tmp_path: Path) -> None:
    rows = [(i, *row) for i, row in enumerate(wide_rows((0, 1)))]
    path = write(tmp_path / "t.csv", "id,x_0,x_1,x_2,y_0,y_1,y_2,kind", rows)
    roles = {"layout": "wide", "id": "id"}
    assert read(path) == [({**roles, "label": "kind"}, "--label kind"), (roles, "")]


def test_two_columns_called_like_a_label_are_both_listed(tmp_path: Path) -> None:
    rows = [(*row, row[-1].upper()) for row in long_rows()]
    path = write(tmp_path / "t.csv", "id,time,x,y,label,class", rows)
    assert [command for _, command in read(path)] == ["", "--label class"]


def test_what_is_typed_is_not_questioned(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "device,t,x,y,state", long_rows((0, 1)))
    options = TableOptions(id="device", time="t", label="state")
    assert [command for _, command in read(path, options)] == ["--id device --time t --label state"]
    wide = read(path, TableOptions(layout="wide", label="state"))
    assert [roles for roles, _ in wide] == [{"layout": "wide", "label": "state"}]


@pytest.mark.parametrize("layout", ["long", "wide"])
def test_a_group_is_typed_and_stays_in_the_command(tmp_path: Path, layout: str) -> None:
    """Text that is constant in a case would else be taken for a second label."""
    rows = long_rows() if layout == "long" else wide_rows()
    rows = [(*row[:-1], f"s{row[0]}"[:3], row[-1]) for row in rows]
    header = "id,time,x,y,who,label" if layout == "long" else "a,b,c,d,e,f,who,label"
    path = write(tmp_path / "t.csv", header, rows)
    for roles, command in read(path, TableOptions(group="who")):
        assert (roles["group"], roles["label"]) == ("who", "label")
        assert command.endswith("--group who")
    with pytest.raises(InputError, match=r"no column 'nobody' \(--group\)"):
        read(path, TableOptions(group="nobody"))


def test_times_without_ids_are_one_recording_or_cases(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "time,x", [(t, t / 2) for t in range(6)])
    assert read(path) == [({"layout": "wide"}, "--layout wide")]


def test_recordings_without_a_label(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "rec,time,x", [row[:3] for row in long_rows()])
    assert read(path) == [({"layout": "long", "id": "rec", "time": "time"}, "--id rec")]


@pytest.mark.parametrize(("word", "quoted"), [("my sensor", "'my sensor'"), ("--x", "--label=--x")])
def test_commands_are_quoted_for_a_shell_and_work(tmp_path: Path, word: str, quoted: str) -> None:
    path = write(tmp_path / "a 'b' $c.csv", f"id,time,x,y,{word}", long_rows())
    (reading,) = readings(open_head(path), NOTHING)
    command = train_command(str(path), reading.options)
    assert quoted in command
    assert shlex.split(command)[2] == str(path)
    assert shlex.split(train_command("-a.csv", NOTHING)) == ["tsattn", "train", "./-a.csv"]
    loaded = typed(command)
    assert loaded.collection.labels == reading.loaded.collection.labels


def typed(command: str) -> LoadedSplit:
    """What `tsattn train …` would train on: its own parser reads the words, load_split the cases."""
    words = shlex.split(command)
    assert words[:2] == ["tsattn", "train"]
    _, train, rest = typer.main.get_command(app).resolve_command(  # type: ignore[attr-defined]
        typer.Context(typer.main.get_command(app)), words[1:]
    )
    given = train.make_context("train", rest).params
    options = TableOptions(
        layout=given["layout"], id=given["id_column"], time=given["time_column"], label=given["label_column"]
    )
    return load_split(given["source"], "train", options)


FILES = {
    "names": ("id,time,x,y,label", long_rows()),
    "integers": ("id,time,x,y,state", long_rows((0, 1))),
    "nothing named": ("device,t,x,y,state", long_rows((0, 1))),
    "wide": ("a,b,c,d,e,f,y", wide_rows((0, 1))),
    "numbered": ("x_0,x_1,x_2,y_0,y_1,y_2,kind", wide_rows((3, 4))),
}


@pytest.mark.parametrize("name", FILES)
def test_every_command_that_is_shown_works_and_gives_what_was_shown(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "t.csv", *FILES[name])
    done = CliRunner().invoke(app, ["data", "inspect", str(path), "--json"])
    assert done.exit_code == 0, done.output
    (document,) = json.loads(done.stdout)["files"]
    commands = [reading["command"] for reading in document["readings"] if reading["command"]]
    assert commands
    for reading in document["readings"]:
        if reading["command"] is None:
            assert reading["obstacle"].startswith("no label")
            continue
        cases = typed(reading["command"]).collection
        assert len(cases) == reading["cases"]
        assert list(cases.channels) == reading["channels"]
        assert list(cases.classes) == list(reading["classes"])


def inspect(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tsattn", "data", "inspect", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd)


def test_the_whole_picture_in_80_columns(tmp_path: Path) -> None:
    rows = [
        (n, f"2024-05-01T12:00:{3 * t + 30 * (n == 'c1' and t > 3):02}", x, 7, w)
        for n, t, x, _, w in long_rows()
    ]
    write(tmp_path / "sensors.csv", "id,time,x,y,state", rows)
    done = inspect("sensors.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    for words in (
        "long table, a row a timepoint; id 'id'; time 'time'; label 'state'",
        "time 'time': 3 s a step, uneven; 1 gap of more than 1.5 steps, in 1 case",
        "constant channels        │ y",
        "50.0 %",
        "case 'c0', class 'a'",
        "y  ▁▁▁▁▁",
        "\ntsattn train sensors.csv --label state\n",
    ):
        assert words in done.stdout, done.stdout


def test_ways_are_listed_with_their_commands(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "a,b,c,d,e,f,y", wide_rows((0, 1)))
    done = inspect("t.csv", cwd=tmp_path)
    assert done.returncode == 0
    first, second = done.stdout.index("1. wide table"), done.stdout.index("2. wide table")
    assert (
        "   10 cases, 1 channel, lengths 6, 2 classes\n   tsattn train t.csv --label y\n"
        in done.stdout[first:second]
    )
    assert "no label\n" in done.stdout[second:]
    assert "understood in 2 ways" in done.stdout


@pytest.mark.parametrize(
    ("header", "rows", "said"),
    [
        ("id,time,who,x,label",
         [(f"c{i}", t, i // 2, t / 3 + i, "ab"[i % 2]) for i in range(6) for t in range(4)],
         "column 'who' never changes within a case; it is used as a channel."),
        ("who,t0,t1,t2,label", [(i // 2, i / 3, i / 7, i / 5, "ab"[i % 2]) for i in range(6)],
         "not called like the other timepoints (t0, t1, t2)"),
        ("id,x_0,x_1,label", [(i % 3, i / 3, i / 7, "ab"[i % 2]) for i in range(6)],
         "'0' in column 'id' is the id of more than one row"),
    ],
)  # fmt: skip
def test_what_looks_odd_is_shown(tmp_path: Path, header: str, rows: list[Any], said: str) -> None:
    write(tmp_path / "t.csv", header, rows)
    done = inspect("t.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count(said) == 1


def test_cases_in_train_and_test_are_found(tmp_path: Path) -> None:
    folder = embedded_folder("GunPoint")
    assert folder is not None
    for split in ("TRAIN", "TEST"):
        shutil.copy(folder / f"GunPoint_{split}.ts", tmp_path / f"Leak_{split}.ts")
    lines = (tmp_path / "Leak_TRAIN.ts").read_text().splitlines()
    with (tmp_path / "Leak_TEST.ts").open("a") as file:
        file.write("\n" + lines[-1] + "\n")
    for words in (["Leak_TRAIN.ts"], ["."], ["Leak_TRAIN.ts", "Leak_TEST.ts"]):
        done = inspect(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "in both train and test: 1 case: 49 = 150" in done.stdout
    document = json.loads(inspect("Leak_TRAIN.ts", "Leak_TEST.ts", "--json", cwd=tmp_path).stdout)
    assert document["files"][0]["cases_in_both"] == [["49", "150"]]
    assert document["cases_in_both"] == [
        {"files": ["Leak_TRAIN.ts", "Leak_TEST.ts"], "cases": [["49", "150"]]}
    ]
    train, test = document["files"]
    assert train["readings"][0]["command"] == "tsattn train Leak_TRAIN.ts"
    assert (test["readings"][0]["command"], test["part"]) == (None, "test")
    assert "tsattn eval RUN" in test["readings"][0]["obstacle"]


def test_cases_in_both_tables_are_found(tmp_path: Path) -> None:
    cases = load_split("BasicMotions", "train", NOTHING).collection
    for write_table in (write_wide_csv, write_long_csv):
        write_table(cases, tmp_path / "m_train.csv")
        write_table(cases.take(np.array([3, 5])), tmp_path / "m_test.csv")
        done = json.loads(inspect("m_train.csv", "--json", cwd=tmp_path).stdout)
        assert done["files"][0]["cases_in_both"] == [["3", "3"], ["5", "5"]]
        assert done["files"][0]["test"]["cases"] == 2


def test_a_test_table_that_does_not_fit_is_said(tmp_path: Path) -> None:
    write(tmp_path / "m_train.csv", "id,time,x,y,label", long_rows())
    write(tmp_path / "m_test.csv", "id,time,x,label", [(*r[:3], r[4]) for r in long_rows()])
    done = inspect("m_train.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "the test split cannot be used" in done.stderr
    assert "1 channels" in done.stderr


@pytest.mark.parametrize("form", ["table", "npz"])
def test_groups_in_train_and_test_are_told(tmp_path: Path, form: str) -> None:
    def rows(groups: str) -> list[tuple[Any, ...]]:
        return [(*row[:-1], groups[i % len(groups)], row[-1]) for i, row in enumerate(wide_rows())]

    if form == "table":
        for split, groups in (("train", "stu"), ("test", "tuv")):
            write(tmp_path / f"m_{split}.csv", "a_0,a_1,a_2,a_3,a_4,a_5,who,label", rows(groups))
        source = ["m_train.csv", "--group", "who"]
    else:
        words, value = np.array(list("abab")), np.random.default_rng(0)
        np.savez(
            tmp_path / "m.npz",
            X_train=value.random((4, 1, 5)), y_train=words, groups_train=np.array(list("sttu")),
            X_test=value.random((4, 1, 5)), y_test=words, groups_test=np.array(list("tuvv")),
        )  # fmt: skip
        source = ["m.npz"]
    done = inspect(*source, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "in both train and test: group 't' and 1 more. Cases of one group are alike, so" in done.stderr
    if form == "table":
        assert "in both train and test: group" not in inspect("m_train.csv", cwd=tmp_path).stderr


def test_a_label_that_is_always_the_same_cannot_be_trained_on(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "id,time,x,y,label", long_rows(("a", "a")))
    done = inspect("t.csv", cwd=tmp_path)
    assert "(all cases have the same label: training needs at least two classes)" in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,time,x\na,0,1\na,0,2\n", "t.csv:3: case 'a' has the time of this row"),
        ("id,time,x,label\na,0,1,u\na,1,oops,u\n", "t.csv:3: column 'x' holds 'oops'"),
        ("", "t.csv: the file is empty"),
    ],
)
def test_what_cannot_be_read_in_any_way(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    done = inspect("t.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "id,time,x,y,label", long_rows())
    for flag in ("id", "time", "label"):
        done = inspect("t.csv", f"--{flag}", "lable", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"no column 'lable' (--{flag})" in done.stderr


def test_one_file_with_both_splits_packed_tables_and_folders(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    train, test = generator.normal(size=(6, 1, 5)), generator.normal(size=(4, 1, 5))
    test[2] = train[4]
    labels = np.array(list("ababab"))
    np.savez(tmp_path / "both.npz", X_train=train, y_train=labels, X_test=test, y_test=labels[:4])
    write(tmp_path / "t.csv", "id,time,x,y,label", long_rows())
    (tmp_path / "p_train.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    shutil.copy(tmp_path / "p_train.csv.gz", tmp_path / "p_test.csv.gz")
    for kind in ("walk", "run"):
        (tmp_path / "folder" / kind).mkdir(parents=True)
        for i in range(3):
            write(
                tmp_path / "folder" / kind / f"{kind}{i}.csv", "x,y", generator.normal(size=(4, 2)).tolist()
            )
    done = inspect("both.npz", "p_train.csv.gz", "folder", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    both, packed, folder = json.loads(done.stdout)["files"]
    assert (both["part"], both["test"]["cases"], both["cases_in_both"]) == ("train", 4, [["4", "2"]])
    assert both["readings"][0]["command"] == "tsattn train both.npz"
    assert (packed["test"]["cases"], len(packed["cases_in_both"])) == (6, 6)
    assert packed["readings"][0]["roles"] == LONG
    assert (folder["part"], folder["readings"][0]["classes"]) == ("all", {"run": 3, "walk": 3})
    assert folder["readings"][0]["command"] == "tsattn train folder"
    assert "each file is taken for one case" in folder["readings"][0]["remarks"][0]


def test_sparklines() -> None:
    assert sparkline(np.array([0, 1, 2, 3, 4, 5, 6, 7], np.float32), 80) == "▁▂▃▄▅▆▇█"
    assert sparkline(np.array([0, 0, 7, 7], np.float32), 2) == "▁█"
    assert sparkline(np.array([0, np.nan, 1], np.float32), 9) == "▁ █"
    assert sparkline(np.array([np.nan, np.nan], np.float32), 9) == "  "
    assert sparkline(np.full(1000, 3, np.float32), 60) == "▁" * 60

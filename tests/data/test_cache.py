"""Files are read once: the second load is the first, whatever happens to the file or to the cache."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tsattn.data import cache, contents, sources
from tsattn.data.archives import Member
from tsattn.data.atomic import whole_file
from tsattn.data.cache import only_looking
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.formats import parse_series
from tsattn.data.home import home
from tsattn.data.sources import LoadedSplit, embedded_folder, load_file, load_split
from tsattn.data.tables import read_table
from tsattn.data.write_tables import write_long_parquet, write_wide_csv
from tsattn.errors import InputError

NONE = TableOptions()
Reads = list[str]


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Names of the files that are really read; a cache of its own, which keeps small files too."""
    done: Reads = []

    def counted(read: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: Any, *rest: Any) -> Any:
            done.append(file.name)
            return read(file, *rest)

        return call

    monkeypatch.setattr(sources, "parse_series", counted(parse_series))
    monkeypatch.setattr(sources, "read_table", counted(read_table))
    monkeypatch.setenv("TSATTN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cache, "LEAST_BYTES", 0)
    return done


def embedded(name: str) -> Path:
    folder = embedded_folder(name)
    assert folder is not None
    return folder


@pytest.fixture
def vowels(tmp_path: Path) -> Path:
    """Both files of JapaneseVowels, unequal in length, last changed a while ago."""
    folder = Path(shutil.copytree(embedded("JapaneseVowels"), tmp_path / "JapaneseVowels"))
    settle()
    return folder


def settle() -> None:
    """Waits until the clock of the disk has moved on."""
    time.sleep(0.15)


def entries() -> list[Path]:
    return sorted(path.parent for path in (home() / "parsed").glob("[!.]*/about.json"))


def notes() -> list[Path]:
    return sorted((home() / "parsed" / "index").glob("*.json"))


def same(one: LoadedSplit, other: LoadedSplit) -> None:
    a, b = one.collection, other.collection
    assert (a.ids, a.channels, a.labels, a.classes, a.groups) == (
        b.ids,
        b.channels,
        b.labels,
        b.classes,
        b.groups,
    )
    assert (one.name, one.origin, one.table, one.undivided) == (
        other.name,
        other.origin,
        other.table,
        other.undivided,
    )
    assert b.values.shape == a.values.shape
    assert type(b.values) is np.ndarray
    assert a.values.tobytes() == b.values.tobytes()
    np.testing.assert_array_equal(a.timepoint_labels, b.timepoint_labels)


def as_ts(folder: Path) -> tuple[str, TableOptions]:
    return str(folder), NONE


def as_zip(folder: Path) -> tuple[str, TableOptions]:
    place = folder.with_suffix(".zip")
    with zipfile.ZipFile(place, "w") as archive:
        for file in folder.glob("*.ts"):
            archive.write(file, f"inner/{file.name}")
    return str(place), NONE


def as_arff(folder: Path) -> tuple[str, TableOptions]:
    case = "@relation r\n@attribute a0 numeric\n@attribute a1 real\n@attribute target {b,a}\n@data\n"
    for split in ("TRAIN", "TEST"):
        (folder.parent / f"Small_{split}.arff").write_text(f"{case}1,?,a\n2.5,-3,b\n")
    return str(folder.parent / "Small_TRAIN.arff"), NONE


def as_tsv(folder: Path) -> tuple[str, TableOptions]:
    for split in ("TRAIN", "TEST"):
        (folder.parent / f"Small_{split}.tsv").write_text("1\t0.5\tNaN\n-1\t2\t3\n")
    return str(folder.parent / "Small_TRAIN.tsv"), NONE


def as_wide_csv(folder: Path) -> tuple[str, TableOptions]:
    for split in ("TRAIN", "TEST"):
        whole = load_file(folder / f"{folder.name}_{split}.ts", NONE)
        write_wide_csv(whole.collection, folder.parent / f"Wide_{split}.csv")
    return str(folder.parent / "Wide_TRAIN.csv"), TableOptions(layout="wide")


def as_long_parquet(folder: Path) -> tuple[str, TableOptions]:
    path = folder.parent / "long.parquet"
    write_long_parquet(load_file(folder / f"{folder.name}_TRAIN.ts", NONE).collection, path)
    return str(path), NONE


def as_grouped_log(folder: Path) -> tuple[str, TableOptions]:
    rows = ["id,time,label,who,x", "r,0,a,Ü,1", "r,1,b,Ü,2", "s,0,,V,3", "s,1,a,V,"]
    (folder.parent / "log.csv").write_text("\n".join(rows))
    return str(folder.parent / "log.csv"), TableOptions(label_of="timepoint", group="who")


FORMS = [as_ts, as_zip, as_arff, as_tsv, as_wide_csv, as_long_parquet, as_grouped_log]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_second_load_is_the_first(
    form: Callable[[Path], tuple[str, TableOptions]], split: sources.Split, vowels: Path, reads: Reads
) -> None:
    source, options = form(vowels)
    settle()
    reads.clear()
    first = load_split(source, split, options)
    assert len(reads) == 1
    same(first, load_split(source, split, options))
    assert len(reads) == 1
    assert not list((home() / "parsed").glob(".*")), "no draft is left"


def test_the_second_load_of_a_real_set_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Path(__file__).parents[3] / "shared" / "uea" / "SpokenArabicDigits.zip"
    if not archive.is_file():
        pytest.skip("../shared/uea is not there")
    if not Path("/proc/self/status").is_file():
        pytest.skip("only Linux says the peak of a process")
    monkeypatch.setenv("TSATTN_HOME", str(tmp_path / "home"))
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path)
    code = """
import json, pathlib, re, sys
from tsattn.data.sources import TableOptions, load_split
def peak():  # ru_maxrss would begin with what the process had that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024
load_split("GunPoint", "train", TableOptions())
before = peak()
split = load_split(sys.argv[1], "train", TableOptions())
print(json.dumps([peak() - before, split.collection.values.nbytes]))
"""
    source = str(tmp_path / "SpokenArabicDigits_TRAIN.ts")
    figures = []
    for _ in range(2):
        settle()
        done = subprocess.run(
            [sys.executable, "-c", code, source], capture_output=True, text=True, check=True
        )
        figures.append(json.loads(done.stdout))
    (read, size), (grown, _) = figures
    assert read > size
    assert grown < size / 2, "the values themselves are not read"


def test_a_changed_file_is_noticed_though_size_and_time_are_as_before(vowels: Path, reads: Reads) -> None:
    file = vowels / "JapaneseVowels_TRAIN.ts"
    first = load_file(file, NONE)
    assert len(notes()) == 1, "it need not be digested again"
    known, text = file.stat(), file.read_text()
    changed = text.replace("1.860936", "7.860936", 1)
    assert changed != text
    file.write_text(changed)
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert file.stat().st_size == known.st_size
    assert file.stat().st_mtime_ns == known.st_mtime_ns
    second = load_file(file, NONE)
    assert len(reads) == 2
    assert (
        int((first.collection.values != second.collection.values).sum())
        - int(np.isnan(first.collection.values).sum())
        == 1
    )
    file.write_text(text)
    same(first, load_file(file, NONE))
    assert len(reads) == 2, "the old content is known by itself"


def test_a_file_just_written_is_digested_again(vowels: Path, reads: Reads) -> None:
    file = vowels / "JapaneseVowels_TRAIN.ts"
    file.write_bytes(file.read_bytes())
    first = load_file(file, NONE)
    assert not notes(), "the clock could hide another change"
    same(first, load_file(file, NONE))
    assert len(reads) == 1
    settle()
    load_file(file, NONE)
    assert len(notes()) == 1


def test_what_changes_while_it_is_read_is_not_kept(
    vowels: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = vowels / "JapaneseVowels_TRAIN.ts"

    def slow(member: Member, split: str | None) -> Collection:
        cases = parse_series(member, split)
        file.write_bytes(file.read_bytes())
        file.write_text(file.read_text().replace("1.860936", "7.860936", 1))
        return cases

    monkeypatch.setattr(sources, "parse_series", slow)
    load_file(file, NONE)
    assert not entries()


def test_options_reader_and_name_are_a_part_of_what_is_kept(
    vowels: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, wide = as_wide_csv(vowels)
    file = Path(source)
    settle()
    reads.clear()
    load_file(file, wide)
    renamed = Path(shutil.copy(file, file.with_name("other.csv")))
    load_file(renamed, wide)
    load_file(file, TableOptions(layout="wide", label="label"))
    assert len(reads) == 3
    load_file(file, wide)
    assert len(reads) == 3
    moved = Path(shutil.copy(file, file.parent / "home" / file.name))
    load_file(moved, wide)
    assert len(reads) == 3, "where it lies is not"
    monkeypatch.setattr(cache, "_reader", lambda: "another version")
    load_file(file, wide)
    assert len(reads) == 4


def test_remarks_are_said_again_with_the_place_of_today(
    tmp_path: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    text = "@dimensions 7\n@classLabel true a b\n@data\n1,2:a\n3:b\n"
    files = [tmp_path / "toy.ts", tmp_path / "elsewhere" / "toy.ts"]
    files[1].parent.mkdir()
    for file in files:
        file.write_text(text)
    said = []
    for file in files:
        caplog.clear()
        load_file(file, NONE)
        said.append([(record.name, record.levelno, record.getMessage()) for record in caplog.records])
    assert len(reads) == 1
    (name, level, first), *_ = said[0]
    assert (name, level) == ("tsattn.data.ts", logging.WARNING)
    assert first.startswith(f"{files[0]}: the header contradicts the data")
    assert said[1] == [(name, level, first.replace(str(files[0]), str(files[1])))]


def test_members_of_one_name_in_a_zip_are_kept_apart(tmp_path: Path, reads: Reads) -> None:
    place = tmp_path / "both.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for folder, value in (("one", 1), ("two", 2)):
            archive.writestr(f"{folder}/toy.ts", f"@classLabel true a b\n@data\n{value}:a\n3:b\n")
    settle()
    for _ in range(2):
        for folder, value in (("one", 1), ("two", 2)):
            member = Member(place, f"{folder}/toy.ts")
            assert sources._series(member).collection.values[0, 0, 0] == value
    assert len(reads) == 2
    assert len(entries()) == 2


def test_remarks_of_another_thread_are_not_kept(
    tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(member: Member, split: str | None) -> Collection:
        logger = logging.getLogger("tsattn.data.ts")
        other = threading.Thread(target=logger.warning, args=("of another file",))
        other.start()
        other.join()
        logger.warning("of this file")
        return parse_series(member, split)

    monkeypatch.setattr(sources, "parse_series", read)
    file = tmp_path / "toy.ts"
    file.write_text("@classLabel true a b\n@data\n1:a\n3:b\n")
    load_file(file, NONE)
    (entry,) = entries()
    about = json.loads((entry / "about.json").read_text().partition("\n")[2])
    assert [text for _, _, text in about["remarks"]] == ["of this file"]


def test_errors_are_not_kept(tmp_path: Path, reads: Reads) -> None:
    file = tmp_path / "toy.ts"
    file.write_text("@classLabel true a b\n@data\n1,x:a\n")
    for _ in range(2):
        with pytest.raises(InputError, match=r"toy\.ts:3: found 'x'"):
            load_file(file, NONE)
    assert len(reads) == 2


def cut_values(entry: Path) -> None:
    with (entry / "values.npy").open("rb+") as file:
        file.truncate(1000)


def flip_a_value(entry: Path) -> None:
    with (entry / "values.npy").open("rb+") as file:
        file.seek(20_000)
        file.write(b"\x01")


def flip_a_label(entry: Path) -> None:
    about = entry / "about.json"
    about.write_text(about.read_text().replace('"labels":[0', '"labels":[1', 1))


def lose_values(entry: Path) -> None:
    (entry / "values.npy").unlink()


def lose_about(entry: Path) -> None:
    (entry / "about.json").unlink()


def empty_about(entry: Path) -> None:
    (entry / "about.json").write_bytes(b"")


def binary_about(entry: Path) -> None:
    (entry / "about.json").write_bytes(b"\xff\x00\n{}")


def become_a_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("not a folder")


@pytest.mark.parametrize(
    "damage",
    [
        cut_values,
        flip_a_value,
        flip_a_label,
        lose_values,
        lose_about,
        empty_about,
        binary_about,
        become_a_file,
    ],
)
def test_a_damaged_entry_is_ignored_and_written_anew(
    damage: Callable[[Path], None], vowels: Path, reads: Reads
) -> None:
    file = vowels / "JapaneseVowels_TRAIN.ts"
    first = load_file(file, NONE)
    (entry,) = entries()
    settle()
    damage(entry)
    same(first, load_file(file, NONE))
    assert len(reads) == 2
    same(first, load_file(file, NONE))
    assert len(reads) == 2


@pytest.mark.parametrize("junk", [b"", b"[]", b'{"state": 1}', b"\xff"])
def test_a_damaged_note_is_ignored_and_written_anew(junk: bytes, vowels: Path, reads: Reads) -> None:
    file = vowels / "JapaneseVowels_TRAIN.ts"
    first = load_file(file, NONE)
    (note,) = notes()
    whole = note.read_bytes()
    note.write_bytes(junk)
    same(first, load_file(file, NONE))
    assert (len(reads), note.read_bytes()) == (1, whole)


def test_a_folder_that_cannot_be_written_is_no_error(
    vowels: Path, reads: Reads, caplog: pytest.LogCaptureFixture
) -> None:
    home().parent.mkdir(exist_ok=True)
    home().write_text("a file stands in the way")
    for count in (1, 2):
        load_split(str(vowels), "train", NONE)
        assert len(reads) == count
    assert not caplog.records


@pytest.mark.parametrize("step", ["mkdtemp", "fsync", "replace"])
def test_a_full_disk_is_no_error(
    step: str, vowels: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import tempfile

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile if step == "mkdtemp" else os, step, full)
        load_split(str(vowels), "train", NONE)
    assert not caplog.records
    assert not entries()
    left = [path for path in home().rglob("*") if path.is_file() and path not in notes()]
    assert not left, "nothing half-written stays"
    load_split(str(vowels), "train", NONE)
    assert len(entries()) == 1


def test_a_cache_leaves_the_disk_room(vowels: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    size = load_split("JapaneseVowels", "train", NONE).collection.values.nbytes
    shutil.rmtree(home(), ignore_errors=True)
    for free, kept in ((10**5, 0), (2 * size - 2, 0), (2 * size, 1)):
        disk = SimpleNamespace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, disk=disk: disk)
        load_split(str(vowels), "train", NONE)
        assert len(entries()) == kept, "half of what is free stays free"


def test_beyond_its_bound_the_least_recently_used_goes(
    vowels: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (vowels / "JapaneseVowels_TRAIN.ts").read_text()
    files = [vowels / f"copy{i}.ts" for i in range(4)]
    for file in files:
        file.write_text(text)
    for file in files[:2]:
        load_file(file, NONE)
    size = sum(path.stat().st_size for path in entries()[0].iterdir())
    monkeypatch.setattr(cache, "MOST_BYTES", int(2.5 * size))
    settle()
    load_file(files[0], NONE)  # used again
    load_file(files[2], NONE)
    assert (len(entries()), len(reads)) == (2, 3)
    load_file(files[0], NONE)
    assert len(reads) == 3
    load_file(files[1], NONE)
    assert len(reads) == 4
    monkeypatch.setattr(cache, "MOST_BYTES", size // 2)
    load_file(files[3], NONE)
    assert len(entries()) == 2, "what alone is larger is not kept at all"


def test_notes_of_files_that_are_gone_and_drafts_of_dead_processes_go(vowels: Path, reads: Reads) -> None:
    load_split(str(vowels), "train", NONE)
    shutil.copy(vowels / "JapaneseVowels_TEST.ts", other := vowels / "other.ts")
    draft = home() / "parsed" / ".dead"
    (draft / "new").mkdir(parents=True)
    os.utime(draft, (1, 1))
    (vowels / "JapaneseVowels_TRAIN.ts").unlink()
    settle()
    load_file(other, NONE)
    assert [json.loads(note.read_text())["path"] for note in notes()] == [str(other)]
    assert not draft.exists()


def test_small_files_arrays_and_half_written_files_are_not_kept(
    vowels: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = load_file(vowels / "JapaneseVowels_TRAIN.ts", NONE).collection
    shutil.rmtree(home())
    np.savez(vowels / "set.npz", X=cases.values, y=np.array(cases.labels))
    load_file(vowels / "set.npz", NONE)
    with whole_file(vowels / "new.ts") as partial:
        shutil.copy(vowels / "JapaneseVowels_TRAIN.ts", partial)
        load_file(partial, NONE)
    monkeypatch.undo()
    monkeypatch.setenv("TSATTN_HOME", str(vowels.parent / "home"))
    load_split("GunPoint", "train", NONE)
    assert not home().exists()


def test_several_processes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSATTN_HOME", str(tmp_path / "home"))
    source = shutil.copy(embedded("JapaneseVowels") / "JapaneseVowels_TRAIN.ts", tmp_path)
    code = """
import sys
from tsattn.data import cache
from tsattn.data.sources import TableOptions, load_split
cache.LEAST_BYTES = 0
for turn in range(30):
    print(load_split(sys.argv[1], "train", TableOptions()).collection.fingerprint())
    if turn % 3 == 0:  # as if it were damaged
        for entry in (cache.home() / "parsed").glob("[!.]*/values.npy"):
            entry.unlink(missing_ok=True)
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, source],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    answers = [process.communicate() for process in running]
    assert not any(errors for _, errors in answers), answers
    assert len({line for said, _ in answers for line in said.split()}) == 1
    assert sum(len(said.split()) for said, _ in answers) == 90
    assert not list((tmp_path / "home" / "parsed").glob(".*"))


def test_values_from_the_cache_serve_training_and_belong_to_whoever_changes_them(
    vowels: Path, reads: Reads
) -> None:
    import torch

    from tsattn.training.resident import ResidentCases

    first, second = (load_split(str(vowels), "train", NONE).collection for _ in range(2))
    assert len(reads) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cases = ResidentCases(second, second.classes, torch.device("cpu"))
        torch.from_numpy(second.values)
    assert cases.values.data_ptr() == second.values.ctypes.data, "no copy is made"
    second.values[:] = 0
    assert load_split(str(vowels), "train", NONE).collection.fingerprint() == first.fingerprint()


def test_a_clock_of_whole_seconds_is_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: now)

    def settled(ago: int) -> bool:
        return contents._settled([0, now - ago, now - ago, 0])

    assert settled(200_000_001)
    assert not settled(50_000_001)
    assert not settled(2_000_000_000)
    assert settled(3_000_000_000)
    assert not settled(-5_000_000_001), "a clock that is ahead"


def test_who_only_looks_keeps_nothing_but_uses_what_is_kept(
    vowels: Path, reads: Reads, tmp_path: Path
) -> None:
    with only_looking():
        first = load_split(str(vowels), "train", NONE).collection
        load_split(str(vowels), "train", NONE)
    assert len(reads) == 2
    load_split(str(vowels), "train", NONE)
    with only_looking():
        again = load_split(str(vowels), "train", NONE).collection
    assert len(reads) == 3
    assert again.fingerprint() == first.fingerprint()

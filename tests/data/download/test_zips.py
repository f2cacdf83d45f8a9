"""Zips from elsewhere: sub-folders are fine; what leaves its folder, swells, or is another set is not."""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tsattn.data.download.fetch import Way, fetch
from tsattn.data.registry import DatasetEntry
from tsattn.errors import InputError

ZIP = "/mirror/Motions.zip"
UEA = Path(__file__).parents[4] / "shared" / "uea"


@pytest.fixture
def refused(
    entry: DatasetEntry, way: Way, web: Any, tmp_path: Path, left: Callable[[], list[str]]
) -> Callable[[bytes, str], None]:
    """Serves a zip, and looks that it is refused with the words and that nothing of it stays."""

    def check(body: bytes, said: str) -> None:
        web.files[ZIP] = body
        with pytest.raises(InputError) as caught:
            fetch(entry, way)
        assert f"\n  mirror {web.url}{ZIP} sent {said}" in str(caught.value)
        assert left() == []
        assert {path.name for path in tmp_path.iterdir()} == {"home"}

    return check


@pytest.mark.parametrize("folder", ["Motions/", "a/b/c/", "Motions\\", "./"])
def test_a_sub_folder_is_fine(
    entry: DatasetEntry, way: Way, web: Any, files: dict[str, bytes], pack: Any, folder: str
) -> None:
    members = {f"{folder}{name}": body for name, body in files.items()}
    more = {"__MACOSX/._Motions_TRAIN.ts": b"shadow", f"{folder}readme.txt": b"x", f"deep/er/{folder}x": b""}
    web.files[ZIP] = pack({**more, **members})
    found = fetch(entry, way)
    assert (found.train.read_bytes(), found.test.read_bytes()) == tuple(files.values())
    assert sorted(path.name for path in found.folder.iterdir()) == [
        "Motions_TEST.ts",
        "Motions_TRAIN.ts",
        "source.json",
    ]


@pytest.mark.parametrize(
    "path", ["../Motions_TRAIN.ts", "a/../../x", "/etc/x", "..\\x", "C:\\x", "\\\\host\\x"]
)
def test_a_file_that_leaves_its_folder(
    refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any, path: str
) -> None:
    said = f"a zip with a file that leaves its folder ({path!r}); nothing was unpacked"
    refused(pack({**files, path: b"gotcha"}), said)


def test_a_link(refused: Callable[[bytes, str], None], files: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "home.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("Motions_TRAIN.ts")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("Motions_TEST.ts", files["Motions_TEST.ts"])
    body = path.read_bytes()
    path.unlink()
    refused(body, "a zip in which Motions_TRAIN.ts is a link; nothing was unpacked")


@pytest.mark.parametrize("tenth", range(1, 10, 2))
def test_cut_short(
    refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any, tenth: int
) -> None:
    body = pack(files)
    refused(body[: len(body) * tenth // 10], "a zip that is damaged or cut short (File is not a zip file)")


def test_corrupt_inside(refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any) -> None:
    body = bytearray(pack(files, zipfile.ZIP_STORED))
    body[5000] ^= 1
    refused(bytes(body), "a zip that is damaged or cut short (Bad CRC-32 for file 'Motions_TRAIN.ts')")


def test_a_file_that_swells(
    refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsattn.data.download.unpack._ALWAYS", 1000)
    bomb = pack({**files, "Motions_TEST.ts": bytes(10_000_000)})
    refused(bomb, "a zip in which Motions_TEST.ts swells from 9")


def test_a_file_that_swells_more_than_it_says(
    refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any
) -> None:
    body = bytearray(pack({**files, "Motions_TEST.ts": bytes(10_000_000)}))
    said = struct.pack("<L", 10_000_000)
    at = body.rindex(said)
    body[at : at + 4] = struct.pack("<L", 1000)
    refused(bytes(body), "a zip that is damaged or cut short (")


def test_encrypted(refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any) -> None:
    body = bytearray(pack(files))
    for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        start = body.find(mark)
        while start >= 0:
            body[start + at] |= 1
            start = body.find(mark, start + 1)
    refused(bytes(body), "a zip that cannot be unpacked (")


def test_without_the_files(refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any) -> None:
    refused(pack({}), "a zip without Motions_TRAIN.ts (it holds nothing)")
    del (some := dict(files))["Motions_TEST.ts"]
    refused(pack(some), "a zip without Motions_TEST.ts (it holds Motions_TRAIN.ts)")
    refused(pack(dict.fromkeys("abcdef", b"x")), "a zip without Motions_TRAIN.ts (it holds a, b, c, d, ...)")


def test_a_part_of_the_set_or_another_set(
    refused: Callable[[bytes, str], None], files: dict[str, bytes], pack: Any
) -> None:
    def with_train(text: bytes) -> bytes:
        return bytes(pack({**files, "Motions_TRAIN.ts": text}))

    train = files["Motions_TRAIN.ts"]
    lines = train.splitlines(keepends=True)
    said = "another data set or only a part of it: Motions_TRAIN.ts"
    refused(with_train(b"".join(lines[:-3])), f"{said} has 37 cases where the registry has 40")
    refused(with_train(b"".join(lines[:-1]) + lines[-1][:50]), f"{said}:{len(lines)}: ")
    refused(with_train(b"\x00binary"), f"{said}:1: ")
    refused(
        with_train(train.replace(b"@classLabel true ", b"@classLabel true swim ")), f"{said} has 5 classes"
    )
    at = next(i for i, line in enumerate(lines) if line.lower().startswith(b"@data")) + 1
    fewer = [line.split(b":", 1)[1] for line in lines[at:]]
    refused(with_train(b"".join(lines[:at] + fewer)), f"{said} has 5 channels where the registry has 6")


def test_what_the_registry_does_not_know_is_not_asked(
    way: Way, web: Any, files: dict[str, bytes], pack: Any
) -> None:
    lines = files["Motions_TRAIN.ts"].splitlines(keepends=True)
    web.files[ZIP] = pack({**files, "Motions_TRAIN.ts": b"".join(lines[:-3])})
    assert fetch(DatasetEntry(name="Motions", where=""), way).name == "Motions"


def test_another_length_is_a_remark(entry: DatasetEntry, way: Way, caplog: pytest.LogCaptureFixture) -> None:
    fetch(replace(entry, length=99), way)
    said = (
        "Motions: its longest case has 100 timepoints where the registry has 99; another version of the set."
    )
    assert said in caplog.text


@pytest.mark.skipif(not UEA.exists(), reason="the archive's zips are not beside the checkout")
def test_every_zip_of_the_archive(web: Any, way: Way, caplog: pytest.LogCaptureFixture) -> None:
    from tsattn.data.columns import TableOptions
    from tsattn.data.download.fetch import fetch_many
    from tsattn.data.download.watch import Silent
    from tsattn.data.registry import load_registry
    from tsattn.data.sources import load_split

    entries = [load_registry()[path.stem] for path in sorted(UEA.glob("*.zip"))]
    for entry in entries:
        web.files[f"/mirror/{entry.name}.zip"] = (UEA / f"{entry.name}.zip").read_bytes()
    outcomes = fetch_many(entries, way, 4, Silent(), lambda outcome: None)
    assert [outcome.fault for outcome in outcomes] == [None] * len(entries)
    assert [outcome.entry for outcome in outcomes] == entries
    assert not caplog.records
    loaded = load_split("Libras", "test", TableOptions())
    assert (len(loaded.collection), loaded.name) == (180, "Libras")

"""A server that fails in every way: the set comes whole, or one message says why and nothing is left."""

from __future__ import annotations

import socket
import time
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tsattn.data.download import fetch as fetching
from tsattn.data.download.fetch import Way, fetch
from tsattn.data.registry import DatasetEntry
from tsattn.errors import InputError

ZIP = "/mirror/Motions.zip"
WHOLE = [
    "datasets/Motions/Motions_TEST.ts",
    "datasets/Motions/Motions_TRAIN.ts",
    "datasets/Motions/source.json",
]


@pytest.fixture
def whole(
    entry: DatasetEntry, way: Way, files: dict[str, bytes], left: Callable[[], list[str]]
) -> Callable[[], None]:
    """Fetches, and looks whether everything is there and nothing else."""

    def check() -> None:
        found = fetch(entry, way)
        assert (found.train.read_bytes(), found.test.read_bytes()) == tuple(files.values())
        assert left() == WHOLE

    return check


@pytest.fixture
def refused(entry: DatasetEntry, way: Way, web: Any) -> Callable[[str], str]:
    """Fetches in vain; gives the message, after a look at what stands around the mirror's answer."""

    def check(answer: str, kept: bool = False) -> str:
        with pytest.raises(InputError) as caught:
            fetch(entry, way)
        said = str(caught.value)
        first = f"Motions could not be fetched:\n  mirror {web.url}{ZIP} "
        assert said.startswith(first), said
        assert said.removeprefix(first).startswith(answer), said
        assert f"\n  archive {web.url}/archive/Motions.zip has no such file (404)\n" in said
        again = "to go on where it stopped (" if kept else "to try again, name a mirror with --mirror URL"
        assert f"Type tsattn data download Motions {again}" in said
        return said

    return check


@pytest.mark.parametrize("tenth", range(10))
def test_cut_at_each_tenth(web: Any, whole: Callable[[], None], tenth: int) -> None:
    size = len(web.files[ZIP])
    web.rules[ZIP] = lambda n, honest: replace(honest, cut=size * tenth // 10) if n == 1 else honest
    whole()
    assert web.sent == size
    assert web.asked[1] == (ZIP, f"bytes={size * tenth // 10}-" if tenth else "")


def test_cut_again_and_again_still_comes(web: Any, whole: Callable[[], None]) -> None:
    web.rules[ZIP] = lambda n, honest: replace(honest, cut=len(web.files[ZIP]) // 12)
    whole()
    assert web.times(ZIP) > 10
    assert web.sent == len(web.files[ZIP])


def test_without_range_it_begins_anew(web: Any, whole: Callable[[], None]) -> None:
    body = web.files[ZIP]
    web.rules[ZIP] = lambda n, honest: type(honest)(body, cut=len(body) // 2 if n < 3 else None)
    whole()
    assert web.sent == 2 * (len(body) // 2) + len(body)


def test_without_range_and_always_cut_it_ends(
    web: Any, refused: Callable[..., str], left: Callable[[], list[str]]
) -> None:
    body = web.files[ZIP]
    web.rules[ZIP] = lambda n, honest: type(honest)(body, cut=len(body) // 2)
    refused("cut the connection, again and again", kept=True)
    assert left() == ["partial/Motions/mirror-Motions.zip", "partial/Motions/mirror-Motions.zip.json"]


def test_a_file_that_changes_in_between_is_begun_anew(web: Any, whole: Callable[[], None]) -> None:
    body = web.files[ZIP]
    other = type(web.honest(ZIP, ""))(bytes(len(body)), headers={"ETag": '"old"'}, cut=5000)
    web.rules[ZIP] = lambda n, honest: other if n == 1 else honest
    whole()
    assert [wanted for _, wanted in web.asked] == ["", "bytes=5000-", ""]


def test_a_wrong_part_is_not_taken(web: Any, whole: Callable[[], None]) -> None:
    def shifted(n: int, honest: Any) -> Any:
        if n == 1:
            return replace(honest, cut=5000)
        if n == 2:
            honest.headers["Content-Range"] = f"bytes 4000-{len(web.files[ZIP]) - 1}/{len(web.files[ZIP])}"
        return honest

    web.rules[ZIP] = shifted
    whole()


@pytest.mark.parametrize("at", [0, 7000])
def test_a_stall_is_ended_and_gone_on_with(web: Any, whole: Callable[[], None], at: int) -> None:
    web.rules[ZIP] = lambda n, honest: replace(honest, stall=at) if n == 1 else honest
    whole()
    assert web.sent == len(web.files[ZIP])


def test_a_server_that_never_answers(web: Any, refused: Callable[..., str]) -> None:
    web.rules[ZIP] = lambda n, honest: replace(honest, stall=0)
    refused("does not answer in time, again and again")


def test_404(web: Any, refused: Callable[..., str], left: Callable[[], list[str]]) -> None:
    del web.files[ZIP]
    refused("has no such file (404)\n")
    assert left() == []
    assert web.times(ZIP) == 1


def test_403(web: Any, refused: Callable[..., str]) -> None:
    web.rules[ZIP] = lambda n, honest: type(honest)(status=403)
    refused("answers 403 Forbidden\n")


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_429_waits_as_long_as_it_is_asked(web: Any, whole: Callable[[], None], form: str) -> None:
    def busy(n: int, honest: Any) -> Any:
        wait = "1" if form == "seconds" else formatdate(time.time() + 2, usegmt=True)
        return type(honest)(status=429, headers={"Retry-After": wait}) if n == 1 else honest

    web.rules[ZIP] = busy
    began = time.monotonic()
    whole()
    assert time.monotonic() - began > 0.9
    assert web.times(ZIP) == 2


def test_429_that_asks_for_too_long(web: Any, refused: Callable[..., str]) -> None:
    web.rules[ZIP] = lambda n, honest: type(honest)(status=429, headers={"Retry-After": "3600"})
    refused("asks for fewer requests (429) and asks to wait 3600 s\n")
    assert web.times(ZIP) == 1


def test_500_twice_then_fine(web: Any, whole: Callable[[], None]) -> None:
    web.rules[ZIP] = lambda n, honest: type(honest)(status=500 + n) if n < 3 else honest
    whole()


def test_500_for_ever(web: Any, refused: Callable[..., str]) -> None:
    web.rules[ZIP] = lambda n, honest: type(honest)(status=500)
    refused("has a trouble of its own (500), again and again\n")
    assert web.times(ZIP) == 5


def test_a_length_that_is_too_short(web: Any, refused: Callable[..., str], left: Any) -> None:
    web.rules[ZIP] = lambda n, honest: replace(honest, length=len(honest.body) - 1000)
    refused("sent a zip that is damaged or cut short (")
    assert left() == []


def test_a_length_that_is_too_long_is_belied_by_the_end(web: Any, whole: Callable[[], None]) -> None:
    size = len(web.files[ZIP])
    web.rules[ZIP] = lambda n, honest: replace(honest, length=size + 1000) if n == 1 else honest
    whole()
    assert [wanted for _, wanted in web.asked] == ["", f"bytes={size}-"]


def test_flipped_bytes_once(web: Any, whole: Callable[[], None]) -> None:
    spoilt = bytearray(web.files[ZIP])
    spoilt[3000:3100] = bytes(byte ^ 255 for byte in spoilt[3000:3100])
    web.rules[ZIP] = lambda n, honest: replace(honest, body=bytes(spoilt)) if n == 1 else honest
    whole()
    assert web.times(ZIP) == 2


def test_flipped_bytes_always(web: Any, refused: Callable[..., str], left: Callable[[], list[str]]) -> None:
    spoilt = bytearray(web.files[ZIP])
    spoilt[3000:3100] = bytes(byte ^ 255 for byte in spoilt[3000:3100])
    web.files[ZIP] = bytes(spoilt)
    refused("sent a zip that is damaged")
    assert left() == []
    assert web.times(ZIP) == 2


def test_redirects_are_followed(web: Any, whole: Callable[[], None]) -> None:
    web.files["/elsewhere"] = web.files[ZIP]
    web.rules["/elsewhere"] = lambda n, honest: replace(honest, cut=9000) if n == 1 else honest
    web.rules[ZIP] = lambda n, honest: type(honest)(status=302, headers={"Location": "/elsewhere"})
    whole()
    assert web.sent == len(web.files[ZIP])


def test_a_redirect_loop(web: Any, refused: Callable[..., str]) -> None:
    web.rules[ZIP] = lambda n, honest: type(honest)(status=302, headers={"Location": ZIP})
    refused("redirects in a circle\n")


def test_a_redirect_away_from_the_web(web: Any, refused: Callable[..., str]) -> None:
    web.rules[ZIP] = lambda n, honest: type(honest)(status=302, headers={"Location": "file:///etc/hosts"})
    refused("cannot be asked (")


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/zip"])
def test_a_page_for_a_wrong_name(
    web: Any, refused: Callable[..., str], left: Callable[[], list[str]], kind: str
) -> None:
    page = b"\n<!DOCTYPE html><html><body>This page was not found</body></html>"
    web.rules[ZIP] = lambda n, honest: type(honest)(page, headers={"Content-Type": kind})
    refused("answers with a web page instead of the file\n")
    assert left() == []
    assert web.times(ZIP) == 1


def test_a_server_that_is_gone(entry: DatasetEntry, way: Way, left: Callable[[], list[str]]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(InputError) as caught:
        fetch(entry, replace(way, mirror=gone))
    said = f"mirror {gone}/Motions.zip cannot be reached (Connection refused), again and again\n"
    assert said in str(caught.value)
    assert left() == []


def test_gone_in_the_middle_and_back_later(web: Any, whole: Callable[[], None], refused: Any) -> None:
    web.rules[ZIP] = lambda n, honest: replace(honest, cut=10_000 if n == 1 else 0)
    said = refused("cut the connection, again and again\n", kept=True)
    assert "(10 kB are kept)" in said
    del web.rules[ZIP]
    before = web.sent
    whole()
    # The server may still count the last bytes of the connection that it cut.
    assert abs(web.sent - before - (len(web.files[ZIP]) - 10_000)) < 1000
    assert web.asked[-1] == (ZIP, "bytes=10000-")


def test_a_disk_that_is_full(
    entry: DatasetEntry, way: Way, web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("tsattn.data.download.transfer.shutil.disk_usage", lambda path: usage(1000))
    with pytest.raises(
        InputError, match=r"0 MB are needed and 0 MB are free\. Make room, or set TSATTN_HOME"
    ):
        fetch(entry, way)


def test_a_cache_that_cannot_be_written(
    entry: DatasetEntry, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("TSATTN_HOME", str(tmp_path / "file"))
    with pytest.raises(
        InputError, match=r"cannot be written \(.+\)\. Set TSATTN_HOME to a folder of your own"
    ):
        fetch(entry, way)


@pytest.mark.parametrize("mirror", ["/data/mirror", "ftp://host/folder", "file:///data", "http://"])
def test_a_mirror_that_is_no_address(mirror: str) -> None:
    with pytest.raises(InputError) as caught:
        Way(mirror=mirror)
    assert str(caught.value) == (
        f"--mirror (TSATTN_MIRROR) {mirror}: this is no address of the web. Type the http:// or https:// "
        "address of a folder that holds NAME.zip."
    )


def test_the_way_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetching.chosen_way() == Way()
    monkeypatch.setenv("TSATTN_MIRROR", "http://host/a")
    for word, offline in {"1": True, "yes": True, "0": False, "false": False, "": False}.items():
        monkeypatch.setenv("TSATTN_OFFLINE", word)
        assert fetching.chosen_way() == Way(mirror="http://host/a", offline=offline)
    assert fetching.chosen_way("http://host/b", True) == Way(mirror="http://host/b", offline=True)


def test_offline_opens_no_socket(
    entry: DatasetEntry, way: Way, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a socket")

    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", forbidden)
        patch.setattr(socket, "getaddrinfo", forbidden)
        with pytest.raises(InputError) as caught:
            fetch(entry, replace(way, offline=True))
    assert str(caught.value) == (
        "Motions is not on this machine, and --offline (TSATTN_OFFLINE) forbids to fetch it. Type the "
        f"command without it, or lay Motions_TRAIN.ts and Motions_TEST.ts into {place}/datasets/Motions."
    )
    fetch(entry, way)
    monkeypatch.setattr(socket, "socket", forbidden)
    assert fetch(entry, replace(way, offline=True)).name == "Motions"

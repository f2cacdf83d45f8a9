"""The Zenodo record: a recorded shape of its API, served here, with its sizes and checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tsattn.data.download.fetch import Way, fetch
from tsattn.data.registry import DatasetEntry
from tsattn.errors import InputError

API = "/zenodo/api/records/11206179"


def record(url: str, files: dict[str, bytes]) -> dict[str, Any]:
    """What the records API answers, as far as it matters, in its own order and spelling."""
    base = f"{url}{API}"
    return {
        "created": "2024-05-17T10:32:57.114231+00:00",
        "modified": "2024-05-17T10:32:57.263187+00:00",
        "id": 11206179,
        "conceptrecid": "11206178",
        "doi": "10.5281/zenodo.11206179",
        "conceptdoi": "10.5281/zenodo.11206178",
        "doi_url": "https://doi.org/10.5281/zenodo.11206179",
        "metadata": {
            "title": "Motions",
            "doi": "10.5281/zenodo.11206179",
            "publication_date": "2024-05-17",
            "description": "<p>A set.</p>",
            "access_right": "open",
            "creators": [{"name": "Doe, Jane", "affiliation": None}, {"name": "Roe, Jo"}],
            "resource_type": {"title": "Dataset", "type": "dataset"},
            "license": {"id": "cc-by-4.0"},
        },
        "title": "Motions",
        "links": {"self": base, "files": f"{base}/files", "archive": f"{base}/files-archive"},
        "recid": "11206179",
        "revision": 4,
        "files": [
            {
                "id": f"f{at}",
                "key": key,
                "size": len(body),
                "checksum": f"md5:{hashlib.md5(body).hexdigest()}",
                "links": {"self": f"{base}/files/{key}/content"},
            }
            for at, (key, body) in enumerate(files.items())
        ],
        "swh": {},
        "status": "published",
        "state": "done",
        "submitted": True,
    }


@pytest.fixture
def zenodo(way: Way) -> Way:
    return replace(way, mirror=None)


@pytest.fixture
def known(entry: DatasetEntry) -> DatasetEntry:
    return replace(entry, zenodo=11206179)


@pytest.fixture
def serve(web: Any, files: dict[str, bytes]) -> Callable[..., dict[str, Any]]:
    """Serves the record and its files; gives the record, which may be spoilt and served again."""

    def put(document: Any = None, more: dict[str, bytes] | None = None) -> dict[str, Any]:
        held = {**files, **(more or {}), "Motions_eq_TRAIN.ts": b"not wanted"}
        for key, body in held.items():
            web.files[f"{API}/files/{key}/content"] = body
        made = record(web.url, held) if document is None else document
        web.files[API] = made if isinstance(made, bytes) else json.dumps(made).encode()
        return made

    return put


@pytest.fixture
def refused(known: DatasetEntry, zenodo: Way, left: Callable[[], list[str]]) -> Callable[[str], None]:
    def check(answer: str) -> None:
        with pytest.raises(InputError) as caught:
            fetch(known, zenodo)
        first = "Motions could not be fetched:\n  Zenodo record 11206179 "
        assert str(caught.value).startswith(first + answer), str(caught.value)
        assert left() == []

    return check


def test_the_two_files_of_the_record(
    known: DatasetEntry, zenodo: Way, web: Any, files: dict[str, bytes], serve: Any, left: Any
) -> None:
    serve()
    found = fetch(known, zenodo)
    assert (found.train.read_bytes(), found.test.read_bytes()) == tuple(files.values())
    assert found.origin == f"{web.url}{API}"
    assert found.record == {
        "title": "Motions",
        "doi": "10.5281/zenodo.11206179",
        "licence": "cc-by-4.0",
        "authors": "Doe, Jane; Roe, Jo",
        "published": "2024-05-17",
    }
    assert [path for path, _ in web.asked] == [API, *(f"{API}/files/{key}/content" for key in files)]
    assert len(left()) == 3


def test_a_cut_file_is_gone_on_with(
    known: DatasetEntry, zenodo: Way, web: Any, files: dict[str, bytes], serve: Any
) -> None:
    serve()
    path = f"{API}/files/Motions_TEST.ts/content"
    web.rules[path] = lambda n, honest: replace(honest, cut=70_000) if n == 1 else honest
    fetch(known, zenodo)
    assert (path, "bytes=70000-") in web.asked


def test_flipped_bytes_are_seen_by_the_checksum(
    known: DatasetEntry, zenodo: Way, web: Any, files: dict[str, bytes], serve: Any, refused: Any
) -> None:
    serve()
    path = f"{API}/files/Motions_TRAIN.ts/content"
    body = web.files[path]
    # A digit for a digit: nothing but the checksum can tell.
    at = next(i for i in range(20_000, len(body)) if body[i : i + 1] == b"1")
    spoilt = body[:at] + b"2" + body[at + 1 :]
    web.rules[path] = lambda n, honest: replace(honest, body=spoilt)
    wrong, right = hashlib.md5(spoilt).hexdigest(), hashlib.md5(body).hexdigest()
    refused(f"sent a damaged file: md5 {wrong} where its record says {right}\n")
    assert web.times(path) == 2
    web.rules[path] = lambda n, honest: replace(honest, body=spoilt) if n == 3 else honest
    assert fetch(known, zenodo).train.read_bytes() == body


def test_a_size_that_is_not_the_records(web: Any, serve: Any, refused: Callable[[str], None]) -> None:
    made = serve()
    made["files"][0]["size"] += 5
    serve(made)
    size = made["files"][0]["size"]
    refused(f"sends {size - 5} bytes where its record says {size}\n")


def test_facts_are_checked_although_the_checksum_is_right(
    known: DatasetEntry, zenodo: Way, serve: Any, files: dict[str, bytes], web: Any
) -> None:
    serve()
    with pytest.raises(InputError) as caught:
        fetch(replace(known, train=41), zenodo)
    said = "another data set or only a part of it: Motions_TRAIN.ts has 40 cases where the registry has 41"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (b"<html>", "answers with something that is not JSON"),
        (b"[]", "answers with something that is no record"),
        ({"message": "x"}, "answers with something that is no record"),
        ({"files": ["x"]}, "answers with something that is no record"),
        ({"files": []}, "holds no Motions_TRAIN.ts and Motions_TEST.ts but no files"),
        ({"files": [{"key": "a"}, {"key": "b"}]}, "holds no Motions_TRAIN.ts and Motions_TEST.ts but a, b"),
    ],
)
def test_records_that_are_of_no_use(serve: Any, refused: Any, document: Any, answer: str) -> None:
    serve(document)
    refused(answer)


def test_no_such_record(refused: Callable[[str], None]) -> None:
    refused("has no such file (404)\n")


def test_rate_limit_of_the_api(known: DatasetEntry, zenodo: Way, web: Any, serve: Any, reply: Any) -> None:
    serve()
    web.rules[API] = lambda n, honest: reply(status=429, headers={"Retry-After": "0"}) if n < 3 else honest
    fetch(known, zenodo)
    assert web.times(API) == 3


def test_a_record_of_a_zip(
    known: DatasetEntry, zenodo: Way, web: Any, serve: Any, files: dict[str, bytes], pack: Any
) -> None:
    made = serve(more={"Motions.zip": pack(files)})
    made["files"] = [file for file in made["files"] if file["key"] == "Motions.zip"]
    serve(made, more={"Motions.zip": pack(files)})
    assert fetch(known, zenodo).origin == f"{web.url}{API}/files/Motions.zip/content"


def test_the_sources_are_asked_in_order(
    known: DatasetEntry, way: Way, web: Any, files: dict[str, bytes], pack: Any, caplog: Any
) -> None:
    del web.files["/mirror/Motions.zip"]
    web.files["/archive/Motions.zip"] = pack(files)
    found = fetch(known, way)
    assert found.origin == f"{web.url}/archive/Motions.zip"
    assert [path for path, _ in web.asked] == ["/mirror/Motions.zip", API, "/archive/Motions.zip"]
    for answer in (f"mirror {web.url}/mirror/Motions.zip", "Zenodo record 11206179"):
        said = f"Motions: {answer} has no such file (404); taken from {web.url}/archive/Motions.zip."
        assert said in caplog.text

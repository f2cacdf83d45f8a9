"""The places a data set may be fetched from, in the order in which they are asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tsattn.data.download.contents import fault_of
from tsattn.data.download.faults import Damaged, Fault
from tsattn.data.download.partial import Partial
from tsattn.data.download.store import md5_of
from tsattn.data.download.transfer import Remote, Transfer
from tsattn.data.download.unpack import unpack
from tsattn.data.registry import DatasetEntry

ZENODO = "https://zenodo.org"
ARCHIVE = "https://timeseriesclassification.com/aeon-toolkit"


@dataclass(frozen=True, kw_only=True)
class Brought:
    """The two files of a set, checked, still in the working folder.

    origin: where they came from. record: what the source says of the set: title, doi, licence, authors.
    """

    train: Path
    test: Path
    origin: str
    record: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A place: how messages call it, and how a set is brought from there into a working folder."""

    called: str
    bring: Callable[[Transfer, Path], Brought]


def sources(entry: DatasetEntry, mirror: str | None, zenodo: str, archive: str) -> list[Source]:
    """Where `entry` may be: the mirror if there is one, its Zenodo record if known, the archive's zip."""
    found = []
    if mirror is not None:
        found.append(_zip_source("mirror", mirror, entry))
    if entry.zenodo is not None:
        api = f"{zenodo.rstrip('/')}/api/records/{entry.zenodo}"
        found.append(
            Source(f"Zenodo record {entry.zenodo}", lambda t, work: _from_record(t, work, api, entry))
        )
    found.append(_zip_source("archive", archive, entry))
    return found


def _zip_source(word: str, base: str, entry: DatasetEntry) -> Source:
    url = f"{base.rstrip('/')}/{quote(entry.name)}.zip"

    def bring(transfer: Transfer, work: Path) -> Brought:
        return _from_zip(transfer, work, Remote(url=url, name=f"{entry.name}.zip"), word, entry)

    return Source(f"{word} {url}", bring)


def _from_zip(transfer: Transfer, work: Path, remote: Remote, word: str, entry: DatasetEntry) -> Brought:
    folder = work / "unpacked"

    def check(packed: Path) -> tuple[Path, Path]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        pair = unpack(packed, entry.name, folder)
        if (wrong := fault_of(entry, *pair)) is not None:
            raise Fault(f"sent another data set or only a part of it: {wrong}")
        return pair

    try:
        train, test = transfer.fetch(remote, Partial(work / f"{word}-{remote.name}"), check)
    except Fault:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Brought(train=train, test=test, origin=remote.url)


def _from_record(transfer: Transfer, work: Path, api: str, entry: DatasetEntry) -> Brought:
    record = transfer.json(api, entry.name)
    files = _files_of(record)
    pair = [f"{entry.name}_{split}.ts" for split in ("TRAIN", "TEST")]
    if not set(pair) <= set(files):
        if (packed := f"{entry.name}.zip") in files:
            remote, _ = _remote(files[packed], api, packed)
            return _from_zip(transfer, work, remote, "zenodo", entry)
        held = ", ".join(sorted(files)[:4]) or "no files"
        raise Fault(f"holds no {pair[0]} and {pair[1]} but {held}{', ...' if len(files) > 4 else ''}")
    parts = [Partial(work / f"zenodo-{file}") for file in pair]
    for file, part in zip(pair, parts, strict=True):
        remote, md5 = _remote(files[file], api, file)
        transfer.fetch(remote, part, lambda path, md5=md5: _check_md5(path, md5))  # type: ignore[misc]
    train, test = (part.path for part in parts)
    named = [path.rename(path.with_name(file)) for path, file in zip((train, test), pair, strict=True)]
    if (wrong := fault_of(entry, *named)) is not None:
        for part, path in zip(parts, named, strict=True):
            path.unlink()
            part.forget()
        raise Fault(f"sent another data set or only a part of it: {wrong}")
    return Brought(train=named[0], test=named[1], origin=api, record=_said_of(record))


def _files_of(record: Any) -> dict[str, Mapping[str, Any]]:
    """The files of a record by name. Fault if the document has another shape than a record."""
    listed = record.get("files") if isinstance(record, dict) else None
    if not isinstance(listed, list) or not all(isinstance(file, dict) for file in listed):
        raise Fault("answers with something that is no record")
    return {str(file.get("key") or file.get("filename")): file for file in listed}


def _remote(file: Mapping[str, Any], api: str, name: str) -> tuple[Remote, str | None]:
    """Where a file of a record is, and its md5 as far as it is said."""
    links = file.get("links")
    url = links.get("self") if isinstance(links, dict) else None
    size, checksum = file.get("size", file.get("filesize")), str(file.get("checksum") or "")
    kind, _, digest = checksum.rpartition(":")
    remote = Remote(
        url=str(url or f"{api}/files/{quote(name)}/content"),
        name=name,
        size=size if isinstance(size, int) else None,
    )
    return remote, digest.lower() if digest and kind in ("", "md5") else None


def _check_md5(path: Path, md5: str | None) -> None:
    if md5 is not None and (found := md5_of(path)) != md5:
        raise Damaged(f"sent a damaged file: md5 {found} where its record says {md5}")


def _said_of(record: Any) -> dict[str, str]:
    """Title, doi, licence and authors as far as the record has them."""
    about = record.get("metadata")
    about = about if isinstance(about, dict) else {}
    licence = about.get("license")
    authors = about.get("creators")
    said = {
        "title": about.get("title") or record.get("title"),
        "doi": record.get("doi") or about.get("doi"),
        "licence": licence.get("id") if isinstance(licence, dict) else licence,
        "authors": "; ".join(str(one.get("name")) for one in authors if isinstance(one, dict))
        if isinstance(authors, list)
        else None,
        "published": about.get("publication_date"),
    }
    return {key: str(value) for key, value in said.items() if value}

"""A real HTTP server on loopback that serves data sets, and does what it is told to do wrong."""

from __future__ import annotations

import io
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tsattn.data.download.faults import Patience
from tsattn.data.download.fetch import Way
from tsattn.data.home import home
from tsattn.data.named import embedded_folder
from tsattn.data.registry import DatasetEntry

FACTS: dict[str, Any] = {"train": 40, "test": 40, "channels": 6, "classes": 4, "length": 100}


@dataclass
class Reply:
    """What the server answers.

    body: what it sends; length: what it says it sends. cut, stall: bytes after which it closes the
    connection, or falls silent. pace: seconds after each 2 KiB.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    cut: int | None = None
    stall: int | None = None
    pace: float = 0.0


@dataclass
class Web:
    """The server: files by path, and rules by path that make the n-th Reply out of the honest one."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    rules: dict[str, Callable[[int, Reply], Reply]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, path: str, wanted: str) -> Reply:
        with self.lock:
            self.asked.append((path, wanted))
            number = sum(one == path for one, _ in self.asked)
        honest = self.honest(path, wanted)
        return self.rules[path](number, honest) if path in self.rules else honest

    def honest(self, path: str, wanted: str) -> Reply:
        body = self.files.get(path)
        if body is None:
            return Reply(b"nothing of that name", 404)
        tag = {"ETag": f'"{hash(body)}"'}
        if not wanted:
            return Reply(body, headers=tag)
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start >= len(body):
            return Reply(status=416, headers={"Content-Range": f"bytes */{len(body)}"})
        span = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
        return Reply(body[start:], 206, {**tag, **span})

    def times(self, path: str) -> int:
        """How often `path` was asked for."""
        return sum(one == path for one, _ in self.asked)


def handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = web.reply(self.path, self.headers.get("Range", ""))
            self.send_response(reply.status)
            length = len(reply.body) if reply.length is None else reply.length
            for name, value in {"Content-Length": str(length), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            body = reply.body if reply.cut is None else reply.body[: reply.cut]
            body = body if reply.stall is None else body[: reply.stall]
            try:
                for at in range(0, len(body), 2048 if reply.pace else max(1, len(body))):
                    chunk = body[at : at + 2048] if reply.pace else body
                    self.wfile.write(chunk)
                    web.sent += len(chunk)
                    time.sleep(reply.pace)
            except OSError:
                return  # the client was killed
            if reply.stall is not None:
                time.sleep(2)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(made))
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this test."""
    monkeypatch.setenv("TSATTN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TSATTN_OFFLINE", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    return home()


@pytest.fixture(scope="session")
def files() -> dict[str, bytes]:
    """The two files of a set that is called Motions and is BasicMotions."""
    folder = embedded_folder("BasicMotions")
    assert folder is not None
    return {
        f"Motions_{split}.ts": (folder / f"BasicMotions_{split}.ts").read_bytes()
        for split in ("TRAIN", "TEST")
    }


def packed(members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of `members`."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", how) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return into.getvalue()


@pytest.fixture
def pack() -> Callable[..., bytes]:
    return packed


@pytest.fixture
def entry() -> DatasetEntry:
    return DatasetEntry(name="Motions", where="here:1", archive="UEA", **FACTS)


@pytest.fixture
def way(web: Web, files: dict[str, bytes]) -> Way:
    """A mirror that has Motions, an archive that has nothing, no real host, and little patience."""
    web.files["/mirror/Motions.zip"] = packed(files)
    patience = Patience(attempts=5, connect=2, read=0.4, first=0.01, longest=0.05, asked=2)
    return Way(
        mirror=f"{web.url}/mirror",
        zenodo=f"{web.url}/zenodo",
        archive=f"{web.url}/archive",
        patience=patience,
    )


@pytest.fixture
def left(place: Path) -> Callable[[], list[str]]:
    """What lies in the cache, locks left out."""

    def look() -> list[str]:
        found = (path.relative_to(place) for path in place.rglob("*") if path.is_file())
        return sorted(str(path) for path in found if path.parts[0] != "locks")

    return look


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
def free_disk() -> int:
    return shutil.disk_usage("/").free

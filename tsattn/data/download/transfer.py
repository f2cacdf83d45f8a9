"""One file over HTTP into a partial file: resumed, retried, timed out.

requests does the protocol: redirects, proxies and certificates as the user's environment has them.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tsattn import __version__
from tsattn.data.download.faults import Damaged, Fault, GaveUp, Passing, Patience, Stopped
from tsattn.data.download.partial import Partial
from tsattn.data.download.watch import Watch
from tsattn.errors import InputError

if TYPE_CHECKING:
    import requests

_T = TypeVar("_T")
_CHUNK = 1 << 16
_PAGE = re.compile(rb"\s*<(!doctype|html|head|\?xml)", re.IGNORECASE)
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_UNREACHED = 2  # attempts that a server counts as which does not even take the connection


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A file to fetch; size in bytes where it is known. name: how the progress calls it."""

    url: str
    name: str
    size: int | None = None


class Transfer:
    """Fetches files one after the other. Setting `stop` ends it with Stopped."""

    def __init__(self, patience: Patience, watch: Watch, stop: threading.Event) -> None:
        import requests

        self.patience, self.watch, self.stop = patience, watch, stop
        self.session = requests.Session()
        self.session.max_redirects = 10
        self.session.headers.update({"User-Agent": f"tsattn/{__version__}", "Accept-Encoding": "identity"})

    def __enter__(self) -> Transfer:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def fetch(self, remote: Remote, part: Partial, check: Callable[[Path], _T]) -> _T:
        """Fetches `remote` into `part`, going on with what it has, and gives what `check` makes of it.

        A file that `check` calls Damaged is fetched once more from its beginning. Fault if the file does
        not come; `part` then stays if it can be gone on with.
        """
        try:
            for last in (False, True):
                self._repeat(remote.name, lambda: self._attempt(remote, part), lambda: part.have)
                try:
                    return check(part.path)
                except Damaged as fault:
                    if last:
                        raise
                    part.forget()
                    self.watch.say(remote.name, f"{fault}; fetched once more")
            raise AssertionError
        except GaveUp:
            raise
        except Fault:
            part.forget()
            raise
        finally:
            self.watch.end(remote.name)

    def json(self, url: str, name: str) -> Any:
        """The JSON document at `url`, of at most 16 MB. Fault if there is none."""

        def attempt() -> bytes:
            with self._get(url, {}) as response:
                _check_status(response)
                body = b""
                while len(body) <= 1 << 24 and (chunk := self._chunk(response)):
                    body += chunk
                return body

        try:
            return json.loads(self._repeat(name, attempt))
        except ValueError:
            raise Fault("answers with something that is not JSON") from None

    def _repeat(self, name: str, attempt: Callable[[], _T], have: Callable[[], int] = lambda: 0) -> _T:
        """Attempts until it succeeds, or fails too often in a row without one new byte."""
        failures, furthest = 0, have()
        while True:
            try:
                return attempt()
            except Passing as fault:
                if have() > furthest:
                    failures, furthest = 0, have()
                failures += fault.weight
                if failures >= self.patience.attempts:
                    raise GaveUp(f"{fault}, again and again") from None
                if fault.wait is not None and fault.wait > self.patience.asked:
                    raise GaveUp(f"{fault} and asks to wait {fault.wait:.0f} s") from None
                self._wait(name, fault, failures)

    def _wait(self, name: str, fault: Passing, failures: int) -> None:
        # Jitter keeps many clients from coming back at the same moment.
        own = min(self.patience.longest, self.patience.first * 2 ** (failures - 1)) * random.uniform(0.5, 1)
        seconds = own if fault.wait is None else fault.wait
        self.watch.say(name, f"{fault}; tried again in {seconds:.1f} s")
        if self.stop.wait(seconds):
            raise Stopped

    def _attempt(self, remote: Remote, part: Partial) -> None:
        """One request: everything that is still missing, or Passing."""
        before = part.resumable(remote.url)
        if before is not None and part.have == (remote.size or before["total"]):
            return
        with self._get(remote.url, _headers(part, before)) as response:
            if response.status_code == 416 and before:
                _end_reached(response, part)
                return
            _check_status(response)
            total = _total(response)
            if remote.size is not None and total not in (None, remote.size):
                raise Fault(f"sends {total} bytes where its record says {remote.size}")
            if response.status_code == 200:
                said = response.headers
                part.begin(remote.url, said.get("ETag"), said.get("Last-Modified"), total)
            elif before is None or not _continues(response, part, before):
                part.forget()
                raise Passing("sent another part than the one asked for")
            self._receive(response, remote, part, total if total is not None else remote.size)

    def _receive(self, response: requests.Response, remote: Remote, part: Partial, total: int | None) -> None:
        have = part.have
        self.watch.begin(remote.name, total, have)
        _check_room(part.path, (total or 0) - have)
        with part.path.open("ab", buffering=0) as file:
            while chunk := self._chunk(response):
                if not have and _PAGE.match(chunk):
                    raise Fault("answers with a web page instead of the file")
                _write(file, chunk, part.path)
                have += len(chunk)
                if total is not None and have > total:
                    raise Fault(f"sends more than the {total} bytes of the file")
                self.watch.at(remote.name, have)
        if total is not None and have < total:
            raise Passing("cut the connection")

    @contextmanager
    def _get(self, url: str, headers: dict[str, str]) -> Iterator[requests.Response]:
        if self.stop.is_set():
            raise Stopped
        with _translated():
            response = self.session.get(
                url, headers=headers, stream=True, timeout=(self.patience.connect, self.patience.read)
            )
        with response:
            yield response

    def _chunk(self, response: requests.Response) -> bytes:
        if self.stop.is_set():
            raise Stopped
        with _translated():
            return bytes(response.raw.read1(_CHUNK, decode_content=True))


@contextmanager
def _translated() -> Iterator[None]:
    """What requests and urllib3 raise becomes a Fault, Passing where another attempt may help."""
    import requests
    import urllib3

    try:
        yield
    except requests.exceptions.TooManyRedirects:
        raise Fault("redirects in a circle") from None
    except requests.exceptions.SSLError as error:
        raise Fault(f"has a certificate that is not trusted ({_reason(error)})") from None
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
        raise Passing("does not answer in time") from None
    except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        raise Passing(f"cannot be reached ({_reason(error)})", weight=_UNREACHED) from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, requests.exceptions.RequestException):
            raise Fault(f"cannot be asked ({error})") from None
        # An incomplete read is that and nothing more; other causes have a name of the system.
        reason = _reason(error)
        raise Passing("cut the connection" + ("" if "Incomplete" in reason else f" ({reason})")) from None


def _reason(error: BaseException | None) -> str:
    """The words of the system at the bottom of a chain of wrapped exceptions."""
    words = str(error)
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            words = error.strerror
        inner = getattr(error, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
        error = inner or error.__cause__ or error.__context__
    return words if len(words) < 200 else words[:197] + "..."


def _check_status(response: requests.Response) -> None:
    code = response.status_code
    if code in (200, 206):
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise Fault("answers with a web page instead of the file")
        return
    if code in (404, 410):
        raise Fault(f"has no such file ({code})")
    if code in (408, 429) or code >= 500:
        word = "asks for fewer requests" if code == 429 else "has a trouble of its own"
        raise Passing(f"{word} ({code})", wait=_retry_after(response))
    raise Fault(f"answers {code} {response.reason}".rstrip())


def _retry_after(response: requests.Response) -> float | None:
    """Seconds that the server asks to wait, given as seconds or as a date."""
    said = response.headers.get("Retry-After", "").strip()
    if said.isdigit():
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:
        return None


def _total(response: requests.Response) -> int | None:
    """Bytes of the whole file as this answer has them; None if it does not say."""
    if response.status_code == 206:
        match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        return int(match[2]) if match and match[2] != "*" else None
    said = response.headers.get("Content-Length", "")
    return int(said) if said.isdigit() and "Content-Encoding" not in response.headers else None


def _headers(part: Partial, before: dict[str, Any] | None) -> dict[str, str]:
    """Asks for the rest only, if something is there and it is still the same file."""
    if before is None:
        return {}
    etag, modified = before["etag"], before["modified"]
    # A weak ETag does not promise the same bytes.
    validator = etag if etag and not etag.startswith("W/") else modified
    return {"Range": f"bytes={part.have}-"} | ({"If-Range": validator} if validator else {})


def _continues(response: requests.Response, part: Partial, before: dict[str, Any]) -> bool:
    """Whether a partial answer is the rest of what is there."""
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    etag = response.headers.get("ETag")
    return (
        match is not None
        and int(match[1]) == part.have
        and (before["total"] is None or match[2] in ("*", str(before["total"])))
        and (not before["etag"] or not etag or etag == before["etag"])
    )


def _end_reached(response: requests.Response, part: Partial) -> None:
    """416 to a request for the rest: there is no more, or the file is another now."""
    if response.headers.get("Content-Range", "") != f"bytes */{part.have}":
        part.forget()
        raise Passing("has another file there than before")


def _check_room(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise InputError(
            f"{path.parent}: {needed / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB are free. Make room, "
            "or set TSATTN_HOME to a folder on another disk."
        )


def _write(file: Any, chunk: bytes, path: Path) -> None:
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Make room, or set TSATTN_HOME to another folder."
        ) from None

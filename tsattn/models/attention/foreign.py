"""Attention that tsattn does not bring: a user's file, run once and known by its content.

A file is always named by the user, as `path/file.py:name` where a spec is typed; parsing a spec that
was read from somewhere never runs one.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.abc import InspectLoader
from pathlib import Path
from types import CodeType
from typing import TypeVar

from tsattn.config import Code
from tsattn.errors import InputError
from tsattn.models.attention.registry import Origin, Part, parse, parts, registering_from
from tsattn.models.attention.requirements import NotRegistrable

T = TypeVar("T")
MODULES = "tsattn_foreign_"
OURS = "tsattn"
LONGEST_COMPLAINT = 300
_FILE_WORD = re.compile(r"\s*(?P<path>.*?\.py):(?P<name>[^:]*)(?P<option>:.*)?", re.DOTALL)
_packages: set[str] = set()


@dataclass(frozen=True)
class Failure:
    """What the code of others did wrong: 'file:line: what'.

    kind: the exception's class. placed: False where no line of it could be told.
    """

    says: str
    kind: type[BaseException]
    placed: bool


def attempt(call: Callable[[], T]) -> T | Failure:
    """Runs code of others, which may raise anything and even leave; only an interruption passes.

    What it prints goes to stderr: stdout holds results, with --json one document.
    """
    try:
        with redirect_stdout(sys.stderr):
            return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whose code it is, is not known here
        return Failure(describe(error), type(error), blame(error) is not None)


def blame(error: BaseException) -> str | None:
    """'file:line' in the code of others where it raised this; None where ours raised it."""
    for one in _chain(error):
        if isinstance(one, SyntaxError) and one.filename:
            return f"{one.filename}:{one.lineno or 1}"
        place, frame = None, one.__traceback__
        while frame is not None:
            package = str(frame.tb_frame.f_globals.get("__name__")).partition(".")[0]
            if package in _packages:
                place = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
            elif package == OURS and not isinstance(one, NotRegistrable):
                place = None
            frame = frame.tb_next
        if place is not None:
            return place
    return None


def describe(error: BaseException) -> str:
    """One line: what the code of others did wrong and, where that can be told, file:line."""
    place = blame(error)
    told = error
    while told.__cause__ is not None and (place is None or blame(told.__cause__) == place):
        told = told.__cause__
    words = (told.msg if isinstance(told, SyntaxError) else str(told)).split()
    says = " ".join(words)[:LONGEST_COMPLAINT].rstrip(".")
    if not isinstance(told, (NotRegistrable, InputError)):
        says = f"{type(told).__name__}: {says}" if says else type(told).__name__
    return f"{place}: {says}" if place is not None else says


def watch_for(package: str) -> None:
    """From now on errors in this top-level package are blamed on it."""
    if package != OURS:
        _packages.add(package)


def resolve(spec: str) -> str:
    """Runs the files that a typed spec names and returns the spec by plain names.

    'my/cold.py:cold:0.3+bn' becomes 'cold:0.3+bn'. InputError for a file that cannot be run or does
    not register the name, and for a spec that makes no sense.
    """
    words = spec.split("+")
    return str(parse("+".join(_plain(words, place, spec) for place in range(len(words)))))


def load_file(path: Path, content: bytes | None = None) -> tuple[Part, ...]:
    """Runs a file, once for each content, and returns the parts it registers.

    content: what is run; read from `path` where None. InputError naming file and line.
    """
    if content is None:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise InputError(f"{path}: this is no file; an attention is a file of Python.")
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: this attention cannot be read ({error.strerror}).") from None
    origin = Origin(file=str(path), content=content)
    if not _of(origin):
        failure = attempt(lambda: _run(origin))
        if isinstance(failure, Failure):
            hint = ""
            if issubclass(failure.kind, ImportError):
                hint = " The file is recorded by itself, so it can import only what is installed."
            raise InputError(f"{failure.says if failure.placed else f'{path}: {failure.says}'}.{hint}")
    if not _of(origin):
        raise InputError(
            f'{path}: registers no attention. Write @core("NAME", summary=…, cost=…, source=…) above a '
            "class, as docs/attention.md shows."
        )
    return _of(origin)


def recorded(spec: str) -> tuple[Code, ...]:
    """What a run folder has to keep so that this spec can be built again."""
    codes: list[Code] = []
    taken: dict[str, str] = {}
    for part, _ in parse(spec).parts:
        origin = part.origin
        if origin is not None and origin.file:
            name = Path(origin.file).name
            if taken.setdefault(name, origin.sha256) != origin.sha256:
                name = f"{Path(name).stem}-{origin.sha256[:8]}.py"
            codes.append(Code(part=part.name, file=f"code/{name}", sha256=origin.sha256))
        elif origin is not None:
            codes.append(Code(part=part.name, distribution=origin.distribution, version=origin.version))
    return tuple(codes)


def has_run(code: Code) -> bool:
    """Whether this process has run the file that registered this part, the very same bytes."""
    return any(part.origin.file and part.origin.sha256 == code.sha256 for part in parts() if part.origin)


def content_of(code: Code) -> bytes:
    """The content of the file that registered this part."""
    return next(part.origin.content for part in parts() if part.origin and part.origin.sha256 == code.sha256)


def _plain(words: list[str], place: int, spec: str) -> str:
    word = words[place]
    found = _FILE_WORD.fullmatch(word)
    if found is None:
        if word.strip().endswith(".py"):
            file = word.strip()
            raise InputError(f"attention '{spec}': which attention of {file}? Write '{file}:NAME'.")
        return word
    path, name = Path(found["path"]), found["name"].strip()
    if not path.is_file():
        wholes = ("+".join((*words[first:place], found["path"])) for first in range(place))
        if any(Path(whole).is_file() for whole in wholes):
            raise InputError(
                f"attention '{spec}': a path with '+' in it cannot stand in a spec, where '+' joins parts. "
                "Copy the file to another place or rename the folder."
            )
        raise InputError(f"attention '{spec}': no such file {path}.")
    registered = [part.name for part in load_file(path)]
    if name not in registered:
        usage = " or ".join(f"'{path}:{one}'" for one in registered)
        raise InputError(f"attention '{spec}': {path} does not register '{name}', write {usage}.")
    return name + (found["option"] or "")


def _run(origin: Origin) -> None:
    """Runs the very bytes of the origin: no cached bytecode is read or written."""
    name = MODULES + origin.sha256[:16]
    loader = _Loader(origin)
    spec = importlib.util.spec_from_loader(name, loader, origin=origin.file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = origin.file
    watch_for(name)
    sys.modules[name] = module
    try:
        with registering_from(origin):
            loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


class _Loader(InspectLoader):
    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._origin.content)

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._origin.content, self._origin.file)


def _of(origin: Origin) -> tuple[Part, ...]:
    of_files = (part for part in parts() if part.origin and part.origin.file)
    return tuple(part for part in of_files if part.origin and part.origin.content == origin.content)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and what caused it, down to the first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

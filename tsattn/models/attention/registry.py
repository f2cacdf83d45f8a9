"""The words of attention and how they join: 'local:32+bn+sh' is read innermost first.

A spec is one core and any wrappers joined by '+'; a missing core means softmax; a part may carry
one option list after a colon. Registering a class is all it takes to appear in help, in
`tsattn attention list`, in the law tests and in the export matrix.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from tsattn.errors import InputError
from tsattn.models.attention.contract import BuildInner, Heads, Mechanism
from tsattn.models.attention.requirements import NotRegistrable, check_class, refuse_wrong_outputs

M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a part comes from that tsattn does not bring.

    file and content: of a user's file, as it was run. distribution and version: of installed software.
    """

    file: str = ""
    content: bytes = field(default=b"", repr=False)
    distribution: str = ""
    version: str = ""

    @property
    def sha256(self) -> str:
        """Of the content of the file, hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def __str__(self) -> str:
        return self.file or f"{self.distribution} {self.version}".strip()


@dataclass(frozen=True, kw_only=True)
class Part:
    """A registered core or wrapper.

    kind: "core" or "wrapper". option: what may follow the colon, as help shows it, '' if nothing.
    cost: growth with the number of timepoints N; for a wrapper, what it does to its core's.
    pools_keys: gives what it wraps fewer keys than queries. needs_all_keys: can only stand where
    keys and queries are the same timepoints.
    build: (heads, inner, option) -> Mechanism; inner is None for a core, option None if not given;
    raises ValueError with a clause ("the window must be …") for an option that makes no sense.
    origin: None for what tsattn brings.
    """

    name: str
    kind: str
    summary: str
    cost: str
    source: str
    option: str = ""
    pools_keys: bool = False
    needs_all_keys: bool = False
    build: Callable[[Heads, BuildInner | None, str | None], Mechanism]
    origin: Origin | None = None


@dataclass(frozen=True)
class Spec:
    """A parsed spec: each part with its option (None where none was given), core first."""

    parts: tuple[tuple[Part, str | None], ...]

    def __str__(self) -> str:
        """The shortest spelling that means the same: without a core that is the default one."""
        words = [_spell(part.name, option) for part, option in self.parts]
        return "+".join(words[1:] if len(words) > 1 and words[0] == DEFAULT_CORE else words)


DEFAULT_CORE = "softmax"
_PARTS: dict[str, Part] = {}
_ORIGIN: ContextVar[Origin | None] = ContextVar("origin", default=None)


def core(
    name: str, *, summary: str, cost: str, source: str, option: str = "", needs_all_keys: bool = False
) -> Callable[[type[M]], type[M]]:
    """Registers a class whose constructor takes (heads) or, if it has an option, (heads, option)."""

    def register(cls: type[M]) -> type[M]:
        def build(heads: Heads, inner: BuildInner | None, given: str | None) -> Mechanism:
            return cls(heads, given) if option else cls(heads)

        check_class(cls, name, ["heads", "option"] if option else ["heads"])
        _add(
            Part(
                name=name,
                kind="core",
                summary=summary,
                cost=cost,
                source=source,
                option=option,
                needs_all_keys=needs_all_keys,
                build=build,
                origin=_ORIGIN.get(),
            )
        )
        return cls

    return register


def wrapper(
    name: str,
    *,
    summary: str,
    cost: str,
    source: str,
    option: str = "",
    pools_keys: bool = False,
    needs_all_keys: bool = False,
) -> Callable[[type[M]], type[M]]:
    """Registers a class whose constructor takes (heads, inner) or, if it has an option, (…, option)."""

    def register(cls: type[M]) -> type[M]:
        def build(heads: Heads, inner: BuildInner | None, given: str | None) -> Mechanism:
            return cls(heads, inner, given) if option else cls(heads, inner)

        check_class(cls, name, ["heads", "inner", "option"] if option else ["heads", "inner"])
        _add(
            Part(
                name=name,
                kind="wrapper",
                summary=summary,
                cost=cost,
                source=source,
                option=option,
                pools_keys=pools_keys,
                needs_all_keys=needs_all_keys,
                build=build,
                origin=_ORIGIN.get(),
            )
        )
        return cls

    return register


@contextmanager
def registering_from(origin: Origin) -> Iterator[None]:
    """What is registered inside comes from there; where it ends in an exception, nothing was registered."""
    before = dict(_PARTS)
    token = _ORIGIN.set(origin)
    try:
        yield
    except BaseException:
        _PARTS.clear()
        _PARTS.update(before)
        raise
    finally:
        _ORIGIN.reset(token)


def parts(kind: str | None = None) -> tuple[Part, ...]:
    """All registered parts, or those of one kind, in the order of registration."""
    return tuple(part for part in _PARTS.values() if kind in (None, part.kind))


def parse(spec: str) -> Spec:
    """Reads a spec such as 'linear+bn'. InputError with the right spelling for one that makes no sense."""
    words = [word.strip().partition(":") for word in spec.split("+")]
    found = [
        (_lookup(name.strip(), spec), option.strip() if colon else None) for name, colon, option in words
    ]
    _refuse_nonsense(spec, found)
    if found[0][0].kind != "core":
        found.insert(0, (_PARTS[DEFAULT_CORE], None))
    parsed = Spec(tuple(found))
    for part, option in parsed.parts:
        if option is not None and not part.option:
            raise InputError(f"attention '{spec}': '{part.name}' takes no option, write '{_as_typed(part)}'.")
    return parsed


def build(spec: str, heads: Heads) -> Mechanism:
    """The mechanism that a spec names, for these heads. InputError where spec or options make no sense."""
    make: BuildInner | None = None
    for part, option in parse(spec).parts:
        make = _builder(spec, part, option, make)
    assert make is not None
    return make(heads)


def _builder(spec: str, part: Part, option: str | None, inner: BuildInner | None) -> BuildInner:
    def make(heads: Heads) -> Mechanism:
        try:
            mechanism = part.build(heads, inner, option)
        except ValueError as error:
            usage = _spell(part.name, part.option or None)
            raise InputError(f"attention '{spec}': {error} (usage: {usage}).") from None
        if part.origin is not None:
            refuse_wrong_outputs(mechanism, f"{part.origin}: attention '{part.name}'")
        return mechanism

    return make


def _add(part: Part) -> None:
    for field_name in ("name", "summary", "cost", "source", "option"):
        words = getattr(part, field_name)
        if not isinstance(words, str):
            raise NotRegistrable(f"{field_name} of attention '{part.name}' has to be text, not {words!r}")
    if not re.fullmatch(r"[\w.-]+", part.name):
        raise NotRegistrable(f"'{part.name}' cannot name an attention: letters, digits, '_', '-' and '.' can")
    other = _PARTS.get(part.name)
    if other is not None:
        taken = "is built in" if other.origin is None else f"is registered already, from {other.origin}"
        raise NotRegistrable(f"an attention called '{part.name}' {taken}; give this one another name")
    _PARTS[part.name] = part


def _spell(name: str, option: str | None) -> str:
    return name if option is None else f"{name}:{option}"


def _as_typed(part: Part) -> str:
    """How a user names it: a part of a file by file and name, or it is not found."""
    return f"{part.origin.file}:{part.name}" if part.origin and part.origin.file else part.name


def _lookup(name: str, spec: str) -> Part:
    if name not in _PARTS:
        from tsattn.models.attention.installed import load_installed

        load_installed(name)
    if name in _PARTS:
        return _PARTS[name]
    near = difflib.get_close_matches(name.lower(), _PARTS, n=2, cutoff=0.5)
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    cores = ", ".join(part.name for part in parts("core"))
    wrappers = ", ".join(part.name for part in parts("wrapper"))
    raise InputError(
        f"attention '{spec}': there is no part '{name}'.{hint} "
        f"Cores: {cores}. Wrappers: {wrappers}. Join them with '+', e.g. 'bn+sh' or 'linear+bn'."
    )


def _refuse_nonsense(spec: str, found: Sequence[tuple[Part, str | None]]) -> None:
    def spelled(order: Sequence[tuple[Part, str | None]]) -> str:
        return "+".join(_spell(_as_typed(part), option) for part, option in order)

    names = [part.name for part, _ in found]
    cores = [entry for entry in found if entry[0].kind == "core"]
    wrappers = [entry for entry in found if entry[0].kind == "wrapper"]
    if len(cores) > 1:
        either = " or ".join(dict.fromkeys(f"'{spelled([one, *wrappers])}'" for one in cores))
        raise InputError(f"attention '{spec}': only one core can compute attention, write {either}.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        once = [entry for place, entry in enumerate(found) if entry[0].name not in names[:place]]
        raise InputError(f"attention '{spec}': '{repeated[0]}' stands twice, write '{spelled(once)}'.")
    if cores and found[0] != cores[0]:
        raise InputError(
            f"attention '{spec}': the core stands first, write '{spelled([*cores, *wrappers])}'."
        )
    for place, (part, _) in enumerate(found):
        pooling = [entry for entry in found[place + 1 :] if entry[0].pools_keys]
        if part.needs_all_keys and pooling:
            if part.kind == "core":
                possible = [entry for entry in found if not entry[0].pools_keys]
            else:
                outside = [entry for entry in found if entry[0].needs_all_keys]
                possible = [*(entry for entry in found if entry not in outside), *outside]
            raise InputError(
                f"attention '{spec}': '{part.name}' needs every timepoint and so cannot stand inside "
                f"'{pooling[0][0].name}', write '{spelled(possible)}'."
            )

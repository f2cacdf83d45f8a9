"""The words that name token stages: one, or several joined by '+', whose tokens are added up."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor, nn

from tsattn.errors import InputError
from tsattn.models.tokens.contract import TokenStage

STRIDE = "[S]"
"""The option of a stage that gives a token every S timepoints, one where it is left out."""


S = TypeVar("S", bound=TokenStage)


@dataclass(frozen=True, kw_only=True)
class TokenWord:
    """A registered stage. build: (channels, width, option) -> TokenStage; ValueError for a bad option."""

    name: str
    summary: str
    option: str
    build: Callable[[int, int, str | None], TokenStage]


_WORDS: dict[str, TokenWord] = {}


def token_stage(name: str, *, summary: str, option: str = "") -> Callable[[type[S]], type[S]]:
    """Registers a class whose constructor takes (channels, width) or, if it has an option, (…, option)."""

    def register(cls: type[S]) -> type[S]:
        def build(channels: int, width: int, given: str | None) -> TokenStage:
            return cls(channels, width, given) if option else cls(channels, width)

        _WORDS[name] = TokenWord(name=name, summary=summary, option=option, build=build)
        return cls

    return register


def token_words() -> tuple[TokenWord, ...]:
    """All registered stages, by name."""
    return tuple(_WORDS[name] for name in sorted(_WORDS))


def build_tokens(spec: str, channels: int, width: int) -> TokenStage:
    """The stage of 'name', 'name:option' or several of them joined by '+', whose tokens are added up.

    InputError for an unknown one, a bad option, and stages that give different numbers of tokens.
    """
    words = [word.strip() for word in spec.split("+")]
    stages = [_build(word, spec, channels, width) for word in words]
    if len(stages) == 1:
        return stages[0]
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise InputError(
            f"tokens '{spec}': '{twice}' stands twice, write '{'+'.join(dict.fromkeys(words))}'."
        )
    if len({stage.stride for stage in stages}) > 1:
        each = ", ".join(f"{word} every {stage.stride}" for word, stage in zip(words, stages, strict=True))
        raise InputError(
            f"tokens '{spec}': tokens that are added up have to begin at the same timepoints ({each}). Give "
            "all of them the same stride."
        )
    return SumOfTokens(stages)


def with_stride(spec: str, stride: int) -> str:
    """The spec with `stride` timepoints a token, if none is said and every stage of it can have one."""
    known = {name for name, entry in _WORDS.items() if entry.option == STRIDE}
    words = [word.strip() for word in spec.split("+")]
    if stride == 1 or not known.issuperset(words):
        return spec
    return "+".join(f"{word}:{stride}" for word in words)


class SumOfTokens(TokenStage):
    """Tokens of several stages, added up."""

    def __init__(self, stages: Sequence[TokenStage]) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.stride = stages[0].stride

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        first, *others = (stage(x, observed) for stage in self.stages)
        tokens, seen = first
        for more, _ in others:
            tokens = tokens + more
        return tokens, seen


def _build(word: str, spec: str, channels: int, width: int) -> TokenStage:
    name, colon, option = word.partition(":")
    if name not in _WORDS:
        near = difflib.get_close_matches(name, _WORDS, n=1, cutoff=0.5)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        known = ", ".join(_usage(entry) for entry in token_words())
        raise InputError(f"tokens '{spec}': there is no token stage '{name}'.{hint} There are: {known}.")
    entry = _WORDS[name]
    if colon and not entry.option:
        raise InputError(f"tokens '{spec}': '{name}' takes no option, write '{name}'.")
    try:
        return entry.build(channels, width, option if colon else None)
    except ValueError as error:
        raise InputError(f"tokens '{spec}': {error} (usage: {_usage(entry)}).") from None


def _usage(entry: TokenWord) -> str:
    if entry.option.startswith("["):
        return f"{entry.name}[:{entry.option[1:]}"
    return f"{entry.name}:{entry.option}" if entry.option else entry.name

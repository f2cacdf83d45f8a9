"""One value of a preset: from a YAML scalar to what the field's type says, or a clause that says why not.

Numbers are read as a person reads them and not as YAML 1.1 does, for which 1e-3 is text, 010 is eight
and 1:30 is ninety.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any, NamedTuple, Union, get_args, get_origin

from tsattn.config import MOST_CONVOLUTIONS

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?")
LONGEST = 60
"""Letters of a value that a message repeats."""
_TAG = "tag:yaml.org,2002:"


class Range(NamedTuple):
    """Where a number has to lie. words: for the message."""

    words: str
    holds: Callable[[float], bool]


_FEW = Range("from 1 to 100", lambda number: 1 <= number <= 100)
_COUNT = Range("1 or more", lambda number: number >= 1)
_POSITIVE = Range("above 0", lambda number: number > 0)
_NOT_NEGATIVE = Range("0 or more", lambda number: number >= 0)
_SHARE = Range("from 0 to 1", lambda number: 0 <= number <= 1)
_LESS_THAN_ALL = Range("from 0 to below 1", lambda number: 0 <= number < 1)

RANGES: dict[str, Range] = {
    **dict.fromkeys(("width", "heads", "layers", "feed_forward", "epochs", "batch_size", "patience"), _COUNT),
    "dilations": _COUNT,
    "convolutions": Range(f"from 0 to {MOST_CONVOLUTIONS:,}", lambda n: 0 <= n <= MOST_CONVOLUTIONS),
    **dict.fromkeys(("passes", "fewest_steps", "most_tokens", "tokens_a_case"), _COUNT),
    **dict.fromkeys(("dropout", "stochastic_depth", "label_smoothing", "averaging"), _LESS_THAN_ALL),
    "members": _FEW,
    "parts": _NOT_NEGATIVE,
    "learning_rate": _NOT_NEGATIVE,
    "weight_decay": _NOT_NEGATIVE,
    "warm_up": _SHARE,
    "trial": _SHARE,
    "clip": _POSITIVE,
    "validation": Range("from 0 to 0.9", lambda number: 0 <= number <= 0.9),
}
"""Of every number that a preset may set, by field."""


def read_value(key: str, node: Any, hint: Any) -> Any:
    """The value of a YAML node for a field of that type: int, float, bool, str, or one of them or None.

    ValueError with a sentence for one that does not fit or lies outside its range.
    """
    kind, may_be_none = _kind(hint)
    what = called(node)
    if may_be_none and what == "empty":
        return None
    expected = _EXPECTED[kind]
    if key in RANGES:
        expected += f", {RANGES[key].words}"
    value = _READERS[kind](node) if what not in ("empty", "a list", "a mapping") else None
    if value is None or (key in RANGES and not RANGES[key].holds(value)):
        raise ValueError(f"{key} is {what}; expected {expected}.{_advice(node, kind, what)}")
    return value


def called(node: Any) -> str:
    """How a message calls the content of a node."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if node.tag == f"{_TAG}null":
        return "empty"
    quote = node.style if node.style in ("'", '"') else ""
    return f"{quote}{shortened(node.value)}{quote}"


def shortened(text: str) -> str:
    """On one line, and not too long for a message."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"


def _kind(hint: Any) -> tuple[type[Any], bool]:
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kinds = [member for member in members if member is not types.NoneType]
    if len(kinds) != 1 or kinds[0] not in _READERS:
        raise TypeError(f"a preset cannot hold {hint}: give preset values a reader for it")
    return kinds[0], len(members) > 1


def _plain(node: Any) -> str:
    """What stands there without quotes; nothing where there are some."""
    return "" if node.style else node.value


def _whole(node: Any) -> int | None:
    return int(_plain(node)) if _WHOLE.fullmatch(_plain(node)) else None


def _number(node: Any) -> float | None:
    return float(_plain(node)) if _NUMBER.fullmatch(_plain(node)) else None


def _truth(node: Any) -> bool | None:
    return {"true": True, "false": False}.get(_plain(node).lower())


def _text(node: Any) -> str | None:
    return node.value.strip() if node.tag == f"{_TAG}str" else None


_READERS: dict[type[Any], Callable[[Any], Any]] = {int: _whole, float: _number, bool: _truth, str: _text}
_EXPECTED: dict[type[Any], str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}


def _advice(node: Any, kind: type[Any], what: str) -> str:
    if what in ("empty", "a list", "a mapping"):
        return ""
    if kind is str:
        return f" If '{what}' is that text, write it in quotes."
    if node.style in ("'", '"') and (_NUMBER if kind is float else _WHOLE).fullmatch(node.value):
        return f" Write {node.value} without quotes."
    return ""

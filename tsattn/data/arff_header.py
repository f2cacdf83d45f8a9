"""The head of an ARFF file: its attributes, and how a line falls into fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tsattn.data.textfile import shown
from tsattn.errors import InputError

_NUMERIC = ("numeric", "real", "integer")
_FIELD = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,'"]*?)\s*(,|$)""")
_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.*)""", re.IGNORECASE
)
_ESCAPE = re.compile(r"\\(.)")
_LABEL_NAMES = ("target", "class", "label", "classattribute", "activity")


@dataclass(frozen=True)
class Attribute:
    """One attribute. kind: "numeric", "nominal", "relational", or another word of the file.

    values: those of a nominal one, in their order.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArffHead:
    """attributes: of a row, those inside a relational one left out. lines: how many stand before the rows."""

    attributes: tuple[Attribute, ...]
    lines: int

    def label(self, where: str) -> int | None:
        """Position of the attribute that holds the class: the last one if it is nominal or called like a
        class, else the only nominal one; None if there is none. InputError where it is not clear.
        """
        last = len(self.attributes) - 1
        kinds = [attribute.kind for attribute in self.attributes]
        if kinds[last] == "nominal" or self.attributes[last].name.lower() in _LABEL_NAMES:
            return last
        nominal = [at for at, kind in enumerate(kinds) if kind == "nominal"]
        if len(nominal) > 1:
            names = ", ".join(self.attributes[at].name for at in nominal)
            raise InputError(
                f"{where}:{self.lines}: several attributes could be the class: {names}. "
                "Put the class last, or save the data as CSV and type --label."
            )
        return nominal[0] if nominal else None


def read_arff_head(lines: list[str], where: str) -> ArffHead:
    """What stands before the rows. InputError with line for what is no header of an ARFF file."""
    attributes: list[Attribute] = []
    relation: str | None = None
    for number, text in enumerate(lines, start=1):
        line = text.strip()
        if not line or line.startswith("%"):
            continue
        word = line.split(None, 1)[0].lower()
        here = f"{where}:{number}"
        if word == "@data":
            if relation is not None:
                raise InputError(f"{here}: @end {relation} is missing before @data.")
            if not attributes:
                raise InputError(f"{here}: no @attribute before @data.")
            return ArffHead(tuple(attributes), number)
        if word == "@attribute":
            attribute = _attribute(line, here)
            if relation is None:
                attributes.append(attribute)
                relation = attribute.name if attribute.kind == "relational" else None
        elif word == "@end":
            relation = None
        elif word != "@relation":
            raise InputError(
                f"{here}: found {shown(line)} before @data. The header of an ARFF file has the tags "
                "@relation, @attribute and @end."
            )
    raise InputError(
        f"{where}:{len(lines)}: no line @data up to this last line: this is no ARFF file or it was cut short."
    )


def fields(line: str, here: str) -> Iterator[str]:
    """The fields of a row, quotes taken off, escapes in them left. InputError for an open quote."""
    at = 0
    while True:
        match = _FIELD.match(line, at)
        if match is None:
            raise InputError(
                f"{here}: cannot be parted into fields from {shown(line[at:])} on: a quote is open, or "
                "stands inside a value."
            )
        field = match[1]
        yield field[1:-1] if field[:1] in ("'", '"') else field
        at = match.end()
        if match[2] != ",":
            return


def unescaped(text: str) -> str:
    """Without the backslashes of escapes."""
    return _ESCAPE.sub(r"\1", text)


def _attribute(line: str, here: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None or not match[2]:
        raise InputError(f"{here}: found {shown(line)}. Write @attribute NAME TYPE.")
    name = unescaped(match[1][1:-1]) if match[1][0] in ("'", '"') else match[1]
    kind = match[2].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise InputError(f"{here}: the list of classes of {name!r} is not closed by }}.")
        values = tuple(unescaped(value) for value in fields(kind[1:-1], here))
        return Attribute(name, "nominal", tuple(dict.fromkeys(value for value in values if value)))
    word = kind.split()[0].lower()
    return Attribute(name, "numeric" if word in _NUMERIC else word)

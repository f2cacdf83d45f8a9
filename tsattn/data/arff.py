r"""Reader of ARFF files as the archives use them.

Univariate: the numeric attributes are the timepoints of one channel, in their order. Multivariate: one
relational attribute holds a case's channels as one quoted field, a channel a line ("\n" in the text).
'?' is missing. Not covered: sparse rows, weights, dates.
"""

from __future__ import annotations

import logging
import re

from tsattn.data.arff_header import ArffHead, fields, read_arff_head, unescaped
from tsattn.data.classes import sorted_classes
from tsattn.data.collection import Collection
from tsattn.data.textfile import shown, text_of
from tsattn.data.ts import collection_of
from tsattn.data.ts_cases import Case
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

_QUOTED = re.compile(r"'[^'\\]*(?:\\n[^'\\]*)*'|\"[^\"\\]*(?:\\n[^\"\\]*)*\"")


def parse_arff(data: bytes, where: str) -> Collection:
    """The cases of an ARFF file given as bytes, in its order, with ids "0", "1", …; channels "dim_0", ….

    Classes are all those of the nominal attribute in its order; without one, labels are None.
    InputError with `where`:line for anything that cannot be read without guessing.
    """
    lines = text_of(data, where, "an ARFF file").split("\n")
    head = read_arff_head(lines, where)
    label = head.label(where)
    series = _series(head, label, where)
    cases: list[Case] = []
    labels: list[str] = []
    known = () if label is None else head.attributes[label].values
    for number, text in enumerate(lines[head.lines :], start=head.lines + 1):
        line = text.strip()
        if not line or line[0] == "%":
            continue
        here = f"{where}:{number}"
        row = _row(line, len(head.attributes), here)
        cases.append(Case(number, _as_series(row, series, head, here), b"", stamped=False))
        if label is not None:
            labels.append(_label(unescaped(row[label]), known, here))
    if not cases:
        raise InputError(f"{where}:{len(lines)}: no row after @data: a header only, or cut short.")
    classes = known or sorted_classes(labels)
    return collection_of(cases, None if label is None else tuple(labels), classes, where)


def _series(head: ArffHead, label: int | None, where: str) -> list[int]:
    """Positions of the attributes that hold the values: the relational one, or the numeric ones."""
    kinds = {at: attribute.kind for at, attribute in enumerate(head.attributes) if at != label}
    relational = [at for at, kind in kinds.items() if kind == "relational"]
    numeric = [at for at, kind in kinds.items() if kind == "numeric"]
    if len(relational) > 1 or (not relational and not numeric):
        found = ", ".join(f"{attribute.name} {attribute.kind}" for attribute in head.attributes[:10])
        raise InputError(
            f"{where}:{head.lines}: one relational attribute, or numeric ones, should hold the series; "
            f"found {found}."
        )
    chosen = relational or numeric
    unused = [head.attributes[at].name for at in kinds if at not in chosen]
    if unused:
        logger.warning("%s: attributes that are not used: %s.", where, ", ".join(unused))
    return chosen


def _row(line: str, width: int, here: str) -> list[str]:
    if line[0] == "{":
        raise InputError(f"{here}: a sparse row ({shown(line)}). Save the file with all values in each row.")
    quoted = _QUOTED.match(line)
    if quoted and width == 2 and not any(mark in line[quoted.end() :] for mark in "'\"\\"):
        rest = line[quoted.end() :].split(",")  # a long field and its label, without a look at each character
        row = [quoted[0][1:-1], *(field.strip() for field in rest[1:])] if not rest[0].strip() else []
    else:
        row = line.split(",") if not any(mark in line for mark in "'\"\\") else list(fields(line, here))
    if len(row) != width:
        raise InputError(
            f"{here}: {len(row)} fields, the header has {width} attributes. Is the line cut or joined with "
            "another, or a value with a comma not in quotes?"
        )
    return row


def _as_series(row: list[str], series: list[int], head: ArffHead, here: str) -> bytes:
    """The values as a .ts file has them: channels joined by ':', values by ','."""
    if head.attributes[series[0]].kind == "relational":
        text = row[series[0]].replace("\\n", "\n").strip("\n")
        joined, spelled = text.replace("\n", ":"), text
    else:
        joined = spelled = ",".join(row[at] for at in series)
    if ":" in spelled:
        raise InputError(f"{here}: found ':' where numbers belong, in {shown(spelled[:200])}.")
    return joined.encode()


def _label(label: str, known: tuple[str, ...], here: str) -> str:
    label = label.strip() if label not in known else label
    if not label or label == "?":
        raise InputError(f"{here}: the case has no class ({label!r}). Every case needs one, or none has.")
    if known and label not in known:
        listed = ", ".join(map(repr, known[:10])) + (", …" if len(known) > 10 else "")
        raise InputError(
            f"{here}: the class {shown(label)} is not one of the attribute's, which has {listed}. "
            "Add it there, or mend the row; upper and lower case differ."
        )
    return label

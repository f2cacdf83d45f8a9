"""The facts of a Collection as rows of a table, as columns of classes, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from tsattn.data.csvtext import listed

if TYPE_CHECKING:
    from tsattn.data.describe import Facts, Sampling

MOST_CLASSES = 60
"""Rows of the table of classes; the rest is counted in one line."""


def facts_table(parts: Mapping[str, Facts], leaks: int | None) -> Table:
    """One column a part. leaks: cases of the test part that stand in the training part, None if unknown."""
    table = Table(show_header=len(parts) > 1)
    table.add_column("", style="bold")
    for part in parts:
        table.add_column(part, overflow="fold")
    for name, cell in (
        ("cases", lambda facts: f"{facts.cases:,}"),
        ("channels", lambda facts: _channels(facts.channels)),
        ("lengths (min–median–max)", lengths_in_words),
        ("missing values", lambda facts: share(facts.missing)),
        ("constant channels", lambda facts: escape(listed(facts.constant)) or "none"),
        ("empty channels", lambda facts: escape(listed(facts.empty))),
        ("cases with nothing observed", lambda facts: escape(listed(facts.unobserved))),
        ("infinite values", lambda facts: f"{facts.infinite:,}" if facts.infinite else ""),
        ("duplicated cases", _duplicates),
    ):
        cells = [cell(facts) for facts in parts.values()]
        if any(cells):
            table.add_row(name, *cells)
    if leaks is not None:
        blank = [""] * (len(parts) - 1)
        table.add_row("also in train", *blank, f"[bold red]{leaks:,}[/]" if leaks else "0")
    return table


def class_table(parts: Mapping[str, Facts]) -> Table | None:
    """Cases and share of every class in every part; None where no part has labels."""
    counts = {part: facts.classes for part, facts in parts.items() if facts.classes is not None}
    if not counts:
        return None
    names = list(dict.fromkeys(name for classes in counts.values() for name in classes))
    table = Table()
    table.add_column(f"class ({len(names)})", style="bold", overflow="fold")
    for part in counts:
        table.add_column("cases" if part == "all" else part, justify="right")
        table.add_column("share", justify="right")
    for name in names[:MOST_CLASSES]:
        cells = []
        for classes in counts.values():
            count = classes.get(name, 0)
            cells += [f"{count:,}", share(count / max(sum(classes.values()), 1))]
        table.add_row(escape(name), *cells)
    if len(names) > MOST_CLASSES:
        table.add_row(f"… and {len(names) - MOST_CLASSES} more")
    return table


def facts_document(facts: Facts) -> dict[str, Any]:
    """The facts for a program; shares from 0 to 1."""
    return {
        "cases": facts.cases,
        "channels": list(facts.channels),
        "lengths": {"min": facts.shortest, "median": facts.median, "max": facts.longest},
        "missing": facts.missing,
        "classes": facts.classes,
        "imbalance": facts.imbalance,
        "constant_channels": list(facts.constant),
        "empty_channels": list(facts.empty),
        "unobserved_cases": list(facts.unobserved),
        "infinite_values": facts.infinite,
        "duplicated_cases": [list(group) for group in facts.twins],
        "contradicting_cases": [list(group) for group in facts.contradictions],
    }


def lengths_in_words(facts: Facts) -> str:
    """One number if all cases are of one length."""
    if facts.shortest == facts.longest:
        return str(facts.longest)
    return f"{facts.shortest}–{facts.median:g}–{facts.longest}"


def sampling_in_words(sampling: Sampling) -> str:
    """Period and gaps, as a person says them."""
    words = f"{_seconds(sampling.period) if sampling.seconds else f'{sampling.period:g}'} a step"
    words += ", even" if sampling.even else ", uneven"
    if sampling.gaps:
        words += f"; {counted(sampling.gaps, 'gap')} of more than 1.5 steps"
        words += f", in {counted(sampling.gap_cases, 'case')}"
    return words


def share(part: float) -> str:
    """A share from 0 to 1 in percent; what is not nothing is not called 0."""
    if part == 0:
        return "0 %"
    return f"{100 * part:.1f} %" if part >= 5e-4 else "< 0.1 %"


def counted(number: int, word: str) -> str:
    """The number with its word, of one or of many; for words that take an s."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def size_in_words(size: int) -> str:
    """Bytes in a unit that leaves few digits."""
    number, unit = float(size), "B"
    for larger in ("kB", "MB", "GB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.3g} {unit}" if number < 1000 else f"{number:,.0f} {unit}"


def _channels(names: tuple[str, ...]) -> str:
    shown = names if len(names) <= 4 else (*names[:2], "…", names[-1])
    return f"{len(names):,} ({escape(', '.join(shown))})"


def _duplicates(facts: Facts) -> str:
    if not facts.duplicates:
        return "none"
    words = f"{facts.duplicates:,} ({escape(listed(' = '.join(group[:4]) for group in facts.twins[:3]))}"
    words += ", …)" if len(facts.twins) > 3 else ")"
    if facts.contradictions:
        words += f", [bold red]{len(facts.contradictions):,} with different labels[/]"
    return words


def _seconds(period: float) -> str:
    for unit, length in (
        ("d", 86400.0),
        ("h", 3600.0),
        ("min", 60.0),
        ("s", 1.0),
        ("ms", 1e-3),
        ("µs", 1e-6),
    ):
        if period >= length:
            return f"{period / length:g} {unit}"
    return f"{period * 1e9:g} ns"

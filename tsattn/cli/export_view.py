"""An exported model file as tables for a person, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from tsattn.cli import console
from tsattn.cli.facts import size_in_words

if TYPE_CHECKING:
    from tsattn.export.measure import Figures, Measured
    from tsattn.export.parity import Parity
    from tsattn.export.workflow import Exported


def draw_export(exported: Exported) -> None:
    """Parity by length, what was measured, a fitted temperature, then where the file is."""
    facts = exported.card.export
    console.show(_parity_table(exported.parity, facts["dtype"]))
    console.show(measured_table(exported.measured))
    if (fitted := exported.calibration) is not None:
        console.show(
            f"temperature {fitted.temperature:.3f}, fitted on {escape(fitted.origin)}: expected calibration "
            f"error there {_percent(fitted.error_before)} before, {_percent(fitted.error_after)} after"
        )
    console.show(
        f"{escape(str(exported.path))}  {exported.size / 1e6:.2f} MB, {facts['dtype']}, opset "
        f"{facts['opset']}, onnxruntime {facts['onnxruntime']} or newer"
    )


def measured_table(measured: Measured) -> Table:
    """Each form of the model on the same cases."""
    table = Table(
        title=f"On {escape(measured.origin)}, {measured.cases:,} cases",
        caption=f"{measured.forms[-1].what} against {measured.forms[-2].what}: largest difference "
        f"{measured.difference:.1e}, changed classes {measured.changed} of {measured.cases}",
    )
    for heading in ("", "size", "accuracy", "calibration error", "cases/s"):
        table.add_column(heading, justify="right" if heading else "left")
    for form in measured.forms:
        table.add_row(*_cells(form))
    return table


def _cells(form: Figures) -> tuple[str, ...]:
    size = "" if form.size is None else size_in_words(form.size)
    speed = f"{form.cases_per_second:,.0f}"
    return form.what, size, _percent(form.accuracy), _percent(form.calibration_error), speed


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"


def _parity_table(parity: Parity, dtype: str) -> Table:
    table = Table(title="torch against ONNX Runtime" + ("" if dtype == "fp32" else f" in {dtype}"))
    for heading in ("series", "length", "batches", "largest difference", "changed classes"):
        table.add_column(heading, justify="left" if heading in ("series", "batches") else "right")
    for what in dict.fromkeys(one.what for one in parity.comparisons):
        same = [one for one in parity.comparisons if one.what == what]
        table.add_row(
            what,
            str(same[0].length),
            ", ".join(str(one.cases) for one in same),
            f"{max(one.difference for one in same):.1e}",
            f"{sum(one.changed for one in same)} of {sum(one.cases for one in same)}",
        )
    return table


def export_document(exported: Exported) -> dict[str, Any]:
    """For --json."""
    parity, facts = exported.parity, exported.card.export
    return {
        "file": str(exported.path),
        "bytes": exported.size,
        "dtype": facts["dtype"],
        "opset": facts["opset"],
        "onnxruntime": facts["onnxruntime"],
        "largest_difference": parity.difference,
        "cases": parity.cases,
        "changed_classes": parity.changed,
        "comparisons": [vars(one) for one in parity.comparisons],
        "measured": {**exported.measured.to_dict(), "drop": exported.measured.drop},
        "temperature": exported.card.temperature,
        "calibration": exported.card.calibration or None,
        "unknown_below": exported.card.unknown_below or None,
    }

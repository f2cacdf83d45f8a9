"""`tsattn show`: what a trained model says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsattn.cli.options import AsJson
from tsattn.errors import looking_at

if TYPE_CHECKING:
    from rich.table import Table

    from tsattn.card import ModelCard

BEFORE_IT_WAS_NOTED = {"dtype": "fp32", "opset": 20, "onnxruntime": "1.18"}
"""Of a model file whose card says nothing of it."""


def show(
    model: Annotated[
        Path,
        typer.Argument(metavar="RUN_OR_ONNX", help="Run folder or model file (.onnx).", show_default=False),
    ],
    as_json: AsJson = False,
) -> None:
    """Show what a model file or a run is: classes, input, how it was made, how good it is.

    Nothing is computed, and no code of a run is run.
    """
    from tsattn.cli import console

    card, size = _card_and_size(model)
    if as_json:
        console.show_json(document(model, card, size))
    else:
        console.show(_table(model, card, size))


def _card_and_size(model: Path) -> tuple[ModelCard, int]:
    with looking_at(model):
        is_run = model.is_dir()
    if is_run:
        from tsattn.runs import read_card
        from tsattn.runs.files import WEIGHTS

        return read_card(model), sum(file.stat().st_size for file in model.rglob(WEIGHTS))
    from tsattn.inference.session import open_model

    return open_model(model, "cpu").card, model.stat().st_size


def document(model: Path, card: ModelCard, size: int) -> dict[str, Any]:
    """For --json. Shares are from 0 to 1; what is not known is null."""
    file = None if model.is_dir() else {**BEFORE_IT_WAS_NOTED, **card.export}
    return {
        "model": str(model),
        "kind": "run" if file is None else "model file",
        "bytes": size,
        "trained_on": card.source,
        "classes": list(card.classes),
        "input": {"name": "values", "axes": ["cases", len(card.channels), "timepoints"], "type": "float32"},
        "output": {"name": "probabilities", "axes": ["cases", len(card.classes)], "type": "float32"},
        "channels": list(card.channels),
        "lengths": dict(zip(("min", "median", "max"), card.lengths, strict=True)),
        "preparation": card.preparation or None,
        "attention": card.attention,
        "tokens": card.tokens,
        "preset": card.preset,
        "protocol": card.protocol,
        "test": card.test or None,
        "dtype": "fp32" if file is None else file["dtype"],
        "opset": None if file is None else file["opset"],
        "onnxruntime": None if file is None else file["onnxruntime"],
        "measured": card.export.get("measured"),
        "temperature": card.temperature,
        "calibration": card.calibration or None,
        "unknown_below": card.unknown_below or None,
        "versions": card.versions,
        "fingerprint": card.fingerprint,
    }


def _table(model: Path, card: ModelCard, size: int) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, title=escape(str(model)), title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, words in _rows(document(model, card, size)).items():
        if words:
            table.add_row(name, escape(words))
    return table


def _rows(facts: dict[str, Any]) -> dict[str, str]:
    """What a person reads, in words; '' for what there is nothing to say of."""
    from tsattn.cli.facts import size_in_words

    classes, channels = facts["classes"], facts["channels"]
    lengths = list(facts["lengths"].values())
    return {
        "trained on": facts["trained_on"],
        f"{len(classes)} classes": _some(classes),
        "input": f"values: cases × {len(channels)} channels × timepoints, float32, NaN where not observed",
        "output": f"probabilities: cases × {len(classes)} classes, float32",
        f"{len(channels)} channels": _some(channels),
        "lengths seen": "–".join(map(str, lengths if lengths[0] != lengths[-1] else lengths[:1])),
        "preparation": ", ".join(f"{name} {value}" for name, value in (facts["preparation"] or {}).items()),
        "attention": facts["attention"],
        "tokens": facts["tokens"],
        "preset": facts["preset"],
        "protocol": facts["protocol"],
        "on the test split": _accuracy(facts["test"]),
        "this file": _measured(facts["measured"], facts["dtype"]),
        "temperature": _temperature(facts),
        "unknown below": "" if facts["unknown_below"] is None else f"{facts['unknown_below']:g}",
        "computes in": facts["dtype"],
        "size": size_in_words(facts["bytes"]),
        "opset": "" if facts["opset"] is None else str(facts["opset"]),
        "onnxruntime": "" if facts["onnxruntime"] is None else f"{facts['onnxruntime']} or newer",
        "made with": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        "fingerprint": facts["fingerprint"][:16],
    }


def _some(names: list[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names) - most} more)" if len(names) > most else "")


def _accuracy(test: dict[str, Any] | None) -> str:
    if test is None:
        return "not measured: `tsattn eval RUN`, then export again"
    return f"accuracy {100 * test['accuracy']:.2f} %, {test['cases']:,} cases"


def _measured(measured: dict[str, Any] | None, dtype: str) -> str:
    if measured is None:
        return ""
    before, after = measured["forms"][-2:]
    told = f"{measured['changed']} of {measured['cases']:,} classes differ from {before['what']}"
    if after["accuracy"] is None or before["accuracy"] is None:
        return told
    return f"accuracy {100 * after['accuracy']:.2f} % on {measured['origin']} ({dtype}); {told}"


def _temperature(facts: dict[str, Any]) -> str:
    fitted = facts["calibration"]
    if fitted is None:
        return ""
    before, after = 100 * fitted["error_before"], 100 * fitted["error_after"]
    return (
        f"{facts['temperature']:.3f}, fitted on {fitted['origin']}: expected calibration error "
        f"{before:.2f} % before, {after:.2f} % after"
    )

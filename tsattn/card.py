"""ModelCard: what a trained model says of itself, carried by run folders and model files alike."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tsattn.errors import InputError

CARD_FORMAT = 1
BEST_ON_TEST = "best-on-test"
"""Begins the protocol of a model whose epoch TEST has chosen, so that TEST says nothing of new cases."""
EACH = "each: "
"""Before the protocol of an ensemble's members."""


def chosen_on_test(protocol: str) -> bool:
    """Whether TEST has chosen the epoch of a model, or of the members of an ensemble, with that protocol."""
    return (protocol.partition(EACH)[2] or protocol).startswith(BEST_ON_TEST)


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """Everything a predictor needs to know beside the weights; JSON in the ONNX key `tsattn`.

    classes: labels in original spelling, in the order of the columns of `probabilities`.
    channels: channel names in the order of the input's second axis.
    attention, tokens, preset: the words the model was built from.
    lengths: shortest, median and longest length of the training cases, in timepoints.
    mean, std: (channels,) of the training cases, as the graph applies them.
    least, greatest: (channels,) of the values of the training cases, and missing: the largest share of
        values that one of them lacks within its length; empty and None where an older tsattn trained.
    source: what it was trained on, as typed; registry: the user's file that names it, as typed, if one
        was; table: column roles of that source (`layout`, `id`, `time`, `label`), empty for sources that
        are no tables.
    majority: the most frequent class of the training cases, the baseline to beat.
    preparation: how recordings became cases (`resample`, `window`, `stride`), empty if they were.
    protocol: how the weights were chosen. test: metrics on the test split once measured, else empty.
    fingerprint: of the training cases. versions: packages that made it.
    export: of a model file its `dtype`, `opset`, smallest `onnxruntime` and what it was measured to be; empty
        for a run, and for a file of before these were noted, which is fp32 in opset 20.
    temperature: what the graph divides logits by; calibration: how it was found, empty where it is 1.
    unknown_below: a case whose highest probability is less is labelled `unknown`; 0 for none.
    """

    classes: tuple[str, ...]
    channels: tuple[str, ...]
    attention: str
    tokens: str
    preset: str
    lengths: tuple[int, int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    source: str
    protocol: str
    fingerprint: str
    majority: str = ""
    registry: str = ""
    least: tuple[float, ...] = ()
    greatest: tuple[float, ...] = ()
    missing: float | None = None
    table: dict[str, str] = field(default_factory=dict)
    preparation: dict[str, int] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    export: dict[str, Any] = field(default_factory=dict)
    temperature: float = 1.0
    calibration: dict[str, Any] = field(default_factory=dict)
    unknown_below: float = 0.0
    format: int = CARD_FORMAT

    def to_json(self) -> str:
        """One JSON object; keys are the field names."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, where: str) -> ModelCard:
        """Reads `to_json`'s text. InputError naming `where` if it is another format or incomplete."""
        try:
            raw = json.loads(text)
            if raw["format"] != CARD_FORMAT:
                raise InputError(
                    f"{where}: model card of format {raw['format']}, this tsattn reads format "
                    f"{CARD_FORMAT}. Export the model again with this version."
                )
            lists = {k: raw[k] for k in ("classes", "channels", "lengths", "mean", "std")}
            lists |= {k: raw.get(k, []) for k in ("least", "greatest")}
            if strange := [name for name, values in lists.items() if not isinstance(values, list)]:
                raise TypeError(f"{strange[0]} is no list")
            tuples = {name: tuple(values) for name, values in lists.items()}
            card = cls(**{**raw, **tuples})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{where}: the model card cannot be read ({error}).") from None
        if wrong := next((name for name, holds in _checks(card) if not holds), None):
            shown = repr(getattr(card, wrong))
            raise InputError(
                f"{where}: the model card cannot be read: {wrong} is {shown[:60]}{'…' * (len(shown) > 60)}, "
                "which no tsattn has written. Export the run again."
            )
        return card


def _checks(card: Any) -> Iterator[tuple[str, bool]]:
    """Each field of a card that may hold anything, with whether it holds what it should."""
    width = len(card.channels)
    words = ("attention", "tokens", "preset", "source", "protocol", "fingerprint", "majority", "registry")
    for name in words:
        yield name, isinstance(getattr(card, name), str)
    yield "channels", width > 0
    for name in ("classes", "channels"):
        yield name, all(isinstance(word, str) for word in getattr(card, name))
    yield "classes", 0 < len(set(card.classes)) == len(card.classes)
    yield "lengths", len(card.lengths) == 3 and all(isinstance(x, int) for x in card.lengths)
    for name in ("mean", "std", "least", "greatest"):
        numbers = getattr(card, name)
        yield name, len(numbers) in (0, width) and all(isinstance(x, (int, float)) for x in numbers)
    for name in ("table", "preparation", "test", "versions", "export", "calibration"):
        yield name, isinstance(getattr(card, name), dict)
    yield "table", all(isinstance(word, str) for word in card.table.values())
    yield "export", isinstance(card.export.get("measured") or {}, dict)
    yield "missing", card.missing is None or _is_number(card.missing)
    yield "temperature", _is_number(card.temperature) and card.temperature > 0
    yield "unknown_below", _is_number(card.unknown_below) and 0 <= card.unknown_below < 1


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)

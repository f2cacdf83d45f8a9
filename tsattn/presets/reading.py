"""Presets: recipes in YAML, by name or in a user's own file, where every fault has its line."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, get_type_hints

from tsattn.config import EnsembleConfig, ModelConfig, Rules, TrainingConfig
from tsattn.errors import InputError
from tsattn.presets.values import called, read_value, shortened

LARGEST = 1 << 20
"""Bytes of a file; a recipe has a few hundred."""
SECTIONS: dict[str, type[Any]] = {
    "model": ModelConfig,
    "training": TrainingConfig,
    "rules": Rules,
    "ensemble": EnsembleConfig,
}
_ELSEWHERE = {
    "channels": "the data say how many channels there are",
    "classes": "the data say how many classes there are",
    "seed": "a seed belongs to a run and not to a recipe: type --seed N",
}
_FLAGS = {"lr": "learning_rate", "val-fraction": "validation", "val_fraction": "validation"}


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A recipe: values for fields of the configurations in SECTIONS; what it leaves out is not there.

    name: as typed, of a preset or a file. places: FILE:LINE of every value that is set, by field.
    """

    name: str
    summary: str
    model: dict[str, Any]
    training: dict[str, Any]
    rules: dict[str, Any] = field(default_factory=dict)
    ensemble: dict[str, Any] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def values(self) -> dict[str, Any]:
        """All that it sets, by field; no two sections have one of the same name."""
        return {name: value for section in SECTIONS for name, value in getattr(self, section).items()}


def preset_names() -> tuple[str, ...]:
    """Names of the presets that ship with tsattn, sorted."""
    folder = resources.files("tsattn.presets")
    return tuple(sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml")))


def is_file(preset: str) -> bool:
    """Whether what a user typed is the path of a file: it ends in .yaml or .yml or has a slash."""
    return preset.endswith((".yaml", ".yml")) or "/" in preset or os.sep in preset


def preset_text(preset: str) -> str:
    """The YAML of a preset as it is written. InputError where there is no such name or file."""
    if is_file(preset):
        return _read_file(preset)
    if preset in preset_names():
        return resources.files("tsattn.presets").joinpath(f"{preset}.yaml").read_text("utf-8")
    near = difflib.get_close_matches(preset, preset_names(), n=1, cutoff=0.4)
    beside = [f"{preset}{end}" for end in (".yaml", ".yml") if Path(f"{preset}{end}").is_file()]
    hint = "".join(f" Did you mean '{meant}'?" for meant in (beside or near)[:1])
    names = ", ".join(preset_names())
    raise InputError(
        f"preset '{preset}': there is none.{hint} There are: {names}. A file of your own ends in .yaml."
    )


def load_preset(preset: str) -> Preset:
    """The preset of that name, or in that file. InputError with file and line for any mistake in it."""
    return parse_preset(preset, preset_text(preset))


def parse_preset(preset: str, text: str) -> Preset:
    """What `load_preset` makes of this text, which is that of the name or file."""
    shown = preset if is_file(preset) else f"{preset}.yaml"
    reading = _Reading(shown)
    nodes = reading.entries(_composed(text, shown), ("summary", "preset", *SECTIONS))
    summary = reading.value("summary", nodes.pop("summary", None), str) or ""
    base = reading.base(nodes.pop("preset", None))
    found = {name: reading.section(name, nodes.get(name)) for name in SECTIONS}
    merged = {name: {**getattr(base, name, {}), **found[name]} for name in SECTIONS}
    places = {
        **(base.places if base else {}),
        **{key: reading.place(key) for s in found.values() for key in s},
    }
    for name, cls in SECTIONS.items():
        _refuse_what_the_class_refuses(cls, merged[name], places, shown)
    return Preset(name=preset, summary=summary, places=places, **merged)


class _Reading:
    """One file while it is read. shown: how messages call it."""

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.lines: dict[str, int] = {}

    def place(self, key: str) -> str:
        return f"{self.shown}:{self.lines[key]}"

    def entries(self, node: Any, allowed: tuple[str, ...], whose: str = "the preset") -> dict[str, Any]:
        """Value nodes of a mapping by key, whose keys are all allowed and there once."""
        import yaml

        found: dict[str, Any] = {}
        if not isinstance(node, yaml.MappingNode):
            what, line = called(node), node.start_mark.line + 1
            raise InputError(
                f"{self.shown}:{line}: {whose} is {what}; expected lines such as "
                + (
                    "'model:' and, indented below it, 'width: 64'."
                    if whose == "the preset"
                    else "'key: value'."
                )
            )
        for key, value in node.value:
            line = key.start_mark.line + 1
            word = key.value if isinstance(key, yaml.ScalarNode) else called(key)
            if word in found:
                first = self.lines[word]
                raise InputError(
                    f"{self.shown}:{line}: {word} stands here again, first in line {first}. Keep one."
                )
            if word not in allowed:
                raise InputError(
                    f"{self.shown}:{line}: unknown key '{shortened(word)}' in {whose}. {_hint(word, allowed)}"
                )
            self.lines[word] = line
            found[word] = value
        return found

    def section(self, name: str, node: Any) -> dict[str, Any]:
        """Checked values of `model:` or `training:`; none where it is absent or empty."""
        if node is None or called(node) == "empty":
            return {}
        hints = get_type_hints(SECTIONS[name])
        allowed = tuple(word for word in hints if word not in _ELSEWHERE)
        nodes = self.entries(node, allowed, f"'{name}:'")
        return {key: self.value(key, value, hints[key]) for key, value in nodes.items()}

    def value(self, key: str, node: Any, hint: Any) -> Any:
        """A value of that type, None where there is no node."""
        if node is None:
            return None
        try:
            return read_value(key, node, hint)
        except ValueError as error:
            raise InputError(f"{self.place(key)}: {error}") from None

    def base(self, node: Any) -> Preset | None:
        """The preset that this one begins with, if it names one."""
        name = self.value("preset", node, str)
        if name is None:
            return None
        if is_file(name):
            names = ", ".join(preset_names())
            raise InputError(
                f"{self.place('preset')}: preset is {name}; expected one of {names}, and no file."
            )
        try:
            return load_preset(name)
        except InputError as error:
            raise InputError(f"{self.place('preset')}: {error}") from None


def _read_file(name: str) -> str:
    try:
        with Path(name).expanduser().open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        names = ", ".join(preset_names())
        raise InputError(
            f"preset {name}: there is no such file. Presets with a name are {names}; `tsattn preset show "
            "base > my.yaml` begins a file of your own."
        ) from None
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody and a path with \0 are the last two
        raise InputError(f"preset {name}: cannot be read ({getattr(error, 'strerror', error)}).") from None
    if len(content) > LARGEST:
        raise InputError(f"preset {name}: more than 1 MiB, so no preset; expected a few lines of YAML.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{name}:{line}: not UTF-8 text. Save the file as UTF-8.") from None


def _composed(text: str, shown: str) -> Any:
    """The root node: nothing is constructed yet, so that nothing is lost."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise InputError(f"{shown}: nested too deep for a preset.") from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise InputError(f"{shown}:{line}: a character that YAML does not allow.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if error.context_mark and mark and mark.index >= len(text):  # a quote that is never closed
            mark = error.context_mark
        line = mark.line if mark else 0
        if r"'\t'" in str(error.problem):
            raise InputError(f"{shown}:{line + 1}: a tab, which YAML does not take. Write spaces.") from None
        raise InputError(
            f"{shown}:{line + 1}: this is no YAML ({error.problem}). A line is 'key: value'."
        ) from None
    except (ValueError, OverflowError):
        raise InputError(f"{shown}: this is no YAML (an escape names no character).") from None
    if root is None:
        raise InputError(f"{shown}: the preset is empty; expected 'model:' and below it, e.g., 'width: 64'.")
    return root


def _hint(word: str, allowed: tuple[str, ...]) -> str:
    if word in _ELSEWHERE:
        return f"It cannot be set here: {_ELSEWHERE[word]}."
    other = next((name for name, cls in SECTIONS.items() if word in get_type_hints(cls)), None)
    if other is not None:
        return f"It belongs below '{other}:'."
    near = [_FLAGS[word]] if word in _FLAGS else difflib.get_close_matches(word, allowed, n=1)
    return f"Did you mean '{near[0]}'?" if near and near[0] in allowed else f"Known: {', '.join(allowed)}."


def _refuse_what_the_class_refuses(
    cls: type[Any], values: dict[str, Any], places: Mapping[str, str], shown: str
) -> None:
    """What fits its type and range may still be refused by the configuration itself."""
    missing = (dataclasses.MISSING, dataclasses.MISSING)
    needed = {f.name: 2 for f in dataclasses.fields(cls) if (f.default, f.default_factory) == missing}

    def refusal(given: dict[str, Any]) -> str | None:
        try:
            cls(**{**needed, **given})
        except (InputError, TypeError, ValueError) as error:
            return str(error)
        return None

    why = refusal(values)
    if why is not None:
        without = ({name: value for name, value in values.items() if name != key} for key in values)
        guilty = [key for key, rest in zip(values, without, strict=True) if refusal(rest) is None]
        raise InputError(f"{places[guilty[0]] if guilty else shown}: {why}")

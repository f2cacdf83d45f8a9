"""Run folders below a folder: what was run, with what, what it came to. No model is read, no code run."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsattn.config import RunConfig
from tsattn.errors import InputError
from tsattn.runs import held, is_finished
from tsattn.runs.files import (
    CODE,
    CONFIG,
    ENVIRONMENT,
    HISTORY,
    MEMBERS,
    METRICS,
    SPLIT,
    STATE,
    TRACKING,
    WEIGHTS,
)
from tsattn.sweeps.cell import CELL

FILES = {CELL, CODE, CONFIG, ENVIRONMENT, HISTORY, MEMBERS, METRICS, SPLIT, STATE, TRACKING, WEIGHTS}
FILES |= {"tensorboard", "wandb"}
"""What may lie in a run folder and goes with it."""


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """A run folder, its models left where they are.

    metrics, environment: as written, empty where they are not yet. finished: whether training has ended.
    when: the last change, UTC.
    """

    path: Path
    config: RunConfig
    metrics: dict[str, Any]
    environment: dict[str, Any]
    finished: bool
    when: datetime

    def accuracy(self, part: str) -> float | None:
        """On 'train', 'validation' or 'test', None where it was not measured."""
        found = self.metrics.get(part)
        return found.get("accuracy") if isinstance(found, dict) else None

    def summary(self) -> dict[str, Any]:
        """A row of the list; ready for JSON."""
        model, training = self.config.model, self.config.training
        return {
            "run": str(self.path),
            "data": self.config.source,
            "attention": model.attention,
            "tokens": model.tokens,
            "seed": training.seed,
            "preset": self.config.preset,
            "validation": self.accuracy("validation"),
            "test": self.accuracy("test"),
            "epoch": self.metrics.get("epoch"),
            "epochs": self.metrics.get("epochs", training.epochs),
            "parameters": self.metrics.get("parameters"),
            "seconds": self.metrics.get("seconds"),
            "protocol": self.config.protocol,
            "finished": self.finished,
            "when": self.when.isoformat(timespec="seconds"),
        }

    def document(self) -> dict[str, Any]:
        """All that is known of it; ready for JSON."""
        return {
            "run": str(self.path),
            "finished": self.finished,
            "when": self.when.isoformat(timespec="seconds"),
            "config": dataclasses.asdict(self.config),
            "metrics": self.metrics,
            "environment": self.environment,
        }


def is_run(path: Path) -> bool:
    """Whether this is a run folder, finished or not."""
    return (path / CONFIG).is_file() and (path / SPLIT).is_file()


def find_runs(folder: Path) -> Iterator[Path]:
    """Run folders at or below `folder`, in the order of names. InputError where there is no such folder."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. `tsattn train SOURCE` makes one, below runs/.")
    for place, inside, _ in os.walk(folder):
        path = Path(place)
        if is_run(path):
            inside.clear()
            yield path
        else:
            inside[:] = sorted(name for name in inside if not name.startswith("."))


def survey(path: Path) -> Surveyed:
    """Reads a run folder. InputError for what is none, or has a file that cannot be read."""
    if not is_run(path):
        what = "not a run folder" if path.is_dir() else "no such run folder"
        raise InputError(f"{path}: {what}. `tsattn runs list DIR` shows those below a folder.")
    try:
        text = (path / CONFIG).read_text("utf-8")
        changed = max(file.stat().st_mtime for file in path.iterdir() if file.is_file())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path / CONFIG}: cannot be read ({error}).") from None
    return Surveyed(
        path=path,
        config=RunConfig.from_yaml(text, str(path / CONFIG)),
        metrics=_json(path / METRICS),
        environment=_json(path / ENVIRONMENT),
        finished=is_finished(path),
        when=datetime.fromtimestamp(changed, UTC),
    )


def differences(first: Surveyed, second: Surveyed) -> dict[str, dict[str, tuple[Any, Any]]]:
    """By config, environment and metrics: what is not the same, by dotted name, as (first, second)."""
    one, other = first.document(), second.document()
    found = {}
    for part in ("config", "environment", "metrics"):
        was, now = flat(one[part]), flat(other[part])
        names = [*was, *(name for name in now if name not in was)]
        found[part] = {n: (was.get(n), now.get(n)) for n in names if was.get(n) != now.get(n)}
    return found


def flat(values: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
    """Nested values by dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{inside}{name}.")
        else:
            found[f"{inside}{name}"] = value
    return found


def check_removable(path: Path) -> None:
    """InputError for anything but one whole run folder that is no link and holds nothing but its run."""
    if path.is_symlink():
        raise InputError(f"{path}: a link. Only run folders themselves are deleted.")
    survey(path)
    for place, inside, _ in os.walk(path):
        if nested := next((Path(place) / name for name in inside if is_run(Path(place) / name)), None):
            raise InputError(f"{path}: holds another run, {nested}. Move or delete that first.")
    if other := next((one for one in sorted(path.iterdir()) if not _is_of_a_run(one)), None):
        raise InputError(f"{other}: not a file of a run. Move it out of the folder and type this again.")


def remove(path: Path) -> None:
    """Deletes a run folder, at once as far as anybody sees. InputError where it is being trained."""
    check_removable(path)
    path = path.resolve()
    hidden = path.with_name(f".{path.name}.removed-{os.getpid()}")
    try:
        with held(path):
            path.rename(hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        raise InputError(f"{path}: cannot be deleted ({error.strerror or error}).") from None


def _is_of_a_run(place: Path) -> bool:
    """Whether training, judging, export, trackers or a sweep put it into a run folder."""
    return place.name in FILES or place.suffix == ".onnx" or place.name.startswith(".")


def _json(place: Path) -> dict[str, Any]:
    try:
        found = json.loads(place.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: not readable as JSON ({error}).") from None
    return found if isinstance(found, dict) else {}

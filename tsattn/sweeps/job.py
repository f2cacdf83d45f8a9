"""What the process of a cell is told, and what every cell says beside its figures."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsattn.config import EnsembleConfig
from tsattn.presets.reading import load_preset
from tsattn.sweeps.cell import Kind
from tsattn.training.protocols import parse_protocol

if TYPE_CHECKING:
    from tsattn.data.columns import TableOptions
    from tsattn.data.sources import LoadedSplit
    from tsattn.training.holdout import Holding

PACKAGES = ("aeon", "numpy", "scikit-learn", "torch")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A cell to be computed, as it travels to its process.

    folder: the cell's. lock: a file that is held meanwhile. word: of the attention or baseline, as typed.
    asked: values by field, with those of the grid. threads: as typed, None for as many as pay, of which
    there may be `cores`.
    """

    folder: str
    lock: str
    data: str
    source: str
    method: str
    kind: Kind
    word: str
    seed: int
    preset: str
    protocol: str
    device: str
    threads: int | None
    cores: int
    grid: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    table: dict[str, str] = field(default_factory=dict)
    registry: str = ""
    allow_code: bool = False

    def to_json(self) -> str:
        """On one line."""
        return json.dumps(dataclasses.asdict(self))

    @property
    def folds(self) -> int:
        """Into how many parts TRAIN is divided, each held out in turn; 0 where TEST judges."""
        return parse_protocol(self.protocol).folds

    def crossed(self, cases: int) -> str:
        """How kfold:K judges, in words."""
        return f"kfold:{self.folds}: each part of {cases} cases of TRAIN held out in turn, TEST not read"

    @property
    def members(self) -> int:
        """Models of which one is made; 1 where the preset makes no ensemble."""
        return self._ensemble.members

    def each(self) -> dict[str, Job]:
        """The trainings of an ensemble's members, by the names of their folders."""
        ensemble, found = self._ensemble, {}
        for place, seed in enumerate(ensemble.seeds(self.seed)):
            tokens = self.asked.get("tokens") or ensemble.tokens_of(place)
            asked = self.asked if tokens is None else {**self.asked, "tokens": tokens}
            found[f"seed{seed}"] = dataclasses.replace(self, seed=seed, asked=asked)
        return found

    def held_out_of(self, member: int) -> Holding:
        """What the member, counted from 0, is not trained on."""
        from tsattn.training.holdout import BY_SHARE, Holding

        if not self.parts:
            return BY_SHARE
        return Holding(fold=(member, self.parts), together=self._ensemble.seeds(self.seed)[0])

    @property
    def parts(self) -> int:
        """Of TRAIN, each held out from one member; 0 where nothing is, or else is typed what is."""
        if self.protocol != "auto" or self.asked.get("validation") is not None:
            return 0
        return self._ensemble.parts

    def first(self, place: Path) -> Path:
        """The run folder of the model at `place`, of an ensemble that of its first member."""
        return place if self.members == 1 else place / f"seed{self._ensemble.seeds(self.seed)[0]}"

    @property
    def _ensemble(self) -> EnsembleConfig:
        return EnsembleConfig(**load_preset(self.preset).ensemble)

    @property
    def place(self) -> Path:
        """The cell's folder."""
        return Path(self.folder)

    def split(self, name: str) -> LoadedSplit:
        """TRAIN or TEST of the data."""
        from tsattn.data.sources import load_split

        return load_split(self.source, "train" if name == "train" else "test", self.roles, self.own)

    @property
    def roles(self) -> TableOptions:
        """The columns, as typed."""
        from tsattn.data.columns import TableOptions

        return TableOptions.of(self.table)

    @property
    def own(self) -> Path | None:
        """The user's registry, if one was typed."""
        return Path(self.registry) if self.registry else None


def now() -> str:
    """ISO time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Of PACKAGES."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}

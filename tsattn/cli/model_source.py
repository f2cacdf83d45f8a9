"""The labelled data that a trained model is judged on or looked at with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tsattn.card import ModelCard
    from tsattn.data.columns import TableOptions
    from tsattn.data.sources import LoadedSplit


def read_split(
    card: ModelCard,
    source: str | None,
    split: Literal["test", "train"],
    typed: TableOptions,
    registry: Path | None,
) -> LoadedSplit:
    """The cases of `split` of `source`, or of what the model was trained on if that is None.

    typed: column roles as typed; the card's complete them. Of a model trained on windows the label may
    change within a recording, as in training. Errors as `load_split` raises them.
    """
    from tsattn.cli import console
    from tsattn.cli.fetching import fetch_visibly
    from tsattn.data.sources import load_split

    place = source if source is not None else card.source
    if place == card.source and registry is None and card.registry:
        registry = Path(card.registry)
    if "window" in card.preparation:
        typed = replace(typed, label_of="timepoint")
    fetch_visibly(place, registry)
    with console.working(f"reading {place}"):
        return load_split(place, split, _roles(place, typed, card), registry)


def _roles(place: str, typed: TableOptions, card: ModelCard) -> TableOptions:
    """The columns as typed, completed by those of training as far as this data has them."""
    from tsattn.data.columns import TableOptions
    from tsattn.data.heads import is_table
    from tsattn.inference.pipeline import roles_of

    if place == card.source:
        said = {name: value for name, value in vars(typed).items() if value is not None}
        return replace(TableOptions.of(card.table), **said)
    path = Path(place)
    return roles_of(path, typed, card) if card.table and path.is_file() and is_table(path) else typed

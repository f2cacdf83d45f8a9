"""Trainings that `tsattn train` does one after the other: seeds, parts of a cross-validation, refit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsattn.errors import InputError

if TYPE_CHECKING:
    from tsattn.training.preparing import Prepared
    from tsattn.training.protocols import Protocol
    from tsattn.training.several import Several


def train_several(choices: Mapping[str, Any], protocol: Protocol, several: Several, *, as_json: bool) -> None:
    """A run folder for each seed and part beside one another, then what they come to together.

    choices: keyword arguments of `prepare_visibly`. Finished runs are not repeated and stopped ones are gone
    on with, so typing the same again completes what was stopped.
    """
    from tsattn.cli import console
    from tsattn.cli.training_view import show_trained
    from tsattn.runs.writing import write_members
    from tsattn.training.settling import settle
    from tsattn.training.several import check_place, summary
    from tsattn.training.workflow import Trained

    seeds, ensemble = several.seeds, several.ensemble
    if ensemble and protocol.name == "kfold":
        raise InputError(
            "--ensemble makes one model of seeds, and the runs of kfold are for judging. Leave one away."
        )
    first = _prepare(of_seed(choices, several, seeds[0]), protocol, seeds[0], fold=0)
    if choices["asked"]["batch_size"] is not None:  # what 'auto' finds for the first holds for all
        size = first.config.training.batch_size
        choices = {**choices, "asked": {**choices["asked"], "batch_size": size}}
    folder = choices["out"] or _common_folder(first, protocol, seeds)
    one = len(seeds) == 1 and not protocol.folds and not ensemble
    check_place(folder, several=not one)
    if one:
        train_one(choices, protocol, seeds[0], 0, folder)
        show_trained(Trained.read(folder), as_json)
        return
    names = []
    for seed in seeds:
        for fold in range(max(1, protocol.folds)):
            parts = [f"seed{seed}"] if len(seeds) > 1 or not protocol.folds else []
            parts += [f"part{fold + 1}"] if protocol.folds else []
            names.append("-".join(parts))
            console.remark(f"— {names[-1]}, {len(names)} of {len(seeds) * max(1, protocol.folds)}")
            train_one(of_seed(choices, several, seed), protocol, seed, fold, folder / names[-1])
    settled = settle(folder, names) if several.parts else None
    write_members(folder, names, ensemble=ensemble, settled=settled)
    found = {**summary(folder, names), **({} if settled is None else {"settled": asdict(settled)})}
    if as_json:
        console.show_json({"runs": str(folder), "ensemble": ensemble, **found})
    else:
        _draw(folder, found, ensemble=ensemble)


def train_one(choices: Mapping[str, Any], protocol: Protocol, seed: int, fold: int, out: Path) -> None:
    """Trains to `out` what is not trained there yet; refit first trains beside it to find its epochs."""
    from tsattn.cli import console
    from tsattn.cli.training_view import run_visibly
    from tsattn.training.several import at

    if protocol.name == "refit":
        prepared = _refitted(choices, seed, out)
    else:
        prepared = _prepare(choices, protocol, seed, fold)
    if (beginning := at(prepared, out)) is None:
        console.remark(f"{out}: finished already")
    else:
        run_visibly(beginning, more=True)


def _refitted(choices: Mapping[str, Any], seed: int, out: Path) -> Prepared:
    """All of TRAIN for as many epochs as were best on held-out cases."""
    from tsattn.runs.files import METRICS
    from tsattn.training.protocols import Protocol
    from tsattn.training.several import as_refit

    search = out.with_name(f"{out.name}-search")
    train_one(choices, Protocol(name="holdout"), seed, 0, search)
    epochs = json.loads((search / METRICS).read_text("utf-8"))["epoch"]
    asked = {**choices["asked"], "epochs": epochs, "validation": None}
    whole = {**choices, "asked": asked, "holding": {}}
    return as_refit(_prepare(whole, Protocol(name="last"), seed, 0), epochs, search)


def of_seed(choices: Mapping[str, Any], several: Several, seed: int) -> Mapping[str, Any]:
    """The choices as they are for one of several seeds."""
    asked = {**choices["asked"], "seed": seed}
    if seed in several.tokens:
        asked["tokens"] = several.tokens[seed]
    return {**choices, "asked": asked, "holding": {**choices["holding"], **several.part_of(seed)}}


def _prepare(choices: Mapping[str, Any], protocol: Protocol, seed: int, fold: int) -> Prepared:
    from tsattn.cli.training_view import prepare_visibly

    holding = {**choices["holding"], "fold": (fold, protocol.folds)} if protocol.folds else choices["holding"]
    word = f"kfold:{protocol.folds}" if protocol.folds else protocol.name
    return prepare_visibly(
        **{
            **choices,
            "asked": {**choices["asked"], "seed": seed},
            "holding": holding,
            "protocol": "holdout" if word == "refit" else word,
            "out": None,
        }
    )


def _common_folder(prepared: Prepared, protocol: Protocol, seeds: list[int]) -> Path:
    """runs/NAME-SPEC-…, the same for the same command, so that it goes on there."""
    words = [prepared.stem]
    words += [f"kfold{protocol.folds}"] if protocol.folds else []
    words += ["refit"] if protocol.name == "refit" else []
    words += [
        f"seeds{'_'.join(map(str, seeds))}" if seeds != list(range(len(seeds))) else f"{len(seeds)}seeds"
    ]
    return Path("runs") / "-".join(words)


def _draw(folder: Path, found: Mapping[str, Any], *, ensemble: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    parts = [part for part in ("train", "validation") if part in found["accuracy"]]
    table = Table()
    table.add_column("run")
    for heading in ("epoch", *(f"{part} accuracy" for part in parts), "seconds"):
        table.add_column(heading, justify="right")
    for member in found["members"]:
        shares = [f"{100 * member[part]['accuracy']:.2f} %" for part in parts]
        table.add_row(member["name"], str(member["epoch"]), *shares, f"{member['seconds']:.1f}")
    table.add_section()
    table.add_row("mean", "", *(f"{100 * found['accuracy'][p]['mean']:.2f} %" for p in parts), "")
    if len(found["members"]) > 1:
        table.add_row("std", "", *(f"{100 * found['accuracy'][p]['std']:.2f}" for p in parts), "")
    console.show(table)
    what = "one model of them all" if ensemble else "a run folder each"
    if "settled" in found:
        of = found["settled"]
        right = f"{of['cases']} cases held out from one member each: {100 * of['accuracy']:.2f} % right"
        console.show(f"{right}; transformers count {of['say']:.2f}, temperature {of['temperature']:.2f}")
    console.show(f"{found['seconds']:.1f} s, written to {escape(str(folder))}, {what}")
    console.remark(f"protocol {found['members'][0]['protocol']}")

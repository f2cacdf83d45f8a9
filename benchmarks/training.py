"""How fast tsattn trains: beside a bare loop of the same model, and beside the loop as others publish it.

    python benchmarks/training.py JapaneseVowels SelfRegulationSCP1.zip SpokenArabicDigits.zip
    python benchmarks/training.py --attention bn+sh --tokens multiscale --patience 10 JapaneseVowels
    python benchmarks/training.py --profile JapaneseVowels                where the time of a step goes

(a) tsattn: `fit` as `tsattn train` calls it, with all that it does between and in its steps.
(b) bare: the same model, the same batches lying ready, the same optimiser; no shuffling, no clipping, no
    metrics, no schedule. It is the limit.
(c) as published: a linear projection with learned positions, torch's nn.TransformerEncoder of the same size,
    dropout 0.1 everywhere and so in the attention weights, every case padded to the set's longest under a
    key padding mask, a DataLoader, RAdam, clipping at 4, a head over all timepoints, loss.item() each step.

Width 128, 8 heads, 3 layers. (a) and (b) have softmax attention and linear tokens, so that all three are
models of one size, or the words of --attention and --tokens; their dropout is tsattn's. In a cell (a set, a
batch size, a number of threads) the three take short turns, so that a busy machine slows all alike; figures
are medians over rounds, ratios are taken within a round. A turn of (a) and (b) is whole epochs where these
are short and some steps where they are long; its first step, in which an optimiser is made, does not count
unless there are few. (c) sits out a round where its turn would take the cell past its --patience, and where
a batch is too much for memory or patience it takes halves of it: its work is per case, so that its samples
a second stay about the same, and the table says so. Threads sleep while they wait, as tsattn sets it by
itself, and freed memory is kept, as `tsattn train` does: for all three.

Prints Markdown: samples a second and ratios (one also in the seconds that CPUs worked for a loop, which other
programs disturb less), what tsattn adds to a step, and whether the project's own bars are met; writes the
figures to OUT.json. Leaves with 1 if a bar is missed.
"""

from __future__ import annotations

import tsattn  # noqa: F401 - before torch, which reads once how OpenMP's threads wait

# isort: split
import argparse
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from training_loops import HEADS, LAYERS, WIDTH, model_config
from training_profile import show_profile
from training_turns import BARE, PUBLISHED, TSATTN, Cell, measure

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.models.memory import keep_freed_memory

OF_THE_BARE = 0.92
TIMES_THE_PUBLISHED = {"JapaneseVowels": 2.5, "SelfRegulationSCP1": 6.0}
SMALL_SET, SMALL_BATCH = "JapaneseVowels", 16


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A ratio that the project asks of itself."""

    what: str
    found: float
    least: float

    @property
    def holds(self) -> bool:
        """Whether it is large enough; what was not measured is not."""
        return self.found >= self.least


def bars(cells: list[Cell]) -> list[Bar]:
    """The least ratio of all cells to the bare loop, and of each set's to the published one."""
    found = [_bar("of the bare loop", cells, BARE, OF_THE_BARE)]
    for data, least in TIMES_THE_PUBLISHED.items():
        own = [cell for cell in cells if cell.data == data]
        if own:
            found.append(_bar("times the published loop", own, PUBLISHED, least))
    return found


def _bar(what: str, cells: list[Cell], beside: str, least: float) -> Bar:
    # What was not measured is the worst.
    worst = min(cells, key=lambda cell: np.nan_to_num(cell.ratio(TSATTN, beside)))
    where = f"{worst.data}, batch {worst.batch}, threads {worst.threads}"
    return Bar(what=f"{what}, the least: {where}", found=worst.ratio(TSATTN, beside), least=least)


def show(cells: list[Cell]) -> None:
    """The table, what is halved in it, and what tsattn adds to a step of a small set."""
    print("\nsamples a second\n")
    heads = ("tsattn", "bare loop", "as published", "of the bare loop", "in CPU time", "times the published")
    print(f"| data set | batch | threads | {' | '.join(heads)} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for cell in cells:
        rates = " | ".join(short(cell.rate(loop)) for loop in (TSATTN, BARE, PUBLISHED))
        mark = "" if cell.published_batch == cell.batch else f" (batch {cell.published_batch})"
        print(
            f"| {cell.data} | {cell.batch} | {cell.threads} | {rates}{mark} "
            f"| {cell.ratio(TSATTN, BARE):.2f} | {cell.cpu_ratio(TSATTN, BARE):.2f} "
            f"| {cell.ratio(TSATTN, PUBLISHED):.1f} |"
        )
    for cell in cells:
        if (cell.data, cell.batch) == (SMALL_SET, SMALL_BATCH):
            print(f"\n{cell.data}, batch {cell.batch}, threads {cell.threads}: tsattn adds to a bare step")
            for clock, (seconds, share) in (("clock", cell.added()), ("CPUs' work", cell.added(cpu=True))):
                print(f"- by the {clock} {1e6 * seconds:.0f} µs, {100 * share:.1f} % of its own")


def short(number: float) -> str:
    """Three digits that count, without an exponent."""
    return f"{float(f'{number:.3g}'):,.10g}"


def loaded(source: str) -> tuple[str, Collection]:
    """The set's name and its training cases."""
    return Path(source).name.removesuffix(".zip"), load_split(source, "train", TableOptions()).collection


def main() -> None:
    """Measures or profiles, and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="*", default=[SMALL_SET], help="data sets by name, folder or zip")
    for word, default in (("--attention", "softmax"), ("--tokens", "linear")):
        parser.add_argument(word, default=default, help="of (a) and (b); default: %(default)s")
    parser.add_argument("--batches", default="16,64", help="cases a step, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of CPU threads, separated by commas")
    parser.add_argument("--patience", type=float, default=25.0, help="seconds of a cell, about")
    parser.add_argument("--profile", metavar="SET", help="instead: where the time of a step of this set goes")
    parser.add_argument("--out", type=Path, default=Path("runs/training"))
    options = parser.parse_args()
    batches, threads = ([int(n) for n in words.split(",")] for words in (options.batches, options.threads))
    keep_freed_memory()
    wait = os.environ["OMP_WAIT_POLICY"]
    print(
        f"{platform.machine()} CPU (threads {wait} while they wait), torch {torch.__version__}, "
        f"width {WIDTH}, {HEADS} heads, {LAYERS} layers; "
        f"(a) and (b): attention {options.attention}, tokens {options.tokens}"
    )
    if options.profile:
        name, cases = loaded(options.profile)
        model = model_config(cases, options.attention, options.tokens)
        for number in threads:
            show_profile(name, cases, model, batches[0], number)
        return
    cells = []
    for source in options.sources:
        name, cases = loaded(source)
        model = model_config(cases, options.attention, options.tokens)
        for batch in batches:
            for number in threads:
                print(f"{name}, batch {batch}, threads {number}", file=sys.stderr, flush=True)
                cells.append(measure(name, cases, model, batch, number, options.patience))
    show(cells)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    words = {"attention": options.attention, "tokens": options.tokens}
    figures = {**words, "cells": [asdict(cell) for cell in cells]}
    options.out.with_suffix(".json").write_text(json.dumps(figures, indent=1), "utf-8")
    asked = bars(cells)
    print("\n| asked | found | limit | |\n|---|---:|---:|---|")
    for bar in asked:
        print(f"| {bar.what} | {bar.found:.2f} | ≥ {bar.least:g} | {'holds' if bar.holds else 'MISSED'} |")
    sys.exit(not all(bar.holds for bar in asked))


if __name__ == "__main__":
    main()

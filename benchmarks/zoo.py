"""Accuracy, time, memory and head redundancy of several attentions under one recipe.

    python benchmarks/zoo.py train path/to/NATOPS.zip JapaneseVowels --out runs/zoo
    python benchmarks/zoo.py table --out runs/zoo > table.md

Every cell (data set, attention, seed) is trained by a process of its own on one thread: preset base without
the convolutions beside the transformer, the same number of steps for every set, the last epoch. Its run
folder lies under --out beside a file of what it cost, so that a stopped sweep goes on where it was; several
`train` may run at once. The test split is read once a cell, after training. `table` reads what is there; how
alike the heads are (means over layers) is measured on the test cases.

Seconds are CPU seconds of training, so they hold on a busy machine too. Memory is what training added to
the largest resident set of its process.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

ALIKE = ("distance", "relative_distance", "cka")
HEADINGS = ("CPU s", "MB", "head distance", "relative", "CKA")
ATTENTIONS = "softmax,linear,local,bn,sh,bn+sh"
BATCH = 16


def name_of(source: str) -> str:
    """The data set's name, from whatever was typed for it."""
    return Path(source).name.removesuffix(".zip")


def train_cell(source: str, attention: str, seed: int, steps: int, run: Path) -> None:
    """Trains one run and judges it; the body of a cell's own process."""
    from tsattn.data.columns import TableOptions
    from tsattn.data.sources import load_split
    from tsattn.evaluation.evaluate import evaluate
    from tsattn.runs import load_predictor, record_test
    from tsattn.training import preparing, workflow

    cases = len(load_split(source, "train", TableOptions()).collection)
    epochs = -(-steps // -(-cases // BATCH))
    asked = {
        "attention": attention,
        "seed": seed,
        "epochs": epochs,
        "batch_size": BATCH,
        "validation": 0.0,
        "convolutions": 0,  # attention alone is compared
    }
    prepared = preparing.prepare(
        source, asked=asked, preset="base", device="cpu", threads=1, out=run, table=TableOptions()
    )
    before, start = largest_megabytes(), time.process_time()
    workflow.train(prepared, lambda epoch: None)
    cost = {
        "data": name_of(source),
        "attention": attention,
        "seed": seed,
        "steps": steps,
        "seconds": time.process_time() - start,
        "megabytes": largest_megabytes() - before,
    }
    test = load_split(source, "test", TableOptions()).collection
    record_test(run, evaluate(load_predictor(run), test).figures())
    run.with_name(f"{run.name}.json").write_text(json.dumps(cost), "utf-8")


def largest_megabytes() -> float:
    """The largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def train(sources: list[str], attentions: list[str], seeds: int, steps: int, out: Path) -> None:
    """Every cell that is not there yet, one after the other; seeds outermost, so that a table fills."""
    out.mkdir(parents=True, exist_ok=True)
    for seed in range(seeds):
        for source in sources:
            for attention in attentions:
                run = out / re.sub(r"[^\w.+-]", "-", f"{name_of(source)}-{attention}-{seed}")
                claim = run.with_name(f"{run.name}.claim")
                try:
                    claim.touch(exist_ok=False)
                except FileExistsError:
                    continue
                words = ["cell", source, attention, str(seed), str(steps), str(run)]
                status = subprocess.run([sys.executable, __file__, *words], check=False).returncode
                if status:
                    claim.unlink()
                    sys.exit(f"{run.name}: stopped with status {status}")


def judge(cost_file: Path) -> dict[str, Any]:
    """Cost, test accuracy and head redundancy of a finished cell; the latter is kept beside it."""
    from tsattn.data.columns import TableOptions
    from tsattn.data.sources import load_split
    from tsattn.evaluation.redundancy import redundancy
    from tsattn.runs import read_run

    run = cost_file.with_suffix("")
    kept = run / "heads.json"
    if not kept.is_file():
        read = read_run(run)
        test = load_split(read.config.source, "test", TableOptions()).collection
        kept.write_text(json.dumps([asdict(layer) for layer in redundancy(read, test)]), "utf-8")
    layers = json.loads(kept.read_text("utf-8"))
    return {
        **json.loads(cost_file.read_text("utf-8")),
        "accuracy": 100 * json.loads((run / "metrics.json").read_text("utf-8"))["test"]["accuracy"],
        **{name: statistics.mean(layer[name] for layer in layers) for name in ALIKE},
    }


def table(out: Path) -> None:
    """Prints a row for each data set and attention, and the means over the sets that are complete."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(out.glob("*.json")):
        cell = judge(path)
        rows[cell["data"], cell["attention"]].append(cell)
    attentions = [name for name in ATTENTIONS.split(",") if any(name == own for _, own in rows)]
    print(f"| data set | attention | seeds | accuracy % | {' | '.join(HEADINGS)} |")
    print(f"|---|---|---:|---:|{'---:|' * len(HEADINGS)}")
    sets = list(dict.fromkeys(data for data, _ in rows))
    for data in sets:
        for name in attentions:
            if own := rows.get((data, name)):
                accuracy = [cell["accuracy"] for cell in own]
                spread = f" ± {statistics.stdev(accuracy):.2f}" if len(own) > 1 else ""
                cells = f"{statistics.mean(accuracy):.2f}{spread} | {' | '.join(figures(own))}"
                print(f"| {data} | {name} | {len(own)} | {cells} |")
    whole = [data for data in sets if all((data, name) in rows for name in attentions)]
    for name in attentions:
        own = [cell for data in whole for cell in rows[data, name]]
        means = [statistics.mean(cell["accuracy"] for cell in rows[data, name]) for data in whole]
        print(
            f"| mean of {len(whole)} | {name} | | {statistics.mean(means):.2f} | {' | '.join(figures(own))} |"
        )


def figures(cells: list[dict[str, Any]]) -> list[str]:
    """Means over cells, in the order of HEADINGS."""
    mean = {name: statistics.mean(cell[name] for cell in cells) for name in ("seconds", "megabytes", *ALIKE)}
    return [
        f"{mean['seconds']:.0f}",
        f"{mean['megabytes']:.0f}",
        *(f"{mean[name]:.3f}" for name in ALIKE),
    ]


def main() -> None:
    """Trains what is missing, or prints what is there."""
    if sys.argv[1:2] == ["cell"]:
        source, attention, seed, steps, run = sys.argv[2:]
        train_cell(source, attention, int(seed), int(steps), Path(run))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["train", "table"])
    parser.add_argument("sources", nargs="*", help="data sets by name, folder or zip")
    parser.add_argument("--attention", default=ATTENTIONS, help="specs, separated by commas")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to N-1")
    parser.add_argument("--steps", type=int, default=400, help="steps of 16 cases, the same for every set")
    parser.add_argument("--out", type=Path, default=Path("runs/zoo"))
    options = parser.parse_args()
    if options.action == "train":
        train(options.sources, options.attention.split(","), options.seeds, options.steps, options.out)
    else:
        table(options.out)


if __name__ == "__main__":
    main()

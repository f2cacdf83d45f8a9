"""Accuracy, time, memory and head redundancy of several attentions under one recipe.

    python benchmarks/zoo.py train path/to/NATOPS.zip JapaneseVowels --out runs/zoo
    python benchmarks/zoo.py table --out runs/zoo > table.md

Every cell (data set, attention, seed) is trained by a process of its own on one thread: preset base, the
same number of steps for every set, the last epoch. Its run folder lies under --out beside a file of what
it cost, so that a stopped sweep goes on where it was; several `train` may run at once. The test split is
read once a cell, after training. `table` reads what is there.

Seconds are CPU seconds of training, so they hold on a busy machine too. Memory is what training added to
the largest resident set of its process.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

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
    from tsattn.training import workflow

    cases = len(load_split(source, "train", TableOptions()).collection)
    epochs = -(-steps // -(-cases // BATCH))
    asked = {
        "attention": attention,
        "seed": seed,
        "epochs": epochs,
        "batch_size": BATCH,
        "validation": 0.0,
    }
    prepared = workflow.prepare(
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


def cells(out: Path) -> list[dict[str, Any]]:
    """What is there: cost and test accuracy of every finished cell."""
    found = []
    for path in sorted(out.glob("*.json")):
        cost = json.loads(path.read_text("utf-8"))
        metrics = json.loads((path.with_suffix("") / "metrics.json").read_text("utf-8"))
        found.append({**cost, "accuracy": 100 * metrics["test"]["accuracy"]})
    return found


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
        print(json.dumps(cells(options.out), indent=1))


if __name__ == "__main__":
    main()

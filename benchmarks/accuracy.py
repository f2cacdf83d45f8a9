"""Test accuracy of the default recipe over data sets, attentions and seeds.

    python benchmarks/accuracy.py JapaneseVowels BasicMotions --attention softmax,linear,bn,sh,bn+sh
    python benchmarks/accuracy.py path/to/Handwriting path/to/NATOPS --attention bn+sh

Every cell is a run folder under --out, trained once and then only read, so a run that was stopped
goes on where it was. The test split is read once, after training. Prints a Markdown table: mean
accuracy over the seeds, the accuracies, and the longest training in seconds.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.evaluation.evaluate import evaluate
from tsattn.runs import load_predictor, record_test
from tsattn.training import preparing, workflow


def cell(source: str, attention: str, seed: int, out: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """The metrics of one run, trained and judged if they are not there yet."""
    name = re.sub(r"[^\w.+-]", "-", f"{Path(source).name}-{attention}-{seed}")
    run = out / name
    if not run.is_dir():
        prepared = preparing.prepare(
            source,
            asked={**asked, "attention": attention, "seed": seed},
            preset="base",
            device="auto",
            threads=None,
            out=run,
            table=TableOptions(),
        )
        workflow.train(prepared, lambda epoch: None)
    metrics: dict[str, Any] = json.loads((run / "metrics.json").read_text("utf-8"))
    if "test" not in metrics:
        test = load_split(source, "test", TableOptions()).collection
        record_test(run, evaluate(load_predictor(run), test).figures())
        metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    return metrics


def main() -> None:
    """Trains what is missing and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="+", help="data sets by name, folder or zip")
    parser.add_argument(
        "--attention", default="softmax,linear,bn,sh,bn+sh", help="specs, separated by commas"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to N-1")
    parser.add_argument("--tokens", help="token word; the recipe's if not given")
    parser.add_argument("--out", type=Path, default=Path("runs/accuracy"))
    options = parser.parse_args()

    print("| data set | attention | accuracy, mean | each seed | longest training |")
    print("|---|---|---:|---|---:|")
    for source in options.sources:
        for attention in options.attention.split(","):
            runs = [
                cell(source, attention, seed, options.out, {"tokens": options.tokens})
                for seed in range(options.seeds)
            ]
            right = [100 * run["test"]["accuracy"] for run in runs]
            name = Path(source).name.removesuffix(".zip")
            each = ", ".join(f"{one:.1f}" for one in right)
            longest = max(run["seconds"] for run in runs)
            print(f"| {name} | {attention} | {np.mean(right):.2f} % | {each} | {longest:.0f} s |", flush=True)


if __name__ == "__main__":
    main()

"""Takes real archive sets through every command, in processes of their own, and shows what each said.

    python benchmarks/archive.py FOLDER        every NAME.zip of FOLDER
    python benchmarks/archive.py A.zip B.zip

For each set: data info, data inspect, train --epochs 2, eval, export onnx, predict. Prints a Markdown
table with the seconds of each command and every line on stderr that is not one of train's three remarks
or the line in which predict names the model. Leaves with 1 if a command failed or eval and predict
disagree about a single case.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

QUICK = ["--epochs", "2", "--width", "16", "--heads", "2", "--layers", "1", "--threads", "2"]
EXPECTED_REMARKS = {"train": 3, "predict": 1}


def tsattn(place: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """Runs one command; with the seconds it took."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tsattn", *words], cwd=place, capture_output=True, text=True, check=False
    )
    return done, time.perf_counter() - began


def main_job(archive: Path, place: Path) -> tuple[list[str], list[str]]:
    """The seconds of each command, and what was said that should not have been."""
    name = archive.stem
    with zipfile.ZipFile(archive) as file:
        for member in (f"{name}_TRAIN.ts", f"{name}_TEST.ts"):
            file.extract(member, place / "sets" / name)
    # In a folder of its own, since a folder called like a known set is remarked upon.
    source = f"sets/{name}"
    train, test = (f"{source}/{name}_{part}.ts" for part in ("TRAIN", "TEST"))
    seconds, faults = [], []
    for words in (
        ["data", "info", source],
        ["data", "inspect", train, test],
        ["train", source, "--out", "run", *QUICK],
        ["eval", "run", "--json"],
        ["export", "onnx", "run", "-o", "model.onnx", "--json"],
        ["predict", "model.onnx", test, "-o", "answers.csv"],
    ):
        done, took = tsattn(place, *words)
        seconds.append(f"{took:.1f}")
        remarks = done.stderr.splitlines()[EXPECTED_REMARKS.get(words[0], 0) :]
        faults += [f"{' '.join(words[:2])}: {line}" for line in remarks]
        if done.returncode:
            return seconds, [*faults, f"{' '.join(words)}: left with {done.returncode}"]
        if words[0] == "eval":
            accuracy = json.loads(done.stdout)["accuracy"]
    return seconds, faults + disagreement(place / test, place / "answers.csv", accuracy)


def disagreement(test: Path, answers: Path, accuracy: float) -> list[str]:
    """What is said if the share of right answers in the CSV is not what eval found for the run."""
    with answers.open(newline="", encoding="utf-8") as file:
        said = [row["label"] for row in csv.DictReader(file)]
    lines = test.read_text("utf-8", errors="replace").split("@data", 1)[1].splitlines()
    truth = [line.rsplit(":", 1)[1].strip() for line in lines[1:] if line.strip()]
    right = sum(one == other for one, other in zip(said, truth, strict=True)) / len(truth)
    return [] if right == accuracy else [f"predict is right in {right}, eval in {accuracy}"]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archives", nargs="+", type=Path, help="zips, or folders of zips")
    archives = [
        archive
        for given in parser.parse_args().archives
        for archive in (sorted(given.glob("*.zip")) if given.is_dir() else [given])
    ]
    failed = False
    print(
        "| data set | info | inspect | train | eval | export | predict | said on stderr beside the remarks |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for archive in archives:
        with tempfile.TemporaryDirectory() as place:
            seconds, faults = main_job(archive.resolve(), Path(place))
        failed |= any("left with" in fault or "predict is" in fault for fault in faults)
        cells = seconds + ["—"] * (6 - len(seconds))
        print(f"| {archive.stem} | {' | '.join(cells)} | {'; '.join(faults)} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()

"""`tsattn predict` beside its own stages and beside the script that people write today.

    python benchmarks/predict.py [--rows N] [--models small,larger] [--layouts wide,long]
                                 [--attention SPEC] [--tokens WORD] [--folder DIR]
    python benchmarks/predict.py --choose [--lengths 29,128,512] [--models …]

Makes a wide CSV of N cases (default 100,000) of 12 channels × 29 timepoints = 348 values a row, and a long
one of the same cases; and models with random weights, whose speed is that of trained ones: `small`, width
48 and 2 layers, about what `tsattn train JapaneseVowels --preset fast --convolutions 0` makes, and `larger`,
width 128 and 3 layers. Measures parsing, inference and writing alone, all of predict, and the script; start
to first row; and peak memory for a tenth of the rows and for all. Prints Markdown and leaves with 1 if a
bar does not hold. About five minutes for 100,000 rows on two cores.

--choose prints, for each length, which batches are fastest, and which optimisation levels and divisions of
threads; tsattn/inference/batching.py and session.py hold what was chosen.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CHANNELS, POINTS = 12, 29
SIZES = {"small": (48, 4, 2), "larger": (128, 8, 3)}
"""Width, heads and layers."""
SHARE, FIRST_ROW, MEMORY = 0.85, 0.8, 1.05
TIMES = {"small": 3.0, "larger": 1.8}
BATCHES, MOST_PAIRS, SECONDS = (1, 4, 8, 16, 32, 64, 128, 256), 1 << 23, 0.25
STAGES, MODELS = (Path(__file__).with_name(name) for name in ("predict_stages.py", "predict_models.py"))


@dataclass(kw_only=True)
class Cell:
    """Rates, cases a second, of one model on one file; first: seconds to the first row; peaks in MB."""

    model: str
    layout: str
    parse: float
    infer: float
    write: float
    whole: float
    script: float
    first: float
    short_peak: float
    long_peak: float

    @property
    def slowest(self) -> float:
        """What the slowest stage would allow if the others cost nothing."""
        return min(self.parse, self.infer, self.write)

    @property
    def possible(self) -> float:
        """What cores that are always busy allow; writing alone has one of them, the others have all."""
        cores = os.cpu_count() or 1
        return 1 / (1 / self.parse + 1 / self.infer + 1 / (cores * self.write))


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--models", default="small,larger")
    parser.add_argument("--layouts", default="wide,long")
    parser.add_argument("--attention", default="softmax")
    parser.add_argument("--tokens", default="linear")
    parser.add_argument("--folder", type=Path, help="where the files are made; default: the temporary folder")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--lengths", default="29,128,512")
    options = parser.parse_args()
    names = options.models.split(",")
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        for name in names:
            words = [str(folder / f"{name}.onnx"), *map(str, SIZES[name]), options.attention, options.tokens]
            subprocess.run(
                [sys.executable, str(MODELS), *words], check=True
            )  # torch stays out of this process
        if options.choose:
            lengths = list(map(int, options.lengths.split(",")))
            for name in names:
                choose(folder / f"{name}.onnx", name, lengths)
            return 0
        cells = []
        for layout in options.layouts.split(","):
            files = [folder / f"{layout}-{count}.csv" for count in (options.rows // 10, options.rows)]
            for file, count in zip(files, (options.rows // 10, options.rows), strict=True):
                write_cases(file, layout, count)
            cells += [measure(folder / f"{name}.onnx", name, layout, files, options.rows) for name in names]
            for file in files:
                file.unlink()
    return show(cells, options.rows)


def write_cases(path: Path, layout: str, cases: int) -> None:
    """The file; 500 different cases in turn, because formatting numbers takes longest."""
    values = np.random.default_rng(0).normal(size=(500, CHANNELS, POINTS))
    with path.open("w") as file:
        if layout == "wide":
            rows = [",".join(f"{value:.5f}" for value in case.ravel()) for case in values]
            names = ",".join(f"channel{c}_{t}" for c in range(CHANNELS) for t in range(POINTS))
            file.write(f"case,{names}\n")
            file.writelines(f"{n},{rows[n % 500]}\n" for n in range(cases))
            return
        points = [
            [f"{t}," + ",".join(f"{value:.5f}" for value in case[:, t]) for t in range(POINTS)]
            for case in values
        ]
        file.write("case,time," + ",".join(f"channel{c}" for c in range(CHANNELS)) + "\n")
        for n in range(cases):
            file.write("".join(f"{n},{point}\n" for point in points[n % 500]))


def measure(model: Path, name: str, layout: str, files: list[Path], rows: int) -> Cell:
    """All figures of one model on one file."""
    print(f"{name}, {layout} …", file=sys.stderr, flush=True)
    _, short_peak = predicted(model, files[0])
    whole, long_peak = predicted(model, files[1])
    return Cell(
        model=name,
        layout=layout,
        parse=stage("parse", model, files[1], rows),
        infer=stage("infer", model, files[1], min(rows, 30_000)),
        write=stage("write", model, files[1], rows),
        whole=whole,
        script=stage("script", model, files[1], rows),
        first=min(first_row(model, files[1]) for _ in range(5)),
        short_peak=short_peak,
        long_peak=long_peak,
    )


def stage(what: str, model: Path, file: Path, cases: int) -> float:
    """Cases a second of a fresh process."""
    words = [sys.executable, str(STAGES), what, str(model), str(file), str(cases)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    return float(said["cases"] / said["seconds"])


def predicted(model: Path, file: Path) -> tuple[float, float]:
    """Cases a second and peak resident MB of one `tsattn predict`."""
    said = file.with_suffix(".json")
    words = [
        sys.executable, "-m", "tsattn", "predict", str(model), str(file), "--id", "case", "--json",
        "-o", str(file.with_suffix(".out.csv")),
    ]  # fmt: skip
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 1, str(said), flags, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, flags, 0),
    ]
    _, status, usage = os.wait4(
        os.posix_spawn(sys.executable, words, dict(os.environ), file_actions=actions), 0
    )
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"predict {file} failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(json.loads(said.read_text("utf-8"))["cases_per_second"]), usage.ru_maxrss * unit / 1e6


def first_row(model: Path, file: Path) -> float:
    """Seconds from the start of the process to the first row of predictions."""
    words = [sys.executable, "-m", "tsattn", "predict", str(model), str(file), "--id", "case", "-o", "-"]
    start = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the header
        row = process.stdout.readline()
        seconds = time.perf_counter() - start
        process.kill()
    if not row:
        raise SystemExit(f"predict {file} failed")
    return seconds


def show(cells: list[Cell], rows: int) -> int:
    """Markdown: a table of rates, one of ratios; 1 if a bar does not hold."""
    print(f"{rows:,} cases of {CHANNELS} × {POINTS} values, {os.cpu_count()} cores. Cases a second:\n")
    print("| model | file | parse alone | inference alone | write alone | all of predict | script |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for c in cells:
        rates = " | ".join(f"{rate:,.0f}" for rate in (c.parse, c.infer, c.write, c.whole, c.script))
        print(f"| {c.model} | {c.layout} | {rates} |")
    print(
        "\n`possible`: what the cores allow if they are always busy, 1 / (1/parse + 1/inference + 1/write).\n"
    )
    print(
        f"| model | file | of the slowest stage (≥ {SHARE}) | of the possible | of the script | first row, s "
        f"(< {FIRST_ROW}) | peak MB, {rows // 10:,} and {rows:,} cases (≤ {MEMORY}) |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    failed = 0
    for c in cells:
        peak = c.long_peak / c.short_peak
        bars = (
            c.whole >= SHARE * c.slowest,
            c.whole >= TIMES[c.model] * c.script,
            c.first < FIRST_ROW,
            peak <= MEMORY,
        )
        failed += sum(not bar for bar in bars)
        of_slowest, of_script, first, memory = ("" if bar else " ✗" for bar in bars)
        print(
            f"| {c.model} | {c.layout} | {c.whole / c.slowest:.2f}{of_slowest} | "
            f"{c.whole / c.possible:.2f} | "
            f"{c.whole / c.script:.2f} (≥ {TIMES[c.model]}){of_script} | {c.first:.2f}{first} | "
            f"{c.short_peak:.0f} → {c.long_peak:.0f} = {peak:.3f}{memory} |"
        )
    return int(failed > 0)


def choose(model: Path, name: str, lengths: list[int]) -> None:
    """For each length the best rate of every batch, then of every other setting."""
    print(f"\n{name}: cases a second, with the best of the other settings\n", flush=True)
    print(f"| length | {' | '.join(f'batch {batch}' for batch in BATCHES)} |")
    print(f"|---:|{'---:|' * len(BATCHES)}")
    others: dict[tuple[int, str], float] = {}
    for length in lengths:
        best = dict.fromkeys(BATCHES, 0.0)
        for level, batch, callers, threads, rate in settings(model, length):
            best[batch] = max(best[batch], rate)
            setting = f"{level}, {callers} × {threads}"
            others[length, setting] = max(others.get((length, setting), 0.0), rate)
        rates = (f"{best[batch]:,.0f}" if best[batch] else "" for batch in BATCHES)
        print(f"| {length} | {' | '.join(rates)} |", flush=True)
    print("\n| length | level, callers × threads | cases/s |\n|---:|---|---:|")
    for (length, setting), rate in sorted(others.items(), key=lambda entry: (entry[0][0], -entry[1])):
        print(f"| {length} | {setting} | {rate:,.0f} |")


def settings(model: Path, length: int) -> Iterator[tuple[str, int, int, int, float]]:
    """(level, batch, callers, threads of each, cases a second), each measured for SECONDS."""
    import onnxruntime as ort

    cores = os.cpu_count() or 1
    generator = np.random.default_rng(0)
    for level in ("ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL"):
        for callers, threads in {(cores, 1), (1, cores), (1, 1)}:
            options = ort.SessionOptions()
            options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_{level}")
            options.intra_op_num_threads = threads
            options.enable_mem_pattern = False
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
            for batch in (batch for batch in BATCHES if batch * length**2 <= MOST_PAIRS):
                values = generator.normal(size=(batch, CHANNELS, length)).astype(np.float32)
                session.run(None, {"values": values})
                start, done = time.perf_counter(), 0
                with ThreadPoolExecutor(callers) as pool:
                    while time.perf_counter() - start < SECONDS:
                        calls = [pool.submit(session.run, None, {"values": values}) for _ in range(callers)]
                        done += sum(len(call.result()[0]) for call in calls)
                yield level, batch, callers, threads, done / (time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())

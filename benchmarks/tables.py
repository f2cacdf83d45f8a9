"""What reading a long CSV costs in time and memory, beside pandas.

    python benchmarks/tables.py [--megabytes N] [--length L] [--channels C] [--repeats R] [--folder DIR]

Makes a long table (id, time, channels, label), reads it with `read_table` and with
pandas.read_csv(engine="pyarrow"), each in a process of its own and in turns, and prints medians. Memory is
the peak of the whole process, the interpreter and its libraries with it; its ratio is over the bytes of
the Collection. Exits with 1 if tsattn takes over 1.3 times pandas' time or, from 500 MB on, where
the libraries no longer weigh, over 2.2 times the memory of the Collection.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from rich.console import Console
from rich.table import Table

MOST_TIME, MOST_MEMORY, MEMORY_COUNTS_FROM = 1.3, 2.2, 500

MEASURE = """
import json, resource, sys, time
READ
begin, used = time.perf_counter(), time.process_time()
data = read(sys.argv[1])
seconds, cpu = time.perf_counter() - begin, time.process_time() - used
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "bytes": size(data)}))
"""
TSATTN = """
from pathlib import Path
from tsattn.data.columns import TableOptions
from tsattn.data.tables import read_table
read = lambda path: read_table(Path(path), TableOptions())[0].values
size = lambda values: values.nbytes
"""
PANDAS = """
import pandas
read = lambda path: pandas.read_csv(path, engine="pyarrow")
size = lambda frame: int(frame.memory_usage().sum())
"""


def make(path: Path, megabytes: int, length: int, channels: int) -> None:
    """Writes a long table of about that size, each case of `length` rows or up to a tenth fewer."""
    generator = np.random.default_rng(0)
    names = ["id", "time", *(f"channel{i}" for i in range(channels)), "label"]
    writer = None
    case = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 10**6:
            lengths = generator.integers(max(length - length // 10, 2), length + 1, max(20_000 // length, 1))
            owner = np.repeat(np.arange(len(lengths)), lengths)
            starts = np.cumsum(lengths) - lengths
            columns = [
                pa.array(np.array([f"r{case + i}" for i in range(len(lengths))])[owner]),
                pa.array(np.arange(len(owner)) - starts[owner]),
                *(pa.array(generator.standard_normal(len(owner), np.float32)) for _ in range(channels)),
                pa.array(np.array([f"class{(case + i) % 4}" for i in range(len(lengths))])[owner]),
            ]
            batch = pa.record_batch(columns, names=names)
            writer = writer or pa_csv.CSVWriter(file, batch.schema)
            writer.write_batch(batch)
            case += len(lengths)
        if writer is not None:
            writer.close()


def measured(reader: str, path: Path) -> dict[str, float]:
    """Seconds, CPU seconds, peak bytes and bytes of the data, from a fresh process."""
    code = MEASURE.replace("READ", reader)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> int:
    """Prints one row a reader and the two ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--length", type=int, default=500)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the file is made; default: the temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        path = Path(scratch) / "long.csv"
        make(path, options.megabytes, options.length, options.channels)
        size = path.stat().st_size / 1e6
        runs = [
            {name: measured(code, path) for name, code in (("pandas", PANDAS), ("tsattn", TSATTN))}
            for _ in range(options.repeats)
        ]
    figures = {
        name: {key: median(run[name][key] for run in runs) for key in runs[0][name]} for name in runs[0]
    }
    table = Table(title=f"long CSV, {size:.0f} MB, {os.cpu_count()} cores, medians of {options.repeats}")
    for column in ("", "seconds", "CPU seconds", "peak MB", "data MB", "peak/data"):
        table.add_column(column, justify="right" if column else "left")
    for name, row in figures.items():
        peak, data = row["peak"], row["bytes"]
        table.add_row(
            name, f"{row['seconds']:.2f}", f"{row['cpu']:.2f}", f"{peak / 1e6:.0f}", f"{data / 1e6:.0f}",
            f"{peak / data:.2f}",
        )  # fmt: skip
    time = figures["tsattn"]["seconds"] / figures["pandas"]["seconds"]
    memory = figures["tsattn"]["peak"] / figures["tsattn"]["bytes"]
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(table)
    console.print(f"time: {time:.2f} of pandas' (at most {MOST_TIME})")
    console.print(
        f"memory: {memory:.2f} of the Collection (from {MEMORY_COUNTS_FROM} MB on at most {MOST_MEMORY})"
    )
    return int(time > MOST_TIME or (memory > MOST_MEMORY and size >= MEMORY_COUNTS_FROM))


if __name__ == "__main__":
    sys.exit(main())

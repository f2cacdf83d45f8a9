"""How fast tsattn reads .ts files, beside aeon.

    python benchmarks/loading.py [FILE.ts | FOLDER | NAME.zip ...] [--repeats N]

Folders and zips stand for the *_TRAIN.ts in them; without arguments, for the sets embedded in aeon.
Warm: both readers imported, in this process, taking turns. Cold: a fresh process that imports one
reader and reads the file; info: one that runs `tsattn data info` on it, with an empty cache. All figures
are medians; a ratio is aeon's time over tsattn's, for info its cold one.
Not covered: the peak of memory, and files other than .ts.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import aeon
from aeon.datasets import load_from_ts_file
from rich.console import Console
from rich.progress import track
from rich.table import Table

import tsattn
from tsattn.data.cache import LEAST_BYTES
from tsattn.data.columns import TableOptions
from tsattn.data.home import home
from tsattn.data.sources import load_file
from tsattn.data.ts import read_ts

COLD_TSATTN = "import sys, pathlib; from tsattn.data.ts import read_ts; read_ts(pathlib.Path(sys.argv[1]))"
INFO = (
    "import sys; from tsattn.cli.app import main; sys.argv = ['tsattn', 'data', 'info', sys.argv[1]]; main()"
)
COLD_AEON = "import sys; from aeon.datasets import load_from_ts_file; load_from_ts_file(sys.argv[1])"


def files(source: Path, scratch: Path) -> Iterator[Path]:
    """The .ts files that `source` stands for; those of a zip are unpacked to `scratch`."""
    if source.suffix == ".zip":
        with zipfile.ZipFile(source) as archive:
            for name in archive.namelist():
                if name.endswith("_TRAIN.ts"):
                    yield Path(archive.extract(name, scratch))
    elif source.is_dir():
        yield from sorted(source.rglob("*_TRAIN.ts"))
    else:
        yield source


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def cold(code: str, path: Path) -> None:
    """Runs `code` on the file at `path` in a fresh Python process."""
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, stdout=subprocess.DEVNULL)


def info(path: Path) -> None:
    """Runs `tsattn data info` on the file as if it had never been read."""
    shutil.rmtree(home(), ignore_errors=True)
    cold(INFO, path)


def turns(repeats: int, *runs: Callable[[], object]) -> list[float]:
    """Median seconds of each of `runs`, which take turns so that a busy machine slows all alike."""
    times = [[seconds(run) for run in runs] for _ in range(repeats)]
    return [median(column) for column in zip(*times, strict=True)]


def measure(path: Path, repeats: int, cold_repeats: int) -> list[float]:
    """Median seconds: warm aeon, warm tsattn, cold aeon, cold tsattn, info."""
    return [
        *turns(repeats, lambda: load_from_ts_file(str(path)), lambda: read_ts(path)),
        *turns(
            cold_repeats,
            lambda: cold(COLD_AEON, path),
            lambda: cold(COLD_TSATTN, path),
            lambda: info(path),
        ),
    ]


def first_and_second(path: Path, repeats: int) -> list[float]:
    """Median seconds of the first load, with an empty cache, and of the second."""

    def load() -> None:
        load_file(path, TableOptions())

    times = []
    for _ in range(repeats):
        shutil.rmtree(home(), ignore_errors=True)
        times.append([seconds(load), seconds(load)])
    return [median(column) for column in zip(*times, strict=True)]


def is_classification(path: Path) -> bool:
    """Whether the file has classes; aeon embeds regression sets too, which tsattn refuses."""
    return b"@targetlabel true" not in path.read_bytes().lower()


def main() -> None:
    """Prints one row a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    embedded = Path(aeon.__file__).parent / "datasets" / "data"
    parser.add_argument("sources", nargs="*", type=Path, default=[embedded])
    parser.add_argument("--repeats", type=int, default=7, help="turns of the warm readers; cold: a third")
    options = parser.parse_args()
    # As an installation does; without it the cold runs would measure Python's compiler.
    compileall.compile_dir(Path(tsattn.__file__).parent, quiet=1)
    table = Table(title=f"reading .ts files, medians, {os.cpu_count()} cores", header_style="bold")
    table.add_column("file")
    cold_columns = ("cold aeon s", "cold tsattn s", "cold ratio", "info s", "info ratio")
    for column in ("MB", "aeon s", "tsattn s", "ratio", *cold_columns):
        table.add_column(column, justify="right")
    again = Table(title="second load, from the cache", header_style="bold")
    again.add_column("file")
    for column in ("MB", "first s", "second s", "ratio"):
        again.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TSATTN_HOME"] = str(Path(scratch) / "home")
        paths = [path for source in options.sources for path in files(source, Path(scratch))]
        for path in track(list(filter(is_classification, paths)), "measuring", console=Console(stderr=True)):
            warm_aeon, warm, cold_aeon, cold_own, own_info = measure(
                path, options.repeats, -(-options.repeats // 3)
            )
            table.add_row(
                path.stem,
                f"{path.stat().st_size / 1e6:.2f}",
                f"{warm_aeon:.4f}", f"{warm:.4f}", f"{warm_aeon / warm:.1f}",
                f"{cold_aeon:.2f}", f"{cold_own:.2f}", f"{cold_aeon / cold_own:.1f}",
                f"{own_info:.2f}", f"{cold_aeon / own_info:.1f}",
            )  # fmt: skip
            if (size := path.stat().st_size) >= LEAST_BYTES:
                first, second = first_and_second(path, options.repeats)
                ratio = f"{first / second:.0f}"
                again.add_row(path.stem, f"{size / 1e6:.2f}", f"{first:.4f}", f"{second:.4f}", ratio)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    if again.rows:
        console.print(again)


if __name__ == "__main__":
    main()

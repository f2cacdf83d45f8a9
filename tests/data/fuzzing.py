"""Real files, spoilt in every way that happens to files, and what reading them comes to.

    python tests/data/fuzzing.py                 ten thousand and some files, on every core
    python tests/data/fuzzing.py --count 500     fewer; --seed S: others
    python tests/data/fuzzing.py --only 1234     keeps file 1234 in the working folder and shows its outcome

A file may become cases, or a TsattnError that names the file, and its line where the fault is in one.
Anything else is a fault of ours: another exception, a crash, more than 5 s, more than 1 GB.
Not covered: Parquet and Feather, whose reading is all pyarrow's.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tsattn.data.archives import Member
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.formats import parse_series
from tsattn.data.sources import embedded_folder, load_file, load_split
from tsattn.data.tables import stream_table
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import TsattnError

SECONDS = 5.0
BYTES = 1 << 30
NONE = TableOptions()


# ---- real files, cut to a size at which ten thousand are read in minutes


@dataclass(frozen=True)
class Original:
    """A file that is right. options: how a table is read. weight: how often it is taken."""

    name: str
    data: bytes
    options: tuple[TableOptions, ...] = (NONE,)
    weight: float = 1.0


def originals(folder: Path) -> list[Original]:
    """One of every form; `folder` is for scratch."""
    ts = {name: cut_ts(name, cases) for name, cases in SETS.items()}
    found = [Original(f"{name}.ts", data) for name, data in ts.items()]
    found.append(Original("stamped.ts", stamped(ts["BasicMotions"])))
    for name, data in ts.items():
        cases = parse_series(member(folder / f"{name}.ts", data))
        assert cases.labels is not None
        write_long_csv(cases, folder / "long.csv")
        write_wide_csv(cases, folder / "wide.csv")
        long, wide = ((folder / f"{form}.csv").read_bytes() for form in ("long", "wide"))
        found += [
            Original(
                f"{name}_long.csv", long, (NONE, TableOptions(layout="long"), TableOptions(layout="file"))
            ),
            Original(f"{name}_wide.csv", wide, (NONE, TableOptions(layout="wide"))),
            Original(f"{name}.arff", arff(cases)),
        ]
        if len(cases.channels) == 1:
            found += [
                Original(f"{name}.tsv", tsv(cases)),
                Original(f"{name}_comma.csv", wide.replace(b",", b";").replace(b".", b",")),
            ]
    changing = TableOptions(label_of="timepoint", group="who")
    found.append(
        Original("log.csv", log(parse_series(member(folder / "x.ts", ts["BasicMotions"]))), (changing,))
    )
    np.savez(folder / "x.npz", X=np.arange(24.0).reshape(4, 2, 3), y=np.array(["a", "b", "a", "b"]))
    found.append(Original("arrays.npz", (folder / "x.npz").read_bytes()))
    with zipfile.ZipFile(folder / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for split in ("TRAIN", "TEST"):
            archive.writestr(f"set_{split}.ts", ts["GunPoint"])
    found.append(Original("set.zip", (folder / "x.zip").read_bytes()))
    return [*found, *large(folder)]


def large(folder: Path) -> list[Original]:
    """Files of more than one block of each reader, with faults far from where a reader looks first."""
    rows = (folder / "large.ts", cut_ts("BasicMotions", 40))
    cases = parse_series(member(*rows))
    write_long_csv(cases, folder / "large.csv")
    long = (folder / "large.csv").read_bytes()
    head, mark, data = rows[1].partition(b"@data\n")
    return [
        Original("large.ts", head + mark + data * 6, weight=0.1),
        Original("large.arff", arff(cases), weight=0.1),
        Original("large_long.csv", long, weight=0.1),
        Original("large_grouped.csv", grouped(long), (TableOptions(group="who"),), weight=0.1),
    ]


def grouped(long: bytes) -> bytes:
    """A long table with a subject for every case."""
    first, *rows = long.splitlines()
    return (
        b"\n".join([b"who," + first, *(b"s" + row.split(b",")[0][:1] + b"," + row for row in rows)]) + b"\n"
    )


SETS = {"GunPoint": 6, "JapaneseVowels": 5, "BasicMotions": 4}
"""Embedded sets and how many of their cases: equal and unequal in length, with one and several channels."""


def cut_ts(name: str, cases: int) -> bytes:
    """The head of a set's file and some of its cases, of each class."""
    folder = embedded_folder(name)
    assert folder is not None
    lines = (folder / f"{name}_TRAIN.ts").read_bytes().splitlines(keepends=True)
    head = next(i for i, line in enumerate(lines) if line.strip().lower() == b"@data") + 1
    step = (len(lines) - head) // cases
    return b"".join([*lines[:head], *lines[head::step][:cases]])


def member(path: Path, data: bytes) -> Member:
    path.write_bytes(data)
    return Member(path)


def stamped(ts: bytes) -> bytes:
    """The same cases with timestamps."""
    head, mark, cases = ts.partition(b"@data\n") if b"@data\n" in ts else ts.partition(b"@data\r\n")
    lines = []
    for line in cases.splitlines():
        *series, label = line.split(b":")
        pairs = [b",".join(b"(%d,%s)" % pair for pair in enumerate(one.split(b",")[:20])) for one in series]
        lines.append(b":".join([*pairs, label]))
    return re.sub(rb"(?i)@timestamps false", b"@timeStamps true", head) + mark + b"\n".join(lines) + b"\n"


def text_of(series: np.ndarray) -> str:
    return ",".join("?" if np.isnan(value) else repr(float(value)) for value in series)


def arff(cases: Collection) -> bytes:
    """As the archives write it: attributes of numbers, or a relational one for several channels."""
    assert cases.labels is not None
    points = [f"@attribute att{i} numeric" for i in range(cases.values.shape[2])]
    classes = f"@attribute target {{{','.join(cases.classes)}}}"
    if len(cases.channels) == 1:
        head = ["@relation set", *points, classes, "@data"]
        rows = [
            text_of(case[0]) + f",{label}" for case, label in zip(cases.values, cases.labels, strict=True)
        ]
    else:
        head = [
            "% some words",
            "@relation set",
            "@attribute rel relational",
            *points,
            "@end rel",
            classes,
            "@data",
        ]
        inner = ["\\n".join(map(text_of, case)) for case in cases.values]
        rows = [f"'{case}',{label}" for case, label in zip(inner, cases.labels, strict=True)]
    return ("\n".join([*head, *rows]) + "\n").encode()


def tsv(cases: Collection) -> bytes:
    assert cases.labels is not None
    rows = [
        "\t".join([label, *("NaN" if np.isnan(value) else repr(float(value)) for value in case[0])])
        for case, label in zip(cases.values, cases.labels, strict=True)
    ]
    return ("\n".join(rows) + "\n").encode()


def log(cases: Collection) -> bytes:
    """A long table whose label changes within a case, with moments of time and a subject."""
    assert cases.labels is not None
    rows = ["id,time,label,who,x,y"]
    for case, values in enumerate(cases.values):
        for at in range(60):
            label = cases.labels[(case + at // 20) % len(cases)]
            x, y = values[:2, at]
            moment = f"2024-03-01 10:{case:02}:{at:02}.5"
            rows.append(f"r{case},{moment},{label},{'Ü' if case % 2 else 'V'},{x},{y}")
    return ("\n".join(rows) + "\n").encode()


# ---- what happens to files

Mutator = Callable[[random.Random, bytes], bytes]
NEWLINE = re.compile(rb"(?<=\n)")
NUMBER = re.compile(rb"\d+\.?\d*(?:[eE][+-]?\d+)?")
WORDS = b"1e999 -1e999 3.5e38 1e308 1e-400 0x1F inf -Infinity nan 1e --1 1.2.3 1_000 18446744073709551616 -0"
HUGE = [*WORDS.split(), b"9" * 400, b"1" + b"0" * 5000]
ODD = [bytes([code]) for code in b"\0'\",:;\t\r\n\\?{}%#@() _\x1a\x85\xff"] + [
    b"\r\n", b"\xef\xbb\xbf", b"\xc3\xa9", b"\xed\xa0\x80", b"\xe2\x80\xa8",
]  # fmt: skip
SEPARATORS = b",:;\t"


def lines_of(data: bytes) -> list[bytes]:
    return NEWLINE.split(data)


def flip_bytes(chance: random.Random, data: bytes) -> bytes:
    spoilt = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
    return bytes(spoilt)


def cut_lines(chance: random.Random, data: bytes) -> bytes:
    lines = lines_of(data)
    start = chance.randrange(len(lines))
    del lines[start : start + chance.choice([1, 1, 2, 10])]
    return b"".join(lines)


def cut_short(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


def cut_the_beginning(chance: random.Random, data: bytes) -> bytes:
    return data[chance.randrange(len(data)) :]


def head_only(chance: random.Random, data: bytes) -> bytes:
    """What stands before the first case, with or without the end of its last line."""
    lines = lines_of(data)
    begin = next((at for at, line in enumerate(lines, start=1) if line.strip().lower() == b"@data"), 1)
    return b"".join(lines[:begin]).rstrip(chance.choice([b"", b"\r\n"]))


def stray_mark(chance: random.Random, data: bytes) -> bytes:
    """A sign of a missing value that touches a number or a label."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice([b"?", b"-?", b"nan", b"nan(1)", b" ? "]) + data[at:]


def join_lines(chance: random.Random, data: bytes) -> bytes:
    lines = lines_of(data)
    for _ in range(chance.choice([1, 1, 3])):
        at = chance.randrange(len(lines))
        lines[at] = lines[at].rstrip(b"\r\n") + chance.choice([b"", b"", b",", b" "])
    return b"".join(lines)


def double_lines(chance: random.Random, data: bytes) -> bytes:
    lines = lines_of(data)
    at = chance.randrange(len(lines))
    return b"".join([*lines[: at + 1], *lines[at : at + 1] * chance.choice([1, 1, 5]), *lines[at + 1 :]])


def double_the_file(chance: random.Random, data: bytes) -> bytes:
    return data + data


def swap_lines(chance: random.Random, data: bytes) -> bytes:
    lines = lines_of(data)
    one, other = (chance.randrange(len(lines)) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def blank_line(chance: random.Random, data: bytes) -> bytes:
    lines = lines_of(data)
    lines.insert(
        chance.randrange(len(lines)), chance.choice([b"\n", b"   \n", b"\r\n", b"# words\n", b"%\n", b",\n"])
    )
    return b"".join(lines)


def split_by(chance: random.Random, data: bytes) -> bytes:
    there = [separator for separator in SEPARATORS if separator in data] or [44]
    return bytes([chance.choice(there)])


def drop_column(chance: random.Random, data: bytes) -> bytes:
    """Of every line, of some lines, or of one."""
    lines, separator = lines_of(data), split_by(chance, data)
    at = chance.randrange(max(line.count(separator) for line in lines) + 1)
    chosen = range(len(lines)) if chance.random() < 0.5 else [chance.randrange(len(lines))]
    for i in chosen:
        fields = lines[i].split(separator)
        if at < len(fields):
            lines[i] = separator.join(fields[:at] + fields[at + 1 :])
    return b"".join(lines)


def double_column(chance: random.Random, data: bytes) -> bytes:
    lines, separator = lines_of(data), split_by(chance, data)
    at = chance.randrange(max(line.count(separator) for line in lines) + 1)
    for i, line in enumerate(lines):
        fields = line.split(separator)
        lines[i] = separator.join(fields[:at] + fields[at : at + 1] + fields[at:])
    return b"".join(lines)


def empty_field(chance: random.Random, data: bytes) -> bytes:
    lines, separator = lines_of(data), split_by(chance, data)
    at = chance.randrange(len(lines))
    fields = lines[at].split(separator)
    fields[chance.randrange(len(fields))] = chance.choice([b"", b" ", b"?", b"NaN", b"x", b"NULL"])
    return b"".join([*lines[:at], separator.join(fields), *lines[at + 1 :]])


def huge_number(chance: random.Random, data: bytes) -> bytes:
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    for match in sorted(
        chance.sample(found, min(chance.choice([1, 1, 3]), len(found))), key=lambda m: -m.start()
    ):
        data = data[: match.start()] + chance.choice(HUGE) + data[match.end() :]
    return data


def odd_bytes(chance: random.Random, data: bytes) -> bytes:
    for _ in range(chance.choice([1, 1, 3])):
        at = chance.randrange(len(data) + 1)
        data = data[:at] + chance.choice(ODD) * chance.choice([1, 1, 2]) + data[at:]
    return data


def nul_bytes(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + b"\0" * chance.choice([1, 2, 4096]) + data[at + chance.choice([0, 1, 4096]) :]


def other_newlines(chance: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", chance.choice([b"\r\n", b"\r", b"\n\n", b"\n\r"]))


def other_encoding(chance: random.Random, data: bytes) -> bytes:
    return data.decode("latin-1").encode(chance.choice(["utf-16", "utf-8-sig", "utf-16-be"]))


def other_letters(chance: random.Random, data: bytes) -> bytes:
    return data.upper() if chance.random() < 0.5 else data.lower()


def long_line(chance: random.Random, data: bytes) -> bytes:
    """A line repeated into itself until it is a megabyte long."""
    lines = lines_of(data)
    at = chance.randrange(len(lines))
    line = lines[at].rstrip(b"\r\n") + chance.choice([b"", b",", b":", b"'"])
    lines[at] = line * ((1 << 20) // (len(line) + 1)) + b"\n"
    return b"".join(lines)


MUTATORS: tuple[Mutator, ...] = (
    flip_bytes, cut_lines, cut_short, cut_the_beginning, head_only, stray_mark, join_lines, double_lines,
    double_the_file, swap_lines, blank_line, drop_column, double_column, empty_field, huge_number, odd_bytes,
    nul_bytes, other_newlines, other_encoding, other_letters,
)  # fmt: skip
RARE = long_line
"""Takes a hundred times as long to read, so it comes a hundredth as often."""


@dataclass(frozen=True)
class Spoilt:
    """A file to read. how: what happened to it."""

    number: int
    name: str
    data: bytes
    options: TableOptions
    how: tuple[str, ...]


def spoil(sources: list[Original], seed: int, number: int) -> Spoilt:
    """File `number` of those that `seed` gives."""
    chance = random.Random(f"{seed}/{number}")
    source = chance.choices(sources, [source.weight for source in sources])[0]
    mutators = [RARE] if chance.random() < 0.005 else chance.sample(MUTATORS, chance.choice([1, 1, 1, 2, 3]))
    data = source.data
    for mutate in mutators:
        data = mutate(chance, data) if data else data
    return Spoilt(
        number,
        source.name,
        data,
        chance.choice(source.options),
        tuple(mutate.__name__ for mutate in mutators),
    )


# ---- what reading comes to

WITHOUT_LINE = (
    r"the file is empty|UTF-16 text\.|cannot be unpacked",
    r"columns are separated by|has decimal commas and column",
    r"no column '|column '\S+' is missing|are the same timepoint|no column with numbers is left",
    r"needs the column that names the case|a header and no rows below it|orders the rows of a case",
    r"a column '.*' and none that names the case",
    r"the zip is damaged|no zip file|no NAME_TRAIN\.ts and NAME_TEST\.ts in it|only the other split",
    r"every case has the label|are not read inside a zip|hold several data sets|holds no",
    r"cannot be read as \.npz|no array X|no X_|holds Python objects|(X|y|ids) (has the shape|holds)|X\[",
)
"""Faults of a file as a whole, and of a table's columns as a whole: the one kind that has no line."""


@dataclass(frozen=True)
class Outcome:
    """word: "cases", "error", or what is wrong with us. detail: the message or the traceback."""

    number: int
    name: str
    word: str
    detail: str
    seconds: float


def judge(spoilt: Spoilt, folder: Path) -> Outcome:
    """Reads one spoilt file in both ways that there are: whole, and for a table as a stream."""
    path = folder / spoilt.name
    path.write_bytes(spoilt.data)
    start = time.perf_counter()
    if path.suffix == ".zip":
        word, detail = _read(path, lambda: load_split(str(path), "train", spoilt.options).collection)
    else:
        word, detail = _read(path, lambda: load_file(path, spoilt.options).collection)
    if path.suffix == ".csv" and spoilt.options.label_of is None and word in ("cases", "error"):
        streamed, said = _read(path, lambda: list(stream_table(path, spoilt.options)))
        if streamed not in ("cases", "error"):
            word, detail = f"{streamed}, streamed", said
        elif streamed == "error" and word == "cases":
            word, detail = "read whole but not as a stream", said
    return Outcome(spoilt.number, spoilt.name, word, detail, time.perf_counter() - start)


def _read(path: Path, read: Callable[[], Collection | list[Collection]]) -> tuple[str, str]:
    try:
        cases = read()
    except TsattnError as error:
        return _judged(str(error), path)
    except Exception:  # noqa: BLE001 this is what is looked for
        return "another exception", traceback.format_exc()
    blocks = [cases] if isinstance(cases, Collection) else cases
    if any(np.isinf(block.values).any() for block in blocks):
        return "infinite values", ""
    return "cases", ""


def _judged(message: str, path: Path) -> tuple[str, str]:
    if path.name not in message:
        return "an error without the file", message
    if re.search(re.escape(path.name) + r":\d+", message) or any(
        re.search(one, message) for one in WITHOUT_LINE
    ):
        return "error", message
    return "an error without a line", message


# ---- many of them, each watched from outside

Judge = Callable[[Spoilt, Path], Outcome]


def _work(pipe: Connection, seed: int, numbers: list[int], judged: Judge) -> None:
    """In a process of its own: reads files and tells of each; its memory is bounded."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TSATTN_HOME"] = str(Path(scratch) / "home")
        folder = Path(scratch)
        sources = originals(folder)
        for source in sources:  # whatever is imported or started once is there before the bound
            (folder / source.name).write_bytes(source.data)
            for options in source.options:
                with contextlib.suppress(TsattnError):
                    load_file(folder / source.name, options)
        pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (pages + BYTES, pages + BYTES))
        pipe.send(None)
        for number in numbers:
            pipe.send(judged(spoil(sources, seed, number), folder))


def outcomes(
    seed: int, numbers: list[int], judged: Judge = judge, seconds: float = SECONDS
) -> Iterator[Outcome]:
    """Of all these files; a process that hangs or dies is one outcome, and the next goes on behind it."""
    context = multiprocessing.get_context("spawn")
    while numbers:
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(theirs, seed, numbers, judged), daemon=True)
        process.start()
        theirs.close()
        fate = "died"
        try:
            mine.recv()
            while numbers:
                if not mine.poll(seconds):
                    fate = f"takes more than {seconds:.0f} s"
                    break
                yield mine.recv()
                numbers = numbers[1:]
        except EOFError:
            pass
        process.kill()
        process.join()
        if numbers:
            yield Outcome(numbers[0], "", fate, f"exit code {process.exitcode}", seconds)
            numbers = numbers[1:]


def run(seed: int, count: int, processes: int) -> list[Outcome]:
    """Reads `count` spoilt files in several processes."""
    shares = [list(range(start, count, processes)) for start in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        return [
            outcome
            for share in pool.map(lambda numbers: list(outcomes(seed, numbers)), shares)
            for outcome in share
        ]


def main() -> int:
    """Runs, prints counts and faults; 1 if there are faults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="number of one file, which stays in the working folder")
    parser.add_argument("--messages", action="store_true", help="show how often each kind of error came")
    options = parser.parse_args()
    console = Console(soft_wrap=True, markup=False, highlight=False)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TSATTN_HOME"] = str(Path(scratch) / "home")
        sources = originals(Path(scratch))
        if options.only is None:
            found = run(options.seed, options.count, options.processes)
            return report(found, sources, options.seed, console, messages=options.messages)
        spoilt = spoil(sources, options.seed, options.only)
        outcome = judge(spoilt, Path.cwd())
    console.print(
        f"{spoilt.name}, {', '.join(spoilt.how)}, {spoilt.options}\n{outcome.word}: {outcome.detail}"
    )
    return int(outcome.word not in ("cases", "error"))


def report(
    found: list[Outcome], sources: list[Original], seed: int, console: Console, *, messages: bool
) -> int:
    """Prints a table of counts, then every fault; 1 if there are any."""
    table = Table("file", "cases", "errors", "faults", "longest, s")
    rows = [(one.name, [outcome for outcome in found if outcome.name == one.name]) for one in sources]
    for name, read in [*rows, ("all", found)]:
        words = Counter(outcome.word for outcome in read)
        faulty = len(read) - words["cases"] - words["error"]
        longest = max((outcome.seconds for outcome in read), default=0.0)
        table.add_row(name, str(words["cases"]), str(words["error"]), str(faulty), f"{longest:.2f}")
    faults = [outcome for outcome in found if outcome.word not in ("cases", "error")]
    console.print(table)
    if messages:
        kinds = Counter(
            re.sub(r"^\S*/|\d+|'[^']*'", "…", one.detail)[:150] for one in found if one.word == "error"
        )
        for kind, count in kinds.most_common():
            console.print(f"{count:6} {kind}")
    for outcome in faults:
        spoilt = spoil(sources, seed, outcome.number)
        console.print(f"\n{outcome.number} ({spoilt.name}, {', '.join(spoilt.how)}): {outcome.word}")
        console.print(outcome.detail.strip())
    words = Counter(outcome.word for outcome in found)
    console.print(
        f"{len(found)} files: {words['cases']} cases, {words['error']} errors, {len(faults)} faults"
    )
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

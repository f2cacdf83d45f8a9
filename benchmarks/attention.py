"""What attention costs: time and memory of every spec over the number of timepoints N, beside torch's SDPA.

    OMP_WAIT_POLICY=active python benchmarks/attention.py [--most 16384] [--out runs/attention]
    python benchmarks/attention.py --device cuda --most 65536          bfloat16, and shares of the ceilings

All specs get the same tensors q, k, v of (batch, 8 heads, N, head width) and take turns, so that a busy
machine slows all alike. In a turn a spec is called again and again, as a model calls it; times are medians
of all calls. From N = 8192 on there is one turn, of one call where that takes seconds. Forward is without
gradients; training is forward and backward. Memory is what one forward and backward adds at its peak: of
the resident set on a CPU (Linux), of torch's allocator on a GPU. The exponent is the slope of log time over
log N from N = 1024 on. On a machine of one's own threads may spin while they wait, as OMP_WAIT_POLICY says;
by itself tsattn lets them sleep, which costs each operation of two threads more.

Prints Markdown tables, whether the project's own bars are met (on a CPU), and writes a plot of forward and
training times, OUT.svg, and the figures, OUT.json. Leaves with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from attention_cost import HEADS, SDPA, Bench, Cell

from tsattn.models.attention import parts

SHORTEST, FITTED_FROM = 64, 1024


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A figure that the project asks of itself on a CPU with two threads."""

    what: str
    found: float
    limit: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure is on the right side."""
        return self.found >= self.limit if self.at_least else self.found <= self.limit


def specs() -> list[str]:
    """Every core, every wrapper around the default core, and the two new ones together."""
    return [part.name for part in parts("core")] + [part.name for part in parts("wrapper")] + ["bn+sh"]


def exponent(cells: list[Cell], figure: str) -> float:
    """Slope of log figure over log N, from FITTED_FROM on; NaN with less than two of them."""
    seen = [cell for cell in cells if cell.n >= FITTED_FROM]
    if len(seen) < 2:
        return float("nan")
    slope, _ = np.polyfit(
        np.log([cell.n for cell in seen]), np.log([max(getattr(cell, figure), 1e-9) for cell in seen]), 1
    )
    return float(slope)


def bars(cells: dict[tuple[str, int], Cell]) -> list[Bar]:
    """What the project asks for, for each of forward and training, as far as N was measured."""
    found = []
    lengths = sorted({n for _, n in cells})
    for figure in ("forward", "training"):

        def ratio(spec: str, n: int, figure: str = figure) -> float:
            return float(getattr(cells[spec, n], figure) / getattr(cells["softmax", n], figure))

        for spec, limit, shortest in (("bn", 1.10, 256), ("sh", 0.60, 1024), ("bn+sh", 0.65, 1024)):
            worst = max((n for n in lengths if n >= shortest), key=lambda n: ratio(spec, n), default=None)
            if worst is not None:
                what = f"{spec}, {figure}: largest share of softmax for N ≥ {shortest} (at {worst})"
                found.append(Bar(what=what, found=ratio(spec, worst), limit=limit))
        if 8192 in lengths:
            for spec, limit in (("linear", 10.0), ("local", 8.0)):
                what = f"{spec}, {figure}: times faster than softmax at N = 8192"
                found.append(Bar(what=what, found=1 / ratio(spec, 8192), limit=limit, at_least=True))
    for spec, figure in (("linear", "forward"), ("linear", "training"), ("local", "megabytes")):
        own = [cell for (name, _), cell in cells.items() if name == spec]
        found.append(Bar(what=f"{spec}, {figure}: exponent", found=exponent(own, figure), limit=1.15))
    return found


def show(cells: list[Cell], bench: Bench) -> None:
    """The tables: milliseconds, growth, memory; on a GPU the shares of the ceilings too."""
    lengths = sorted({cell.n for cell in cells})
    by_spec = {
        name: [cell for cell in cells if cell.spec == name] for name in dict.fromkeys(c.spec for c in cells)
    }
    heads = " | ".join(f"{n:,}" for n in lengths)
    for figure, unit, factor in (("forward", "ms", 1e3), ("training", "ms", 1e3), ("megabytes", "MB", 1)):
        print(f"\n{figure if figure != 'megabytes' else 'memory of training'}, {unit}\n")
        print(f"| spec | {heads} | exponent |\n|---|{'---:|' * (len(lengths) + 1)}")
        for name, own in by_spec.items():
            row = " | ".join(short(factor * getattr(cell, figure)) for cell in own)
            print(f"| {name} | {row} | {exponent(own, figure):.2f} |")
    arithmetic, memory = bench.ceilings()
    ceilings = f"{arithmetic / 1e12:.3g} Tflop/s and {memory / 1e9:.3g} GB/s"
    print(f"\nforward at N = {lengths[-1]:,}, shares of {ceilings}\n")
    print("| spec | arithmetic | memory |\n|---|---:|---:|")
    for name, own in by_spec.items():
        last = own[-1]
        moved = 4 * bench.batch * HEADS * last.n * bench.dim * bench.dtype.itemsize  # q, k, v and the output
        print(
            f"| {name} | {100 * last.flops / last.forward / arithmetic:.1f} % "
            f"| {100 * moved / last.forward / memory:.1f} % |"
        )


def short(number: float) -> str:
    """Three digits that count, without an exponent."""
    return f"{float(f'{number:.3g}'):,.10g}"


def plot(cells: list[Cell], path: Path, title: str) -> None:
    """Times over N, both axes logarithmic."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
    names = list(dict.fromkeys(cell.spec for cell in cells))
    for panel, kind in zip(panels, ("forward", "training"), strict=True):
        for place, name in enumerate(names):
            own = [cell for cell in cells if cell.spec == name]
            style = {"color": "black", "linestyle": ":"} if name == SDPA else {"color": f"C{place - 1}"}
            panel.loglog(
                [c.n for c in own],
                [1e3 * getattr(c, kind) for c in own],
                marker=".",
                label=name,
                base=2,
                **style,
            )
        panel.set_yscale("log", base=10)
        panel.set_title(kind)
        panel.set_xlabel("timepoints N")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("milliseconds")
    panels[1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    figure.suptitle(title)
    figure.savefig(path)


def main() -> None:
    """Measures, prints, plots."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4, help="cases in a batch")
    parser.add_argument("--width", type=int, default=16, help="of a head")
    parser.add_argument("--most", type=int, default=16384, help="the largest N")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="seconds a spec and N, at least three turns"
    )
    parser.add_argument("--specs", help="instead of all, separated by commas; softmax is always among them")
    parser.add_argument("--out", type=Path, default=Path("runs/attention"))
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing was measured")
        return
    torch.set_num_threads(options.threads)
    names = list(dict.fromkeys(["softmax", *(options.specs.split(",") if options.specs else specs())]))
    bench = Bench(torch.device(options.device), options.batch, options.width)
    cells: list[Cell] = []
    n = SHORTEST
    while n <= options.most:
        print(f"N = {n}", file=sys.stderr, flush=True)
        cells += bench.measure(n, names, options.patience)
        n *= 2
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"{platform.machine()} CPU"
    wait = os.environ["OMP_WAIT_POLICY"]
    threads = "" if options.device == "cuda" else f", {options.threads} threads ({wait} while they wait)"
    title = (
        f"{name}{threads}, {str(bench.dtype).removeprefix('torch.')}, batch {options.batch}, "
        f"{HEADS} heads of width {options.width}, torch {torch.__version__}"
    )
    print(title)
    show(cells, bench)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    plot(cells, options.out.with_suffix(".svg"), title)
    options.out.with_suffix(".json").write_text(
        json.dumps({"title": title, "cells": [asdict(cell) for cell in cells]}, indent=1), "utf-8"
    )
    if options.device == "cpu" and options.most >= FITTED_FROM * 2 and not options.specs:
        asked = bars({(cell.spec, cell.n): cell for cell in cells})
        print("\n| asked on a CPU with two threads | found | limit | |\n|---|---:|---:|---|")
        for bar in asked:
            sign = "≥" if bar.at_least else "≤"
            verdict = "holds" if bar.holds else "MISSED"
            print(f"| {bar.what} | {bar.found:.2f} | {sign} {bar.limit:g} | {verdict} |")
        sys.exit(not all(bar.holds for bar in asked))


if __name__ == "__main__":
    main()

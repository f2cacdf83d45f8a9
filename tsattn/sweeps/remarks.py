"""What a reader of a comparison must know beside its figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tsattn.sweeps.cell import Cell
from tsattn.sweeps.comparison import Method


def notes(
    cells: Mapping[Method, Sequence[Cell]],
    lacking: Mapping[str, Sequence[str]],
    sets: Sequence[str],
    common: Sequence[str],
    without: Sequence[str] = (),
) -> Iterator[str]:
    """Sentences, the most needed first.

    cells: by method, none of what was published. lacking: data sets without a score, by ranked method.
    without: methods whose cells all failed.
    """
    own = [cell for some in cells.values() for cell in some]
    yield from _crossed(cells)
    if without:
        yield f"All cells failed of {', '.join(without)}, which therefore has no column."
    yield from _left_out(lacking, sets, common)
    yield from _standing(cells)
    yield from _runs(own)
    yield from _unlike(own)


def _crossed(cells: Mapping[Method, Sequence[Cell]]) -> Iterator[str]:
    """What figures without TEST mean, where there are some."""
    crossed = [method for method in cells if method.standing == "cross-validated"]
    if not crossed:
        return
    folds = cells[crossed[0]][0].folds
    how = (
        f"cross-validated on TRAIN: each of {folds} parts was held out in turn and answered by a model that "
        "was trained on the others, and a figure is of all these cases together"
    )
    if crossed[0].ranked:
        yield f"The figures are {how}. TEST was not read; they choose a recipe, and are no results on TEST."
        if any(not of for of in cells.values()):
            yield "Published figures are on TEST, so they are not ranked beside these."
    else:
        yield f"§ {how[0].upper()}{how[1:]}; not ranked beside figures on TEST."


def _left_out(
    lacking: Mapping[str, Sequence[str]], sets: Sequence[str], common: Sequence[str]
) -> Iterator[str]:
    if len(common) < len(sets):
        nowhere = [name for name in sets if all(name in of for of in lacking.values())]
        lacks = {label: [name for name in of if name not in nowhere] for label, of in lacking.items()}
        said = [f"no method has one on {', '.join(nowhere)}"] if nowhere else []
        said += [f"{label} lacks {', '.join(of)}" for label, of in lacks.items() if of]
        who = "; ".join(said)
        yield (
            f"Means, ranks, tests and costs are over {len(common)} of {len(sets)} data sets, those on which "
            f"every ranked method has a score: {who}."
        )


def _standing(cells: Mapping[Method, Sequence[Cell]]) -> Iterator[str]:
    for standing, mark, why in (
        ("best-on-test", "†", "TEST has chosen the epoch, so the figure flatters"),
        ("unknown", "‡", "what we have does not say how the epoch was chosen"),
    ):
        of = [method for method in cells if method.standing == standing]
        if of:
            ranked = "ranked with the others, as was asked" if of[0].ranked else "not ranked with the others"
            yield f"{mark} {why}; {ranked}."
    if any(not of and method.ranked for method, of in cells.items()):
        yield "Published figures are of one run, rounded to 0.1 %; what they cost is not known."


def _runs(own: Sequence[Cell]) -> Iterator[str]:
    counted: dict[tuple[str, str], int] = defaultdict(int)
    for cell in own:
        counted[cell.data, cell.method] += 1
    least, most = min(counted.values()), max(counted.values())
    runs = f"{least} runs" if least == most else f"{least} to {most} runs"
    if most == 1:
        yield "One run a cell: how much a figure varies with the seed is not known and counts as nothing."
    else:
        one = " Of one run it is not known and counts as 0." if least == 1 else ""
        yield (
            f"Mean ± standard deviation of {runs} a cell. Bold, or * where there is none: the best of a row "
            "and what is not told apart from it, by a difference below its standard error. A tie is the same."
            f"{one}"
        )
    protocols = sorted(
        {cell.protocol.partition(":")[0] for cell in own if cell.kind == "transformer" and cell.protocol}
    )
    if len(protocols) > 1:
        yield f"Runs are of several protocols: {', '.join(protocols)}."


def _unlike(own: Sequence[Cell]) -> Iterator[str]:
    """Cells that should be alike and are not."""
    for name in sorted({cell.data for cell in own}):
        of = [cell for cell in own if cell.data == name]
        for what, found in (
            ("test cases", {cell.test_cases for cell in of} - {None}),
            ("channels", {cell.channels for cell in of} - {None}),
            ("classes", {cell.classes for cell in of} - {None}),
            ("longest cases", {cell.length for cell in of} - {None}),
        ):
            if len(found) > 1:
                numbers = ", ".join(str(number) for number in sorted(n for n in found if n is not None))
                yield f"{name}: cells have different {what} ({numbers}), so they are not of the same data."
    threads = sorted({cell.threads for cell in own if cell.threads is not None})
    if len(threads) > 1:
        yield f"Times are of runs with {', '.join(map(str, threads))} threads and do not compare."
    versions = sorted({cell.tsattn for cell in own if cell.tsattn})
    if len(versions) > 1:
        yield f"Cells were made by tsattn {', '.join(versions)}."

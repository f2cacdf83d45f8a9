"""From cells to a Comparison: columns, common data sets, what is best, how methods stand."""

from __future__ import annotations

import difflib
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tsattn.card import BEST_ON_TEST
from tsattn.errors import InputError
from tsattn.sweeps.cell import METRICS, Cell
from tsattn.sweeps.comparison import (
    LOWER_IS_BETTER,
    Comparison,
    Costs,
    DataSet,
    Failure,
    Method,
    Score,
    Standing,
    apart,
)
from tsattn.sweeps.ranks import against, friedman, friedman_sentence, mean_ranks, sentences
from tsattn.sweeps.remarks import notes

REFERENCE = "softmax"
MARKS: dict[Standing, str] = {"honest": "", "best-on-test": " †", "unknown": " ‡"}


@dataclass(frozen=True, kw_only=True)
class Column:
    """A method and its scores by data set; cells are empty for what was published."""

    method: Method
    scores: Mapping[str, Score]
    cells: tuple[Cell, ...] = ()


def compare(
    cells: Sequence[Cell],
    *,
    metric: str = "accuracy",
    reference: str | None = None,
    published: Sequence[Column] = (),
    rank_all: bool = False,
) -> Comparison:
    """The figures of `cells`, with what was published beside them.

    reference: label of a ranked method; softmax, else the first, if not given. rank_all: methods whose
    epoch TEST has chosen, or of which nobody says, are ranked too. InputError for a metric that cells lack,
    a reference that is not there, and fewer than two methods.
    """
    done = [cell for cell in cells if cell.status == "done"]
    _check_metric(done, metric)
    sets = sorted({cell.data for cell in done}, key=str.lower)
    columns = [*_own(done, metric), *_within(published, sets)]
    columns = [
        replace(one, method=replace(one.method, ranked=rank_all or one.method.standing == "honest"))
        for one in columns
    ]
    ranked = [one for one in columns if one.method.ranked]
    _check_methods(columns, ranked, cells)
    common = [name for name in sets if all(name in one.scores for one in ranked)]
    values = np.array([[one.scores[name].mean for one in ranked] for name in common]).reshape(-1, len(ranked))
    lower = metric in LOWER_IS_BETTER
    labels = [one.method.label for one in ranked]
    ranks = dict(zip(labels, mean_ranks(values, lower).tolist(), strict=True)) if common else {}
    means = dict(zip(labels, values.mean(axis=0).tolist(), strict=True)) if common else {}
    columns = sorted(columns, key=lambda one: (not one.method.ranked, ranks.get(one.method.label, 0.0)))
    base = _reference(reference, labels)
    scores = {one.method.label: [one.scores[name] for name in common] for one in columns if one.method.ranked}
    others = {label: of for label, of in scores.items() if label != base}
    compared = against(scores[base], others, lower) if common else {}
    p = friedman(values) if common else None
    return Comparison(
        metric=metric,
        data=tuple(_data_set(name, done) for name in sets),
        methods=tuple(replace(one.method, costs=_costs(one.cells, common or sets)) for one in columns),
        scores={(name, one.method.label): score for one in columns for name, score in one.scores.items()},
        common=tuple(common),
        best={name: _best(name, ranked, lower) for name in sets},
        means=means,
        ranks=ranks,
        reference=base,
        against=compared,
        friedman=p,
        says=(
            *sentences(len(common), base, compared),
            *friedman_sentence(p, len(common), len(ranked)),
        ),
        notes=tuple(
            notes(
                {one.method: one.cells for one in columns},
                {one.method.label: [name for name in sets if name not in one.scores] for one in ranked},
                sets,
                common,
            )
        ),
        failures=tuple(
            Failure(data=one.data, method=one.method, seed=one.seed, message=one.message)
            for one in cells
            if one.status == "failed"
        ),
    )


def _own(done: Sequence[Cell], metric: str) -> Iterable[Column]:
    """A column a label and standing, in the order of labels."""
    groups: dict[tuple[str, Standing], list[Cell]] = defaultdict(list)
    for cell in done:
        chosen_on_test = cell.protocol.startswith(BEST_ON_TEST)
        groups[cell.method, "best-on-test" if chosen_on_test else "honest"].append(cell)
    for (label, standing), cells in sorted(groups.items()):
        values: dict[str, list[float]] = defaultdict(list)
        for cell in sorted(cells, key=lambda cell: cell.seed):
            value = cell.metrics[metric]
            assert value is not None, cell  # as was checked
            values[cell.data].append(value)
        yield Column(
            method=Method(
                label=label + MARKS[standing],
                kind=cells[0].kind,
                standing=standing,
                protocol=", ".join(sorted({cell.protocol.partition(":")[0] for cell in cells})),
                ranked=True,
            ),
            scores={name: Score(tuple(of)) for name, of in values.items()},
            cells=tuple(cells),
        )


def _within(published: Sequence[Column], sets: Sequence[str]) -> Iterable[Column]:
    """What was published of the sets at hand; methods of which nothing was are left out."""
    for one in published:
        scores = {name: score for name, score in one.scores.items() if name in sets}
        if scores:
            yield replace(one, scores=scores)


def _check_metric(done: Sequence[Cell], metric: str) -> None:
    if metric not in METRICS:
        near = difflib.get_close_matches(metric, METRICS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise InputError(f"--metric {metric}: expected one of {', '.join(METRICS)}.{hint}")
    lacking = [cell for cell in done if cell.metrics[metric] is None]
    if lacking:
        all_have = [name for name in METRICS if all(cell.metrics[name] is not None for cell in done)]
        first = lacking[0]
        raise InputError(
            f"--metric {metric}: {len(lacking)} of {len(done)} cells have none, the first is {first.data}, "
            f"{first.method}, seed {first.seed}. All cells have {', '.join(all_have)}."
        )


def _check_methods(columns: Sequence[Column], ranked: Sequence[Column], cells: Sequence[Cell]) -> None:
    if not columns:
        first = cells[0]
        raise InputError(
            f"All {len(cells)} cells failed; the first, {first.data}, {first.method}, seed {first.seed}, "
            f"said: {first.message}"
        )
    if len(columns) < 2:
        raise InputError(
            f"There is one method only, {columns[0].method.label}: nothing to compare it with. Name more "
            "folders, or type --published to see published results beside it."
        )
    if len(ranked) < 2:
        raise InputError(
            f"Of {len(columns)} methods {len(ranked) or 'none'} can be ranked: of the others TEST has chosen "
            "the epoch, or nobody says what did. Type --best-on-test to rank them all the same."
        )


def _reference(asked: str | None, labels: Sequence[str]) -> str:
    if asked is None:
        return REFERENCE if REFERENCE in labels else labels[0]
    if asked in labels:
        return asked
    near = difflib.get_close_matches(asked, labels, n=1, cutoff=0.5)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise InputError(
        f"--reference {asked}: no such method is ranked here.{hint} There are: {', '.join(labels)}."
    )


def _best(name: str, ranked: Sequence[Column], lower: bool) -> frozenset[str]:
    there = {one.method.label: one.scores[name] for one in ranked if name in one.scores}
    if not there:
        return frozenset()
    best = (min if lower else max)(there.values(), key=lambda score: score.mean)
    return frozenset(label for label, score in there.items() if not apart(score, best))


def _data_set(name: str, done: Sequence[Cell]) -> DataSet:
    cells = [cell for cell in done if cell.data == name]
    facts = {
        fact: next((value for cell in cells if (value := getattr(cell, fact)) is not None), None)
        for fact in ("train_cases", "test_cases", "length", "channels", "classes")
    }
    return DataSet(name=name, **facts)


def _costs(cells: Sequence[Cell], sets: Sequence[str]) -> Costs:
    of = [cell for cell in cells if cell.data in sets]
    return Costs(
        parameters=_median(cell.parameters for cell in of),
        train_seconds=_median(cell.train_seconds for cell in of),
        cases_per_second=_median(cell.inference_cases_per_second for cell in of),
        peak_memory_bytes=_median(cell.peak_memory_bytes for cell in of),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None

"""From cells to a Comparison: columns, common data sets, what is best, how methods stand."""

from __future__ import annotations

import difflib
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tsattn.card import chosen_on_test
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
MARKS: dict[Standing, str] = {"honest": "", "best-on-test": " †", "unknown": " ‡", "cross-validated": " §"}


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
    epoch TEST has chosen, or of which nobody says, are ranked too. Cross-validated figures are ranked where
    there are no others of cells, and never beside figures on TEST. InputError for a metric that cells lack,
    a reference that is not there, and fewer than two methods.
    """
    done = [cell for cell in cells if cell.status == "done"]
    _check_metric(done, metric)
    folds = _folds(done)
    sets = sorted({cell.data for cell in (cells if done else ())}, key=str.lower)
    columns = [*_own(done, metric, folds), *_within(published, sets)]
    columns = [
        replace(one, method=replace(one.method, ranked=_is_ranked(one.method, folds, rank_all=rank_all)))
        for one in columns
    ]
    ranked = [one for one in columns if one.method.ranked]
    _check_methods(columns, ranked, cells, published=bool(published))
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
        folds=folds,
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
                sorted({one.method for one in cells} - {one.method for one in done}),
            )
        ),
        failures=tuple(
            Failure(data=one.data, method=one.method, seed=one.seed, message=one.message)
            for one in cells
            if one.status == "failed"
        ),
    )


def label_of(cell: Cell, folds: int) -> str:
    """What a cell's column is called. folds: of the comparison."""
    standing = _standing(cell)
    return cell.method + ("" if folds and standing == "cross-validated" else MARKS[standing])


def _standing(cell: Cell) -> Standing:
    if cell.folds:
        return "cross-validated"
    return "best-on-test" if chosen_on_test(cell.protocol) else "honest"


def _folds(done: Sequence[Cell]) -> int:
    """Of cells that are all cross-validated, 0 where TEST judged some. InputError for several numbers."""
    found = sorted({cell.folds for cell in done} - {0})
    if len(found) > 1:
        words = " and ".join(f"kfold:{folds}" for folds in found)
        raise InputError(
            f"There are cells of {words}, whose models were trained on different shares of TRAIN. "
            "Name folders of one of them."
        )
    return found[0] if found and all(cell.folds for cell in done) else 0


def _is_ranked(method: Method, folds: int, *, rank_all: bool) -> bool:
    crossed = method.standing == "cross-validated"
    if folds or crossed:
        return bool(folds) and crossed
    return rank_all or method.standing == "honest"


def _own(done: Sequence[Cell], metric: str, folds: int) -> Iterable[Column]:
    """A column a label and standing, in the order of labels."""
    groups: dict[tuple[str, Standing], list[Cell]] = defaultdict(list)
    for cell in done:
        groups[cell.method, _standing(cell)].append(cell)
    for (_, standing), cells in sorted(groups.items()):
        values: dict[str, list[float]] = defaultdict(list)
        for cell in sorted(cells, key=lambda cell: cell.seed):
            value = cell.metrics.get(metric)
            assert value is not None, cell  # as was checked
            values[cell.data].append(value)
        yield Column(
            method=Method(
                label=label_of(cells[0], folds),
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
    lacking = [cell for cell in done if cell.metrics.get(metric) is None]
    if lacking:
        all_have = [name for name in METRICS if all(cell.metrics.get(name) is not None for cell in done)]
        first = lacking[0]
        raise InputError(
            f"--metric {metric}: {len(lacking)} of {len(done)} cells have none, the first is {first.data}, "
            f"{first.method}, seed {first.seed}. All cells have {', '.join(all_have)}."
        )


def _check_methods(
    columns: Sequence[Column], ranked: Sequence[Column], cells: Sequence[Cell], *, published: bool
) -> None:
    if not columns:
        first = cells[0]
        raise InputError(
            f"All {len(cells)} cells failed; the first, {first.data}, {first.method}, seed {first.seed}, "
            f"said: {first.message}"
        )
    if len(columns) < 2:
        raise InputError(
            f"There is one method only, {columns[0].method.label}: nothing to compare it with"
            + (
                ", and nothing was published of these data sets. Name more folders."
                if published
                else ". Name more folders, or type --published to see published results beside it."
            )
        )
    if len(ranked) < 2:
        few = f"Of {len(columns)} methods {len(ranked) or 'none'} can be ranked: "
        if any(one.method.standing == "cross-validated" for one in columns):
            raise InputError(
                f"{few}figures that are cross-validated on TRAIN are not ranked beside figures on TEST. Name "
                "the folders of one kind alone."
            )
        raise InputError(
            f"{few}of the others TEST has chosen the epoch, or nobody says what did. Type --best-on-test to "
            "rank them all the same."
        )


def _reference(asked: str | None, labels: Sequence[str]) -> str:
    if asked is None:
        alike = (label for label in labels if label.startswith(f"{REFERENCE} "))  # at a point of a grid
        return REFERENCE if REFERENCE in labels else next(alike, labels[0])
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

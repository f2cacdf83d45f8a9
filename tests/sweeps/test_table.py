"""The figures of a comparison, against numpy, scipy and small cases done by hand."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sweep_figures import cell, cells, failed, rows

from tsattn.errors import InputError
from tsattn.sweeps.cell import Cell
from tsattn.sweeps.comparison import Score, apart
from tsattn.sweeps.published import published
from tsattn.sweeps.ranks import friedman, holm, wilcoxon
from tsattn.sweeps.table import compare


def table(metric: str = "accuracy") -> tuple[list[str], list[str], np.ndarray]:
    """Data sets, methods and (data sets, methods) of means over seeds, straight from the file."""
    values = defaultdict(list)
    for row in rows():
        values[row["data"], row["method"]].append(float(row[metric]))
    data, methods = (sorted({key[axis] for key in values}) for axis in (0, 1))
    means = [[statistics.fmean(values[name, method]) for method in methods] for name in data]
    return data, methods, np.array(means)


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
def test_real_figures_are_those_of_numpy_and_scipy(metric: str) -> None:
    one = compare(cells(), metric=metric)
    data, methods, means = table(metric)
    sign = 1 if metric == "log_loss" else -1
    ranks = stats.rankdata((sign * means).round(12), axis=1).mean(axis=0)
    assert one.reference == "softmax"
    assert list(one.common) == data
    for place, label in enumerate(methods):
        assert one.means[label] == pytest.approx(means[:, place].mean())
        assert one.ranks[label] == pytest.approx(ranks[place])
        difference = -sign * (means[:, place] - means[:, methods.index("softmax")])
        if label != "softmax":
            against = one.against[label]
            assert against.difference == pytest.approx(difference.mean())
            told = difference.round(12)
            assert against.p == pytest.approx(stats.wilcoxon(told[told != 0]).pvalue)
            assert against.wins + against.ties + against.losses == len(data)
    assert [one.ranks[method.label] for method in one.methods] == sorted(ranks)
    assert one.friedman == pytest.approx(stats.friedmanchisquare(*means.round(12).T).pvalue)


def test_holm_is_that_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_wilcoxon_and_friedman_at_their_edges() -> None:
    assert wilcoxon(np.zeros(5)) == 1.0
    assert wilcoxon(np.array([1e-16] * 5)) == 1.0
    assert wilcoxon(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(2 * 0.5**5)
    assert friedman(np.ones((4, 3))) == 1.0
    assert friedman(np.ones((4, 2))) is None
    assert friedman(np.ones((1, 3))) is None


def test_a_tie_is_a_difference_below_its_standard_error() -> None:
    one, near, far = Score((0.80, 0.82, 0.84)), Score((0.82, 0.83, 0.84)), Score((0.86, 0.87, 0.88))
    assert one.error == pytest.approx(0.02 / 3**0.5)
    assert not apart(one, near)
    assert apart(one, far)
    assert not apart(Score((0.5,)), Score((0.5,)))  # of one run only what is equal is a tie
    assert apart(Score((0.5,)), Score((0.501,)))


def spread(data: str, method: str, values: Sequence[float]) -> list[Cell]:
    return [cell(data, method, seed, accuracy=value) for seed, value in enumerate(values)]


def test_best_is_bold_and_so_is_what_is_not_told_apart_from_it() -> None:
    some = [
        *spread("A", "softmax", (0.80, 0.82, 0.84)),
        *spread("A", "bn", (0.82, 0.83, 0.84)),
        *spread("A", "sh", (0.70, 0.71, 0.72)),
    ]
    one = compare(some)
    assert one.best["A"] == {"softmax", "bn"}
    assert (one.against["bn"].ties, one.against["sh"].losses) == (1, 1)


def test_a_set_that_a_method_lacks_is_left_out_for_all() -> None:
    some = [cell(data, method) for data in ("A", "B", "C") for method in ("softmax", "bn", "sh")]
    some = [one for one in some if (one.data, one.method) != ("B", "sh")]
    some.append(cell("B", "bn", 1, accuracy=1.0, train_seconds=1e6))
    one = compare([*some, failed("B", "sh", "no memory left")])
    assert one.common == ("A", "C")
    assert one.means["bn"] == 0.5
    assert next(method for method in one.methods if method.label == "bn").costs.train_seconds is None
    assert any("over 2 of 3 data sets" in note and "sh lacks B" in note for note in one.notes)
    assert [(of.data, of.method, of.message) for of in one.failures] == [("B", "sh", "no memory left")]


def test_what_failed_everywhere_is_not_passed_over() -> None:
    some = [cell(data, method) for data in ("A", "B") for method in ("softmax", "bn")]
    some += [failed("C", method, "no memory left") for method in ("softmax", "bn", "sh")]
    one = compare(some)
    assert [data.name for data in one.data] == ["A", "B", "C"]
    assert one.best["C"] == frozenset()
    assert any("over 2 of 3" in note and "no method has one on C." in note for note in one.notes)
    assert any(note == "All cells failed of sh, which therefore has no column." for note in one.notes)


def test_the_reference_of_a_grid_is_softmax_at_its_first_point() -> None:
    methods = ("1nn-dtw", "bn width=8", "softmax width=8", "softmax width=16")
    assert compare([cell("A", method) for method in methods]).reference == "softmax width=16"
    assert compare([cell("A", method) for method in methods[:2]]).reference == "1nn-dtw"


def test_without_a_common_set_scores_are_shown_and_nothing_is_ranked() -> None:
    one = compare([cell("A", "softmax"), cell("B", "bn")])
    assert not one.common
    assert not one.ranks
    assert not one.against
    assert "nothing can be ranked" in one.says[0]


def test_few_data_sets_are_said_to_be_few() -> None:
    (first, _) = compare(cells()).says
    assert "5 data sets, and 5 methods are compared with softmax" in first
    assert "0.0625, after Holm's correction 0.3125" in first
    assert "takes 8 data sets" in first


def test_the_number_of_sets_that_it_takes_is_right() -> None:
    def p_of(sets: int) -> float:
        some = [
            cell(f"D{place:02d}", method, accuracy=0.5 + (method == "bn") * (place + 1) / 100)
            for place in range(sets)
            for method in ("softmax", "bn")
        ]
        return compare(some).against["bn"].p_holm

    assert p_of(5) > 0.05 >= p_of(6)
    said = compare(
        [cell(f"D{n}", m, accuracy=0.5 + n / 100 * (m == "bn")) for n in range(3) for m in ("bn", "softmax")]
    )
    assert "takes 6 data sets" in said.says[0]


def test_enough_data_sets_name_who_differs() -> None:
    some = [
        cell(f"D{place:02d}", method, accuracy=0.5 + gain * (place + 1) / 100)
        for place in range(12)
        for method, gain in (("softmax", 0.0), ("bn", 1.0), ("sh", (-1) ** place * 0.1))
    ]
    one = compare(some)
    assert any(said.startswith("bn differs from softmax") and "wins on 12 of 12" in said for said in one.says)
    assert any("Not told apart from softmax" in said and ": sh." in said for said in one.says)


@pytest.mark.parametrize("before", ["", "ensemble of 5, each: "])
def test_best_on_test_is_marked_and_ranked_only_if_asked(before: str) -> None:
    protocol = f"{before}best-on-test: epoch 3 of 40"
    flattered = [cell(data, "bn", accuracy=0.9, protocol=protocol) for data in ("A", "B")]
    some = [cell(data, method) for data in ("A", "B") for method in ("softmax", "bn")] + flattered
    honest = compare(some)
    assert "bn †" not in honest.ranks
    assert honest.best["A"] == {"softmax", "bn"}
    assert honest.methods[-1].label == "bn †"
    assert any(note.startswith("† TEST has chosen") and "not ranked" in note for note in honest.notes)
    asked = compare(some, rank_all=True)
    assert asked.methods[0].label == "bn †"
    assert asked.best["A"] == {"bn †"}


def crossed(folds: int = 5) -> list[Cell]:
    return [
        cell(data, method, accuracy=0.9, folds=folds, protocol=f"kfold:{folds}: each part")
        for data in ("A", "B")
        for method in ("softmax", "bn")
    ]


def test_cross_validated_figures_are_ranked_among_themselves_alone() -> None:
    alone = compare(crossed())
    assert (alone.folds, alone.judged) == (5, "cross-validated on TRAIN")
    assert set(alone.ranks) == {"softmax", "bn"}
    assert alone.notes[0].startswith("The figures are cross-validated on TRAIN: each of 5 parts")
    beside = [cell(data, method) for data in ("A", "B") for method in ("softmax", "sh")]
    for rank_all in (False, True):
        mixed = compare([*crossed(), *beside], rank_all=rank_all)
        assert (mixed.folds, mixed.judged) == (0, "on TEST")
        assert set(mixed.ranks) == {"softmax", "sh"}
        assert mixed.best["A"] == {"softmax", "sh"}
        assert {one.label for one in mixed.methods} == {"softmax", "sh", "softmax §", "bn §"}
        assert mixed.notes[0].startswith("§ Cross-validated on TRAIN")


def test_cross_validated_figures_are_not_ranked_beside_published_ones() -> None:
    some = [cell("Handwriting", m, folds=2, protocol="kfold:2: x") for m in ("softmax", "bn")]
    one = compare(some, published=published(), rank_all=True)
    assert set(one.ranks) == {"softmax", "bn"}
    assert any("Published figures are on TEST" in note for note in one.notes)


def test_published_results_stand_beside_ours() -> None:
    one = compare(cells(), published=published())
    by_label = {method.label: method for method in one.methods}
    assert by_label["Hydra (published)"].ranked
    assert not by_label["TimesNet (published) †"].ranked
    assert not by_label["ConvTran (published) ‡"].ranked
    assert all(method.source and method.protocol for method in one.methods if method.kind == "published")
    assert one.scores["Handwriting", "Hydra (published)"].values == (0.564,)
    assert "NATOPS" not in one.common
    assert "TimesNet (published) †" in compare(cells(), published=published(), rank_all=True).ranks


def test_what_was_published_is_whole() -> None:
    columns = published()
    assert len({column.method.label for column in columns}) == 11
    assert all(len(column.scores) == 10 for column in columns)
    assert all(0.25 < score.mean <= 1 for column in columns for score in column.scores.values())


def test_cells_that_are_not_alike_are_noted() -> None:
    some = [
        cell("A", "softmax", test_cases=10, threads=1, tsattn="1"),
        cell("A", "bn", test_cases=20, threads=2, tsattn="2", protocol="holdout: a fifth"),
    ]
    notes = " ".join(compare(some).notes)
    assert "different test cases (10, 20)" in notes
    assert "1, 2 threads" in notes
    assert "several protocols: holdout, last" in notes
    assert "tsattn 1, 2" in notes


@pytest.mark.parametrize(
    ("some", "options", "message"),
    [
        ([cell("A", "bn"), cell("A", "sh")], {"metric": "acuracy"}, "Did you mean 'accuracy'?"),
        ([cell("A", "bn"), cell("A", "sh")], {"metric": "log_loss"}, "2 of 2 cells have none"),
        ([cell("A", "bn"), cell("A", "sh")], {"reference": "nb"}, "Did you mean 'bn'?"),
        ([cell("A", "bn"), cell("A", "sh")], {"reference": "zzz"}, "There are: bn, sh"),
        ([cell("A", "bn")], {}, "one method only, bn"),
        ([cell("A", "bn")], {"published": published()}, "nothing was published of these data sets"),
        ([failed("A", "bn", "no memory left")], {}, "All 1 cells failed"),
        ([cell("A", m, protocol="best-on-test: x") for m in ("bn", "sh")], {}, "Type --best-on-test"),
        ([*crossed(2), *crossed(5)], {}, "cells of kfold:2 and kfold:5"),
        ([*crossed(2), cell("A", "bn")], {}, "not ranked beside figures on TEST"),
    ],
)
def test_what_cannot_be_compared_is_said(some: list[Cell], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        compare(some, **options)
    assert message in str(raised.value)

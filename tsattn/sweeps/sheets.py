"""A Comparison as sheets of text, from which every renderer for people draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tsattn.sweeps.comparison import TITLES, Comparison, Costs, Score

NONE = "–"


@dataclass(frozen=True)
class Item:
    """The text of a field, and whether it is among the best."""

    text: str
    bold: bool = False


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One table.

    words: how many columns from the left hold words; the others are numbers, set to the right. footed: how
    many of the last rows sum up the others.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Item, ...], ...]
    words: int = 1
    footed: int = 0


def sheets(one: Comparison) -> tuple[Sheet, ...]:
    """Scores by data set, methods, each against the reference; failures and sources where there are any."""
    found = [_scores(one)]
    if any(method.costs != Costs() for method in one.methods):
        found.append(_costs(one))
    if one.against:
        found.append(_against(one))
    if one.failures:
        found.append(_failures(one))
    if any(method.kind == "published" for method in one.methods):
        found.append(_sources(one))
    return tuple(found)


def _scores(one: Comparison) -> Sheet:
    labels = [method.label for method in one.methods]
    rows = [
        (
            Item(data.name),
            *(
                _score(one.scores.get((data.name, label)), label in one.best[data.name], one)
                for label in labels
            ),
        )
        for data in one.data
    ]
    foot = []
    if one.common:
        means = {label: (value, figure(value, one)) for label, value in one.means.items()}
        ranks = {label: (value, f"{value:.2f}") for label, value in one.ranks.items()}
        foot = [
            (Item(f"mean of {len(one.common)}"), *_summed(labels, means, lower=one.lower_is_better)),
            (Item("mean rank"), *_summed(labels, ranks, lower=True)),
        ]
    return Sheet(
        title=f"{TITLES[one.metric]}{',' * bool(one.folds)} {one.judged}, {unit(one)}",
        header=("data set", *labels),
        rows=(*rows, *foot),
        footed=len(foot),
    )


def _score(score: Score | None, bold: bool, one: Comparison) -> Item:
    if score is None:
        return Item(NONE)
    spread = "" if score.deviation is None else f" ± {figure(score.deviation, one)}"
    return Item(figure(score.mean, one) + spread, bold)


def _summed(labels: list[str], values: Mapping[str, tuple[float, str]], *, lower: bool) -> Iterator[Item]:
    """A row of values and their texts, the best bold."""
    best = (min if lower else max)(value for value, _ in values.values())
    for label in labels:
        value, text = values.get(label, (None, NONE))
        yield Item(text, value == best)


def _costs(one: Comparison) -> Sheet:
    rows = []
    for method in one.methods:
        costs = method.costs
        if costs == Costs():
            continue
        memory = costs.peak_memory_bytes
        rows.append(
            (
                Item(method.label),
                Item(_number(costs.parameters, 0)),
                Item(_number(costs.train_seconds, 1 if (costs.train_seconds or 0) >= 10 else 2)),
                Item(_number(costs.cases_per_second, 0)),
                Item(_number(None if memory is None else memory / 1e6, 0)),
            )
        )
    return Sheet(
        title="What it costs (medians)",
        header=("method", "parameters", "training, s", "inference, cases/s", "peak memory, MB"),
        rows=tuple(rows),
    )


def _against(one: Comparison) -> Sheet:
    difference = "mean difference" if one.lower_is_better else "mean difference, points"
    rows = [
        (
            Item(label),
            *(Item(str(count)) for count in (of.wins, of.ties, of.losses)),
            Item(signed(of.difference, one)),
            Item(f"{of.p:.3g}"),
            Item(f"{of.p_holm:.3g}"),
        )
        for label, of in one.against.items()
    ]
    return Sheet(
        title=f"Against {one.reference}, over {len(one.common)} data set{'s' * (len(one.common) != 1)}",
        header=("method", "wins", "ties", "losses", difference, "Wilcoxon p", "p after Holm"),
        rows=tuple(rows),
    )


def _failures(one: Comparison) -> Sheet:
    rows = [
        (Item(of.data), Item(of.method), Item(str(of.seed)), Item(" ".join(of.message.split())))
        for of in one.failures
    ]
    return Sheet(
        title="Cells that failed",
        header=("data set", "method", "seed", "message"),
        rows=tuple(rows),
        words=4,
    )


def _sources(one: Comparison) -> Sheet:
    rows = [
        (
            Item(method.label),
            Item(method.standing.replace("-", " ")),
            Item(method.protocol),
            Item(method.source),
        )
        for method in one.methods
        if method.kind == "published"
    ]
    return Sheet(
        title="Published results: protocol and source",
        header=("method", "standing", "protocol", "source"),
        rows=tuple(rows),
        words=4,
    )


def unit(one: Comparison) -> str:
    """Of the metric, as titles say it."""
    return "nats (less is better)" if one.lower_is_better else "%"


def figure(value: float, one: Comparison) -> str:
    """A value or deviation of the metric, without its unit."""
    return f"{value:.4f}" if one.lower_is_better else f"{100 * value:.2f}"


def signed(value: float, one: Comparison) -> str:
    """A difference, positive where it is better."""
    text = figure(abs(value), one)
    return text if float(text) == 0 else f"{'+' if value > 0 else '−'}{text}"


def _number(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"

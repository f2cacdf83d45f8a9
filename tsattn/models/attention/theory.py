"""Each mechanism as the support vector regression it is the dual of, in words and as arithmetic.

One head is one regression f(x) = W Φ(x) / h(x) + b, fitted on the keys k_j with targets y_j: minimise
½‖W‖² + C Σ (slack) subject to |y_j − f(k_j)| ≤ ε + slack. Its dual solution is
f(x) = Σ_j [Φ(x)ᵀΦ(k_j) / h(x)] v_j + b with v_j = (α_j − α̃_j) / h(k_j), which is attention with the
query x, keys k_j and values v_j. A mechanism says what Φ and h are, which points it is fitted on, and
what happens to a point first. Nguyen et al. 2023, A Primal-Dual Framework for Transformers and Neural
Networks; derivation in docs/attention.md.

`Regression` computes in float64 with plain arrays and knows nothing of the modules that it is the
statement of; tests hold the two against each other. Learned forms are stated at their first values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tsattn.errors import InputError
from tsattn.models.attention.registry import Spec, parse

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A mechanism in words: feature product Φ(x)ᵀΦ(y), normaliser h(x), points, and what comes first."""

    product: str
    normaliser: str = "h(x) = Σ_j Φ(x)ᵀΦ(k_j) over the points it is fitted on"
    points: str = "all keys"
    first: tuple[str, ...] = ()
    dual: str = "f(x) = Σ_j [Φ(x)ᵀΦ(k_j) / h(x)] v_j"


@dataclass(frozen=True, eq=False)
class Regression:
    """One head as arithmetic.

    product: (L, D), (S, D) → (L, S) the values Φ(x)ᵀΦ(y). sees: (queries, points, stride) → (L, S) True
    where the query's regression was fitted on the point. prepare: (queries, keys, stride) → the same
    after what comes first; it may leave fewer keys, each standing for more timepoints.
    """

    statement: Statement
    product: Callable[[Array, Array], Array]
    sees: Callable[[int, int, int], NDArray[np.bool_]]
    prepare: Callable[[Array, Array, int], tuple[Array, Array, int]] = field(
        default=lambda queries, keys, stride: (queries, keys, stride)
    )

    def weights(self, queries: Array, keys: Array) -> Array:
        """(L, S) the expansion's Φ(x)ᵀΦ(k_j) / h(x), rows summing to one over the points."""
        queries, points, stride = self.prepare(queries, keys, 1)
        products = self.product(queries, points)
        products = products * self.sees(len(queries), len(points), stride)
        return products / products.sum(axis=1, keepdims=True)


def regression(spec: str | Spec, scale: int = 2) -> Regression:
    """The regression of one head. scale: of that head under sh.

    InputError for a part that is no dual of such a regression; the message says what it is instead.
    """
    parsed = parse(spec) if isinstance(spec, str) else spec
    (core, option), *wrappers = parsed.parts
    if core.name not in CORES:
        raise _not_a_dual(parsed, core.name)
    stated = CORES[core.name](option)
    for part, option in wrappers:
        if part.name not in WRAPPERS:
            raise _not_a_dual(parsed, part.name)
        stated = WRAPPERS[part.name](stated, option, scale)
    return stated


def _softmax(option: str | None) -> Regression:
    return Regression(
        Statement(product="Φ(x)ᵀΦ(y) = exp(xᵀy / √D)"),
        _exponential,
        lambda rows, points, _: _all(rows, points),
    )


def _linear(option: str | None) -> Regression:
    def product(x: Array, y: Array) -> Array:
        return _elu_plus_one(x) @ _elu_plus_one(y).T

    return Regression(
        Statement(product="Φ(x) = elu(x) + 1, finite: D features"),
        product,
        lambda rows, points, _: _all(rows, points),
    )


def _local(option: str | None) -> Regression:
    window = int(option or 32)
    return Regression(
        Statement(
            product="Φ(x)ᵀΦ(y) = exp(xᵀy / √D)",
            points=f"a regression a query, on the keys within {window} timepoints of it",
        ),
        _exponential,
        lambda rows, points, stride: _distance(rows, points, stride) <= max(window // stride, 1),
    )


def _strided(option: str | None) -> Regression:
    window = int(option or 32)

    def sees(rows: int, points: int, stride: int) -> NDArray[np.bool_]:
        reach = max(window // stride, 1)
        return (_distance(rows, points, stride) <= reach) | (np.arange(points) % reach == 0)[None, :]

    return Regression(
        Statement(
            product="Φ(x)ᵀΦ(y) = exp(xᵀy / √D)",
            points=f"a regression a query, on the keys within {window} timepoints and every {window}th key",
        ),
        _exponential,
        sees,
    )


def _bn(inner: Regression, option: str | None, scale: int) -> Regression:
    beta = 1.0 if option in (None, "learn") else float(option or 1)

    def prepare(queries: Array, keys: Array, stride: int) -> tuple[Array, Array, int]:
        mean, deviation = keys.mean(axis=0), np.sqrt(keys.var(axis=0) + 1e-5)
        return inner.prepare((queries - beta * mean) / deviation, (keys - beta * mean) / deviation, stride)

    centre = "μ" if beta == 1 else f"{beta:g}·μ"
    return _first(inner, f"batch normalisation: x → (x − {centre}) ⊘ s, μ and s² + 1e-5 of the keys", prepare)


def _sh(inner: Regression, option: str | None, scale: int) -> Regression:
    def prepare(queries: Array, keys: Array, stride: int) -> tuple[Array, Array, int]:
        pooled = [keys[start : start + scale].mean(axis=0) for start in range(0, len(keys), scale)]
        return inner.prepare(queries, np.stack(pooled), stride * scale)

    scaled = _first(inner, "", prepare)
    points = f"{inner.statement.points}, pooled over the head's own window (keys and values alike)"
    return replace(scaled, statement=replace(inner.statement, points=points))


def _conv(inner: Regression, option: str | None, scale: int) -> Regression:
    kernel = option or "3"
    words = f"convolution over {kernel} timepoints, each feature by itself, at first the identity"
    return _first(inner, words, inner.prepare)


def _first(
    inner: Regression, words: str, prepare: Callable[[Array, Array, int], tuple[Array, Array, int]]
) -> Regression:
    first = (words, *inner.statement.first) if words else inner.statement.first
    return replace(inner, prepare=prepare, statement=replace(inner.statement, first=first))


CORES: dict[str, Callable[[str | None], Regression]] = {
    "softmax": _softmax,
    "linear": _linear,
    "local": _local,
    "strided": _strided,
}
WRAPPERS: dict[str, Callable[[Regression, str | None, int], Regression]] = {
    "bn": _bn,
    "sh": _sh,
    "conv": _conv,
}
NO_DUAL = {
    "flow": "it weighs keys by how much flow they keep, which depends on all queries",
    "twice": "it applies a smoother once more to its own residual, (2A − A²) v",
}


def _not_a_dual(spec: Spec, name: str) -> InputError:
    why = NO_DUAL.get(name, "nobody has stated one for it")
    return InputError(f"attention '{spec}': '{name}' is no dual of a support vector regression: {why}.")


def _exponential(x: Array, y: Array) -> Array:
    return np.exp(x @ y.T / np.sqrt(x.shape[1]))


def _elu_plus_one(x: Array) -> Array:
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def _all(rows: int, points: int) -> NDArray[np.bool_]:
    return np.ones((rows, points), dtype=np.bool_)


def _distance(rows: int, points: int, stride: int) -> NDArray[np.int64]:
    """(rows, points) how many points lie between a query and a point."""
    return np.abs(np.arange(rows)[:, None] // stride - np.arange(points)[None, :])

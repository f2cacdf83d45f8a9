"""Statement and implementation agree: as weights, and as a support vector regression really fitted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.svm import SVR

from tsattn.errors import InputError
from tsattn.models.attention import Heads, Mechanism, build, parse, parts
from tsattn.models.attention.sparse import DEFAULT_WINDOW
from tsattn.models.attention.theory import CORES, NO_DUAL, WRAPPERS, Regression, regression

DIM, KEYS = 4, 24
SCALE = 2
ONE_HEAD = Heads(1, DIM)

STATED = ["softmax", "linear", "local:5", "strided:4", "bn", "bn:0.5", "linear+bn", "local:5+bn", "conv:5+bn"]
STATED += ["local:1", "strided", "bn:learn", "bn:0", "conv"]
POOLED = [f"sh:{SCALE}", f"bn+sh:{SCALE}", f"linear+bn+sh:{SCALE}", f"local:6+sh:{SCALE}", f"sh:{SCALE}+bn"]
POOLED += [f"local:1+sh:{SCALE}", f"strided:6+sh:{SCALE}", f"local:4+sh:{SCALE}+conv"]


def points(seed: int, count: int = KEYS) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(count, DIM))


def attend(
    mechanism: Mechanism, q: NDArray[np.float64], k: NDArray[np.float64], v: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One head in float64: (L, D) from (L, D), (S, D), (S, D)."""
    tensors = (torch.from_numpy(x)[None, None] for x in (q, k, v))
    return mechanism.double()(*tensors, None)[0, 0].numpy(force=True)


def test_every_part_is_stated_or_said_to_be_no_dual() -> None:
    assert {part.name for part in parts()} == set(CORES) | set(WRAPPERS) | set(NO_DUAL)


@pytest.mark.parametrize("spec", [*STATED, *POOLED])
def test_weights_of_the_statement_are_those_of_the_mechanism(spec: str) -> None:
    q, k, v = points(0), points(1), points(2)
    weights = regression(spec, SCALE).weights(q, k)
    pooled = v if len(weights.T) == KEYS else v.reshape(-1, SCALE, DIM).mean(axis=1)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(attend(build(spec, ONE_HEAD), q, k, v), weights @ pooled, rtol=0, atol=1e-10)
    per_point = KEYS // len(weights.T)
    spread = np.repeat(weights / per_point, per_point, axis=1)
    queries, keys = (torch.from_numpy(x)[None, None] for x in (q, k))
    found = build(spec, ONE_HEAD).double().weights(queries, keys, None)[0, 0].numpy(force=True)
    np.testing.assert_allclose(found, spread, rtol=0, atol=1e-10)


def fitted_values(
    stated: Regression, keys: NDArray[np.float64], targets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fits one SVR an output with the kernel of the primal, K(x, y) = Φ(x)ᵀΦ(y) / (h(x) h(y)).

    Returns the values v_j = (α_j − α̃_j) / h(k_j) (points, D), the offsets (D,) and the normalisers of
    the points.
    """
    _, prepared, _ = stated.prepare(keys, keys, 1)
    products = stated.product(prepared, prepared)
    normaliser = products.sum(axis=1)
    kernel = products / np.outer(normaliser, normaliser)
    values, offsets = np.zeros((len(prepared), DIM)), np.zeros(DIM)
    for output in range(DIM):
        machine = SVR(kernel="precomputed", C=1e4, epsilon=0.01, tol=1e-6).fit(kernel, targets[:, output])
        values[machine.support_, output] = machine.dual_coef_[0] / normaliser[machine.support_]
        offsets[output] = machine.intercept_[0]
    return values, offsets, normaliser


@pytest.mark.parametrize(
    "spec", ["softmax", "linear", "bn", "bn:0.5", "linear+bn", f"sh:{SCALE}", f"bn+sh:{SCALE}"]
)
def test_attention_is_the_support_vector_expansion(spec: str) -> None:
    """Values formed from a fitted machine's dual coefficients give the machine's own predictions."""
    stated = regression(spec, SCALE)
    keys, queries = points(3), points(4)
    _, prepared, _ = stated.prepare(keys, keys, 1)
    targets = np.sin(points(5, len(prepared)))
    values, offsets, normaliser = fitted_values(stated, keys, targets)
    assert (values != 0).mean() > 0.3  # the machine did fit something

    asked, _, _ = stated.prepare(queries, keys, 1)
    products = stated.product(asked, prepared)
    kernel = products / np.outer(products.sum(axis=1), normaliser)
    machine = np.stack(
        [
            SVR(kernel="precomputed", C=1e4, epsilon=0.01, tol=1e-6)
            .fit(stated.product(prepared, prepared) / np.outer(normaliser, normaliser), targets[:, output])
            .predict(kernel)
            for output in range(DIM)
        ],
        axis=1,
    )
    spread = np.repeat(values, KEYS // len(prepared), axis=0)  # pooling the values gives them back
    np.testing.assert_allclose(
        attend(build(spec, ONE_HEAD), queries, keys, spread) + offsets, machine, rtol=0, atol=1e-6
    )


def test_a_window_is_a_regression_of_its_own() -> None:
    """local: the query's own machine, fitted on the keys of its window, predicts what attention gives it."""
    window, at = 6, 11
    stated, keys, queries = regression(f"local:{window}"), points(6), points(7)
    near = np.flatnonzero(stated.sees(KEYS, KEYS, 1)[at])
    targets = np.sin(points(8))
    values = np.zeros((KEYS, DIM))
    values[near], offsets, normaliser = fitted_values(regression("softmax"), keys[near], targets[near])
    products = stated.product(queries[at : at + 1], keys[near])
    kernel = products / (products.sum() * normaliser)
    inner = stated.product(keys[near], keys[near]) / np.outer(normaliser, normaliser)
    machine = [
        SVR(kernel="precomputed", C=1e4, epsilon=0.01, tol=1e-6)
        .fit(inner, targets[near, d])
        .predict(kernel)[0]
        for d in range(DIM)
    ]
    found = attend(build(f"local:{window}", ONE_HEAD), queries, keys, values)[at] + offsets
    np.testing.assert_allclose(found, machine, rtol=0, atol=1e-6)


def test_words() -> None:
    said = regression("bn+sh").statement
    assert said.product == "Φ(x)ᵀΦ(y) = exp(xᵀy / √D)"
    assert said.points.startswith("all keys, pooled")
    assert said.first == ("batch normalisation: x → (x − μ) ⊘ s, μ and s² + 1e-5 of the keys",)


def test_a_default_is_said_as_it_is_built() -> None:
    for core in ("local", "strided"):
        assert f" within {DEFAULT_WINDOW} timepoints" in regression(core).statement.points
        sees = regression(core).sees(99, 99, 1)
        assert np.flatnonzero(sees[40]).max() in (40 + DEFAULT_WINDOW, 96)
    assert "over 3 timepoints" in regression("conv").statement.first[0]
    assert next(build("conv", ONE_HEAD).parameters()).shape[0] == 3


@pytest.mark.parametrize("spec", ["flow", "linear+twice"])
def test_what_is_no_dual_says_what_it_is(spec: str) -> None:
    with pytest.raises(InputError, match="is no dual of a support vector regression: it "):
        regression(parse(spec))

"""Every mechanism equals a plain float64 transcription of its formula, loops and all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsattn.models.attention import Heads, Mechanism, build, parse, parts
from tsattn.models.attention.batch_normalised import _normalise_queries, _share
from tsattn.models.attention.wrappers import Convolved, _OverTime

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# One head at a time: q (L, D), k, v (S, D), seen (S,), stride of the keys, head within the spec.
Rule = Callable[[Array, Array, Array, Mask, int], Array]

DIM, COUNT, LENGTH = 3, 4, 37
WINDOW = 5


def softmax(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
    out = np.zeros_like(q)
    for i in range(len(q)):
        weights = np.array([np.exp(q[i] @ k[j] / np.sqrt(DIM)) if seen[j] else 0.0 for j in range(len(k))])
        out[i] = weights @ v / weights.sum()
    return out


def linear(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
    def feature(x: Array) -> Array:
        return np.where(x > 0, x + 1, np.exp(x))

    out = np.zeros_like(q)
    for i in range(len(q)):
        weights = np.array([feature(q[i]) @ feature(k[j]) if seen[j] else 0.0 for j in range(len(k))])
        out[i] = weights @ v / weights.sum()
    return out


def local(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
    reach = max(WINDOW // stride, 1)
    out = np.zeros_like(q)
    for i in range(len(q)):
        near = [j for j in range(len(k)) if seen[j] and abs(i // stride - j) <= reach]
        if near:
            weights = np.array([np.exp(q[i] @ k[j] / np.sqrt(DIM)) for j in near])
            out[i] = weights @ v[near] / weights.sum()
    return out


def strided(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
    reach = max(WINDOW // stride, 1)
    out = np.zeros_like(q)
    for i in range(len(q)):
        chosen = [j for j in range(len(k)) if seen[j] and (abs(i // stride - j) <= reach or j % reach == 0)]
        if chosen:
            weights = np.array([np.exp(q[i] @ k[j] / np.sqrt(DIM)) for j in chosen])
            out[i] = weights @ v[chosen] / weights.sum()
    return out


def flow(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
    def phi(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    here = [j for j in range(len(k)) if seen[j]]
    into = np.array([phi(q[i]) @ sum(phi(k[j]) for j in here) for i in range(len(q))])
    out_of = np.array([phi(k[j]) @ sum(phi(q[i]) for i in here) for j in range(len(k))])
    into_kept = [phi(q[i]) @ sum(phi(k[j]) / out_of[j] for j in here) for i in range(len(q))]
    out_kept = {j: phi(k[j]) @ sum(phi(q[i]) / into[i] for i in here) for j in here}
    total = sum(np.exp(one) for one in out_kept.values())
    result = np.zeros_like(q)
    for i in range(len(q)):
        for j in here:
            share = np.exp(out_kept[j]) / total * len(here)
            result[i] += phi(q[i]) @ phi(k[j]) / into[i] * share * v[j]
        result[i] *= phi(into_kept[i])
    return result


CORES: dict[str, tuple[str, Rule]] = {
    "softmax": ("softmax", softmax),
    "linear": ("linear", linear),
    "local": (f"local:{WINDOW}", local),
    "strided": (f"strided:{WINDOW}", strided),
    "flow": ("flow", flow),
}


def bn(inner: Rule, mechanism: Mechanism, head: int) -> Rule:
    def rule(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
        mean = k[seen].mean(axis=0)
        deviation = np.sqrt(((k[seen] - mean) ** 2).mean(axis=0) + 1e-5)
        return inner((q - 0.8 * mean) / deviation, (k - 0.8 * mean) / deviation, v, seen, stride)

    return rule


def sh(inner: Rule, mechanism: Mechanism, head: int) -> Rule:
    scale = (1, 1, 2, 3)[head]

    def rule(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
        windows = [np.arange(start, min(start + scale, len(k))) for start in range(0, len(k), scale)]
        pooled = [window[seen[window]] for window in windows]
        mean = [
            np.stack([x[chosen].mean(axis=0) if len(chosen) else np.zeros(DIM) for chosen in pooled])
            for x in (k, v)
        ]
        return inner(q, mean[0], mean[1], np.array([len(chosen) > 0 for chosen in pooled]), stride * scale)

    return rule


def conv(inner: Rule, mechanism: Mechanism, head: int) -> Rule:
    (module,) = [part for part in mechanism.modules() if isinstance(part, Convolved)]

    def over_time(layer: _OverTime, x: Array, seen: Mask) -> Array:
        weight = layer.taps.double().numpy(force=True)[:, head, 0].T  # (D, kernel)
        bias = layer.bias.double().numpy(force=True)[head, 0]
        out = np.tile(bias, (len(x), 1))
        for t in range(len(x)):
            for tap in range(weight.shape[1]):
                at = t + tap - weight.shape[1] // 2
                if 0 <= at < len(x) and seen[at]:
                    out[t] += weight[:, tap] * x[at]
        return out

    def rule(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
        return inner(over_time(module.q_conv, q, seen), over_time(module.k_conv, k, seen), v, seen, stride)

    return rule


def twice(inner: Rule, mechanism: Mechanism, head: int) -> Rule:
    def rule(q: Array, k: Array, v: Array, seen: Mask, stride: int) -> Array:
        once = inner(q, k, v, seen, stride)
        return 2 * once - inner(q, k, once, seen, stride)

    return rule


WRAPPERS: dict[str, tuple[str, Callable[[Rule, Mechanism, int], Rule]]] = {
    "bn": ("bn:0.8", bn),
    "sh": ("sh:1,1,2,3", sh),
    "conv": ("conv:5", conv),
    "twice": ("twice", twice),
}


def test_every_part_has_a_reference() -> None:
    assert {part.name for part in parts("core")} == set(CORES)
    assert {part.name for part in parts("wrapper")} == set(WRAPPERS)


def test_equals_its_formula(spec: str) -> None:
    names = [part.name for part, _ in parse(spec).parts]
    core_word, rule_of_core = CORES[names[0]]
    words = [core_word, *(WRAPPERS[name][0] for name in names[1:])]
    mechanism = build("+".join(words), Heads(COUNT, DIM)).double()
    with torch.no_grad():
        for parameter in mechanism.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    q, k, v = torch.randn(3, 1, COUNT, LENGTH, DIM, dtype=torch.float64).unbind(0)
    observed = torch.rand(1, LENGTH) > 0.25
    observed[0, 10:14] = False
    observed[0, 0] = True

    found = mechanism(q, k, v, observed)[0].numpy(force=True)
    for head in range(COUNT):
        rule = rule_of_core
        for name in names[1:]:
            rule = WRAPPERS[name][1](rule, mechanism, head)
        seen = observed[0].numpy()
        expected = rule(q[0, head].numpy(), k[0, head].numpy(), v[0, head].numpy(), seen, 1)
        np.testing.assert_allclose(
            found[head][seen], expected[seen], rtol=0, atol=1e-10, err_msg=f"head {head}"
        )


def test_attention_bn_is_one_change_of_the_queries() -> None:
    """softmax(((q−βμ)/s)((k−βμ)/s)ᵀ) v = SDPA((q − βμ)/(σ² + ε), k, v), to float64's last digits."""
    q, k, v = torch.randn(3, 2, COUNT, LENGTH, DIM, dtype=torch.float64).unbind(0)
    mean, variance = k.mean(2, keepdim=True), k.var(2, correction=0, keepdim=True) + 1e-5
    for beta in (0.0, 0.7, 1.0):
        plain = torch.nn.functional.scaled_dot_product_attention(
            (q - beta * mean) / variance.sqrt(), (k - beta * mean) / variance.sqrt(), v
        )
        moved = torch.nn.functional.scaled_dot_product_attention((q - beta * mean) / variance, k, v)
        torch.testing.assert_close(plain, moved, rtol=0, atol=1e-13)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("learned", [False, True])
def test_the_written_out_derivative_of_bn_is_the_derivative(gaps: bool, learned: bool) -> None:
    torch.manual_seed(0)
    q, k = (torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    observed = torch.tensor([[1, 1, 0, 1, 1], [1, 0, 1, 1, 0]], dtype=torch.bool) if gaps else None
    beta = torch.rand(3, 1, 1, dtype=torch.float64, requires_grad=True)

    def normalised(q: Tensor, k: Tensor, beta: Tensor) -> Tensor:
        return _normalise_queries(q, k, _share(k, observed), beta if learned else 0.7)

    assert torch.autograd.gradcheck(normalised, (q, k, beta))
    with torch.no_grad():  # another path, for inference and export
        expected = normalised(q, k, beta)
    torch.testing.assert_close(normalised(q, k, beta), expected, rtol=0, atol=0)


def test_pooling_whole_windows_is_pooling() -> None:
    """Lengths that all scales divide take a shorter path, where nothing is missing."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 8, 48, DIM, dtype=torch.float64) for _ in range(3))
    mechanism = build("sh", Heads(8, DIM))
    everything = torch.ones(2, 48, dtype=torch.bool)
    torch.testing.assert_close(mechanism(q, k, v, None), mechanism(q, k, v, everything), rtol=0, atol=1e-12)

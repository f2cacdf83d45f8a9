"""Weights of every spec that the registry can spell: what they are weights of, and what they leave out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tsattn.models.attention import Heads, Mechanism, build

HEADS = Heads(count=4, dim=4)
LENGTH = 71


def make(spec: str) -> Mechanism:
    """The mechanism with every parameter moved away from its gentle first value, without gradients."""
    mechanism = build(spec, HEADS).requires_grad_(False)
    for parameter in mechanism.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    return mechanism


def tensors(batch: int) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, batch, HEADS.count, LENGTH, HEADS.dim).unbind(0)
    return q, k, v


def gaps(batch: int) -> Tensor:
    observed = torch.rand(batch, LENGTH) > 0.3
    observed[0, 20:40] = False
    observed[:, 0] = True
    return observed


def averages(mechanism: Mechanism) -> bool:
    return all(part.averages for part in mechanism.modules() if isinstance(part, Mechanism))


def test_weights(spec: str) -> None:
    """Times values they are the output; what is not observed has none; those of an average sum to one."""
    mechanism, (q, k, v), observed = make(spec), tensors(1), gaps(1)
    for mask in (None, observed):
        weights = mechanism.weights(q, k, mask)
        assert weights.shape == (1, HEADS.count, LENGTH, LENGTH)
        torch.testing.assert_close(weights @ v, mechanism(q, k, v, mask), rtol=0, atol=1e-5)
    assert weights[:, :, :, ~observed[0]].count_nonzero() == 0
    sums = weights[:, :, observed[0]].sum(3)
    if averages(mechanism):
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5)
    else:
        assert (sums - 1).abs().max() > 0.01, "it should say that it averages"


def test_only_flow_and_learned_pooling_are_no_averages() -> None:
    for spec in ("flow", "flow+bn", "flow+twice", "sh:conv", "bn+sh:conv", "linear+sh:conv+twice"):
        assert not averages(build(spec, HEADS)), spec
    for spec in ("softmax", "linear+bn:learn", "local:4+sh", "strided+conv+twice"):
        assert averages(build(spec, HEADS)), spec


def distance(stride: int = 1) -> Tensor:
    """(L, S) how many windows of `stride` timepoints lie between a query and a key."""
    window = torch.arange(LENGTH) // stride
    return (window[:, None] - window[None, :]).abs()


@pytest.mark.parametrize(("windowed", "reach"), [("local:5", 5), ("local:5+bn", 5), ("local:5+twice", 10)])
def test_a_window_is_where_its_weights_are(windowed: str, reach: int) -> None:
    q, k, _ = tensors(2)
    weights = build(windowed, HEADS).weights(q, k, None)
    assert torch.equal((weights != 0).all(1).all(0), distance() <= reach)


def test_a_strided_query_sees_its_window_and_every_wth_key() -> None:
    q, k, _ = tensors(2)
    weights = build("strided:6", HEADS).weights(q, k, None)
    grid = torch.arange(LENGTH) % 6 == 0
    assert torch.equal((weights != 0).all(1).all(0), (distance() <= 6) | grid[None, :])


def test_timepoints_pooled_together_share_their_weight() -> None:
    q, k, _ = tensors(1)
    observed = gaps(1)
    weights = build("local:12+sh:4", HEADS).weights(q, k, observed)[0]  # (H, L, S)
    assert weights[:, distance(4) > 3].count_nonzero() == 0
    for start in range(0, LENGTH, 4):
        seen = observed[0, start : start + 4]
        shares = weights[:, :, start : start + 4][:, :, seen]
        torch.testing.assert_close(shares, shares[:, :, :1].expand_as(shares), rtol=0, atol=0)

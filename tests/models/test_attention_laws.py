"""The laws of design: every spec that the registry can spell obeys them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from tsattn.models.attention import Mechanism, build, laws, parts
from tsattn.models.attention.batch_normalised import VARIANCE_FLOOR, _in_few_places, _moments, _share
from tsattn.models.attention.laws import HEADS, LENGTH, at_observed, gaps, moved, tensors
from tsattn.models.attention.product import products_written_out


def make(spec: str) -> Mechanism:
    return moved(build(spec, HEADS))


@pytest.mark.parametrize("law", laws.LAWS)
def test_a_law(spec: str, law: str) -> None:
    mechanism = make(spec)
    if law == laws.CLAIM and not mechanism.ignores_key_shift:
        return
    assert laws.LAWS[law](mechanism) <= laws.TOLERANCE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "gaps"])
def test_shape_type_and_gradients(spec: str, dtype: torch.dtype, masked: bool) -> None:
    assert laws.complaint(make(spec), dtype, masked, every_input=True) == ""


def test_a_window_over_everything_is_softmax() -> None:
    q, k, v = tensors(2)
    observed = gaps(2)
    local, softmax = build(f"local:{LENGTH}", HEADS), build("softmax", HEADS)
    for mask in (None, observed):
        expected = softmax(q, k, v, mask)
        torch.testing.assert_close(local(q, k, v, mask), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("core", [part.name for part in parts("core") if not part.needs_all_keys])
def test_scales_of_one_are_the_inner_mechanism(core: str) -> None:
    q, k, v = tensors(2)
    observed = gaps(2)
    scaled, inner = build(f"{core}+sh:1", HEADS), build(core, HEADS)
    torch.testing.assert_close(scaled(q, k, v, observed), inner(q, k, v, observed), rtol=0, atol=1e-6)


@pytest.mark.parametrize("core", [part.name for part in parts("core")])
@pytest.mark.parametrize(("shift", "scale"), [(4.0, 1.0), (0.0, 5.0), (-2.0, 0.7)])
def test_normalised_attention_ignores_shift_and_scale(core: str, shift: float, scale: float) -> None:
    """One vector added to all queries and keys, or one factor, changes nothing under bn."""
    mechanism, (q, k, v), observed = build(f"{core}+bn", HEADS), tensors(2), gaps(2)
    vector = shift * torch.randn(1, HEADS.count, 1, HEADS.dim)
    moved = mechanism(scale * q + vector, scale * k + vector, v, observed)
    torch.testing.assert_close(
        at_observed(moved, observed), at_observed(mechanism(q, k, v, observed), observed), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize(
    ("learned", "plain"),
    [("bn:learn", "bn"), ("sh:conv", "sh"), ("linear+sh:conv,1,1,3,3", "linear+sh:1,1,3,3")],
)
def test_a_learned_form_begins_as_the_plain_one_and_learns(learned: str, plain: str) -> None:
    q, k, v = tensors(2)
    mechanism, observed = build(learned, HEADS), gaps(2)
    begun = mechanism(q, k, v, observed)
    torch.testing.assert_close(begun, build(plain, HEADS)(q, k, v, observed), rtol=0, atol=1e-6)
    begun.square().sum().backward()
    assert [p.grad is not None and bool(p.grad.abs().sum() > 0) for p in mechanism.parameters()].count(
        True
    ) > 0


def test_strided_attention_over_every_key_is_softmax() -> None:
    q, k, v = tensors(2)
    observed = gaps(2)
    expected = build("softmax", HEADS)(q, k, v, observed)
    torch.testing.assert_close(build("strided:1", HEADS)(q, k, v, observed), expected, rtol=0, atol=1e-5)


def test_a_convolution_begins_as_the_identity() -> None:
    q, k, v = tensors(2)
    begun = build("conv:5", HEADS)(q, k, v, None)
    torch.testing.assert_close(begun, build("softmax", HEADS)(q, k, v, None), rtol=0, atol=1e-6)


def test_pooling_before_statistics_differs_from_after() -> None:
    """bn+sh normalises by each head's pooled keys, sh+bn by all keys: the order in the spec matters."""
    q, k, v = tensors(2)
    assert (build("bn+sh", HEADS)(q, k, v, None) - build("sh+bn", HEADS)(q, k, v, None)).abs().max() > 1e-2


def test_scales_by_default_double_after_every_two_heads_and_a_list_is_spread_in_groups() -> None:
    q, k, v = tensors(2)
    default, spelled = build("sh", HEADS), build("sh:1,1,2,2,4,4,8,8", HEADS)
    torch.testing.assert_close(default(q, k, v, None), spelled(q, k, v, None), rtol=0, atol=0)
    spread, spelled = build("sh:1,4", HEADS), build("sh:1,1,1,1,4,4,4,4", HEADS)
    torch.testing.assert_close(spread(q, k, v, None), spelled(q, k, v, None), rtol=0, atol=0)


@pytest.mark.parametrize("spec", ["local:3", "local:2+bn", "local:4+sh:1,2"])
def test_a_query_that_sees_no_key_gives_zero(spec: str) -> None:
    mechanism, (q, k, v) = build(spec, HEADS), tensors(1)
    observed = torch.zeros(1, LENGTH, dtype=torch.bool)
    observed[0, :5] = True
    mixed = mechanism(q, k, v, observed)
    assert mixed[0, :, 20:].abs().max() == 0
    assert mixed[0, :, :5].abs().min() > 0


def test_a_window_longer_than_the_series_costs_no_more_than_the_series() -> None:
    q, k, v = (x[:, :, :9] for x in tensors(2))
    for spec in ("local:4096", "strided:4096"):
        expected = build("softmax", HEADS)(q, k, v, None)
        torch.testing.assert_close(build(spec, HEADS)(q, k, v, None), expected, rtol=0, atol=1e-5)


def test_linear_attention_of_small_features_is_still_an_average() -> None:
    """Features of very negative queries and keys are tiny, their ratio is not."""
    _, _, v = tensors(1)
    q = k = torch.full_like(v, -7.0)
    mixed = build("linear", HEADS)(q, k, v, None)
    torch.testing.assert_close(mixed, v.mean(2, keepdim=True).expand_as(v), rtol=0, atol=1e-5)


def test_an_exported_graph_computes_the_same(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Export takes other paths; of keys that hardly vary, so that what is added to a variance counts."""
    mechanism, observed = make(spec).double(), gaps(2)
    q, k, v = (x.double() for x in tensors(2))
    expected = [mechanism(q, 1e-3 * k, v, mask) for mask in (None, observed)]
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    for way in (nullcontext, products_written_out):
        for mask, before in zip((None, observed), expected, strict=True):
            with way():
                found = mechanism(q, 1e-3 * k, v, mask)
            torch.testing.assert_close(found, before, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("masked", [False, True])
def test_statistics_of_a_long_series_are_not_taken_in_16_bits(masked: bool) -> None:
    """A count of 3001 is none of bfloat16's numbers, and neither is a mean far from zero."""
    k = (30 + 3 * torch.randn(1, 2, 3001, 4)).bfloat16()
    share = _share(k, torch.ones(1, 3001, dtype=torch.bool) if masked else None)
    mean, variance = k.double().mean(2, keepdim=True), k.double().var(2, correction=0, keepdim=True)
    found, found_variance = _moments(k, share)
    _, short, minus_scale = _in_few_places(k, k, share, 1.0)
    for one in (found, short):
        torch.testing.assert_close(one.double(), mean, rtol=1e-5, atol=0)
    for one in (found_variance, -1 / minus_scale - VARIANCE_FLOOR):
        torch.testing.assert_close(one.double(), variance, rtol=1e-4, atol=0)

"""Augmentation: what every word must keep, what each one does, and what a wrong spec is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tsattn.errors import InputError
from tsattn.training.augment import Augmentation, parse_augmentation
from tsattn.training.augment_words import AugmentWord, Change, Mixup, augment_words

STRONG = {"jitter": 0.5, "shift": 0.5, "scale": 0.5, "crop": 0.3, "mask": 0.6, "mixup": 1}
SPECS = [f"{name}:{strength}" for name, strength in STRONG.items()]
SPECS = [*SPECS, "+".join(SPECS), "+".join(reversed(SPECS))]
KEEPS_GAPS = [spec for spec in SPECS if "crop" not in spec]
each_spec = pytest.mark.parametrize("spec", SPECS)
few = settings(max_examples=15, deadline=None)


@st.composite
def batches(draw: st.DrawFn, gaps: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Values with padding, gaps and perhaps a channel without any value; targets; spread."""
    cases, channels, timepoints = (draw(st.integers(1, most)) for most in (5, 3, 12))
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    values = generator.normal(100, 5, (cases, channels, timepoints)).astype(np.float32)
    if gaps:
        values[generator.random(values.shape) < draw(st.sampled_from([0, 0.3]))] = np.nan
        for case, length in enumerate(generator.integers(0, timepoints + 1, cases)):
            values[case, :, length:] = np.nan
        if draw(st.booleans()):
            values[0, 0] = np.nan
    targets = torch.eye(3)[torch.from_numpy(generator.integers(0, 3, cases))]
    return torch.from_numpy(values), targets, torch.linspace(1, 2, channels)


def seeded(
    change: Augmentation | Change, values: Tensor, targets: Tensor, complete: bool, spread: Tensor
) -> tuple[Tensor, Tensor]:
    torch.manual_seed(7)
    return change(values, targets, complete, spread)


def same(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(), other.nan_to_num())


@each_spec
@few
@given(batch=batches())
def test_shapes_targets_and_that_the_given_stay(spec: str, batch: tuple[Tensor, Tensor, Tensor]) -> None:
    values, targets, spread = batch
    before = [tensor.clone() for tensor in batch]
    changed, mixed = seeded(parse_augmentation(spec), values, targets, False, spread)
    assert (changed.shape, changed.dtype) == (values.shape, values.dtype)
    assert mixed.shape == targets.shape
    assert torch.allclose(mixed.sum(1), torch.ones(len(mixed)))
    assert mixed.min() >= 0
    assert all(map(same, batch, before))
    padding = values.isnan().all(1).flip(1).int().cumprod(1).flip(1).bool()[:, None]
    assert (changed.isnan() | ~padding).all(), "padding is made up"
    assert changed[values.isnan().all(2)].isnan().all(), "a channel is made up"
    assert not changed.isinf().any()


@pytest.mark.parametrize("spec", KEEPS_GAPS)
@few
@given(batch=batches())
def test_gaps_stay_where_they_are(spec: str, batch: tuple[Tensor, Tensor, Tensor]) -> None:
    values, targets, spread = batch
    changed, _ = seeded(parse_augmentation(spec), values, targets, False, spread)
    assert torch.equal(changed.isnan(), values.isnan())


@each_spec
@few
@given(batch=batches(gaps=False))
def test_a_complete_batch_stays_so_and_costs_only_time(
    spec: str, batch: tuple[Tensor, Tensor, Tensor]
) -> None:
    values, targets, spread = batch
    fast = seeded(parse_augmentation(spec), values, targets, True, spread)
    slow = seeded(parse_augmentation(spec), values, targets, False, spread)
    assert not fast[0].isnan().any()
    assert torch.equal(fast[0], slow[0])
    assert torch.equal(fast[1], slow[1])


@each_spec
def test_a_seed_repeats_it_and_a_state_goes_on_with_it(spec: str) -> None:
    augmentation = parse_augmentation(spec)
    batch = (torch.randn(6, 2, 20), torch.eye(6), False, torch.ones(2))
    first = seeded(augmentation, *batch)
    state = torch.get_rng_state()
    second = augmentation(*batch)
    assert same(first[0], seeded(augmentation, *batch)[0])
    assert not same(first[0], second[0])
    torch.set_rng_state(state)
    again = augmentation(*batch)
    assert same(second[0], again[0])
    assert same(second[1], again[1])


@each_spec
@pytest.mark.parametrize("complete", [True, False])
def test_nothing_asks_the_device_what_the_values_are(spec: str, complete: bool) -> None:
    meta = torch.device("meta")  # has shapes and no values: .item() and boolean indexing raise
    values, targets, spread = torch.empty(4, 3, 9), torch.empty(4, 2), torch.empty(3)
    changed, mixed = parse_augmentation(spec)(values.to(meta), targets.to(meta), complete, spread.to(meta))
    assert (changed.shape, mixed.shape, changed.device) == (values.shape, targets.shape, meta)


@pytest.mark.parametrize("spec", ["", "none", " none "])
def test_nothing(spec: str) -> None:
    nothing = parse_augmentation(spec)
    assert not nothing
    assert str(nothing) == "none"
    values, targets = torch.randn(2, 1, 3), torch.eye(2)
    assert nothing(values, targets, True, torch.ones(1)) == (values, targets)


def test_a_word_at_its_idle_strength_changes_nothing() -> None:
    spec = "+".join(f"{word.name}:{word.idle:g}" for word in augment_words())
    idle = parse_augmentation(spec)
    assert (bool(idle), str(idle)) == (False, spec)


@pytest.mark.parametrize("word", augment_words(), ids=lambda word: word.name)
@few
@given(batch=batches())
def test_near_its_idle_strength_a_word_changes_next_to_nothing(
    word: AugmentWord, batch: tuple[Tensor, Tensor, Tensor]
) -> None:
    values, targets, spread = batch
    too_little = {"mask": 0.99 / values.shape[2], "mixup": 1e-4}  # for a timepoint, for float32
    change = word.make(too_little.get(word.name, word.idle))
    changed, mixed = seeded(change, values, targets, False, spread)
    assert same(changed, values)
    assert torch.equal(mixed, targets)


def test_a_single_timepoint_and_a_single_case() -> None:
    values, targets = torch.tensor([[[3.0], [float("nan")]]]), torch.tensor([[0.0, 1.0]])
    changed, mixed = seeded(
        parse_augmentation("scale:1+crop:0.1+mixup:1"), values, targets, False, values[0, 0]
    )
    assert same(changed, values)
    assert torch.equal(mixed, targets)


LARGE = torch.full((400, 2, 50), 1000.0) + torch.arange(50.0)
SPREAD = torch.tensor([1.0, 10.0])


def effect(spec: str) -> Tensor:
    return seeded(parse_augmentation(spec), LARGE, torch.ones(400, 1), True, SPREAD)[0] - LARGE


def test_jitter_is_noise_of_every_value_in_units_of_the_spread() -> None:
    noise = effect("jitter:0.1")
    assert torch.allclose(noise.std(dim=(0, 2)), 0.1 * SPREAD, rtol=0.03)
    assert torch.allclose(noise.mean(dim=(0, 2)) / SPREAD, torch.zeros(2), atol=0.005)


def test_shift_moves_a_channel_of_a_case_as_a_whole() -> None:
    moved = effect("shift:0.1")
    assert torch.allclose(moved, moved[:, :, :1].expand_as(moved), atol=2e-4)
    assert torch.allclose(moved[:, :, 0].std(0), 0.1 * SPREAD, rtol=0.15)


def test_scale_keeps_the_level_and_changes_the_amplitude() -> None:
    scaled = effect("scale:0.1") + LARGE
    assert torch.allclose(scaled.mean(2), LARGE.mean(2), rtol=1e-6)
    factor = scaled.std(2) / LARGE.std(2)
    assert factor.mean() == pytest.approx(1, abs=0.02)
    assert factor.std() == pytest.approx(0.1, rel=0.15)


def test_scale_is_the_same_in_every_unit() -> None:
    celsius = torch.randn(8, 1, 30)
    kelvin = celsius + 273.15
    one, other = (
        seeded(parse_augmentation("scale:0.3"), x, torch.ones(8, 1), True, SPREAD[:1])[0]
        for x in (celsius, kelvin)
    )
    assert torch.allclose(one, other - 273.15, atol=1e-3)


def test_mask_hides_one_stretch_of_every_length_up_to_the_share() -> None:
    hidden = (effect("mask:0.3") + LARGE) == LARGE.mean(2, keepdim=True)
    assert torch.equal(hidden[:, 0], hidden[:, 1])
    counts = hidden[:, 0].sum(1)
    assert sorted(set(counts.tolist())) == list(range(16))  # 0.3 · 50 timepoints
    edges = hidden[:, 0].int().diff(dim=1).abs().sum(1)
    assert edges.max() <= 2
    where = hidden[:, 0].float().mean(0)
    assert where[10:40].std() < 0.03
    assert where[0] > 0
    assert where[-1] > 0


def test_mask_never_reaches_into_padding() -> None:
    values = LARGE.clone()
    values[:, :, 20:] = torch.nan
    masked, _ = seeded(parse_augmentation("mask:0.5"), values, torch.ones(400, 1), False, SPREAD)
    counts = (masked != values)[:, 0, :20].sum(1)
    assert counts.max() == 10
    assert counts.float().mean() == pytest.approx(5, abs=0.5)


@few
@given(batch=batches())
def test_crop_is_linear_interpolation_that_knows_gaps(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    values, targets, spread = batch
    changed, _ = seeded(parse_augmentation("crop:0.4"), values, targets, False, spread)
    torch.manual_seed(7)
    shares = 0.4 + 0.6 * torch.rand(len(values), 1)
    starts = torch.rand(len(values), 1)
    for case, series in enumerate(values.double().numpy()):
        observed = np.flatnonzero(~np.isnan(series).all(0))
        last = observed[-1] if len(observed) else -1
        share = float(shares[case])
        expected = np.full_like(series, np.nan)
        for time in range(last + 1):
            place = min(float(starts[case]) * (1 - share) * last + share * time, last)
            left, weight = int(place), place - int(place)
            if weight == 0:
                expected[:, time] = series[:, left]
            else:
                expected[:, time] = (1 - weight) * series[:, left] + weight * series[:, left + 1]
        np.testing.assert_allclose(changed[case], expected, rtol=1e-5)


def test_crop_takes_windows_of_every_length_from_everywhere() -> None:
    cropped = effect("crop:0.5") + LARGE - 1000
    first, last = cropped[:, 0, 0], cropped[:, 0, -1]
    share = (last - first) / 49
    assert share.min() == pytest.approx(0.5, abs=0.01)
    assert share.max() == pytest.approx(1, abs=0.01)
    assert share.mean() == pytest.approx(0.75, abs=0.02)
    assert first.min() < 0.5
    assert last.max() > 48.5
    assert torch.allclose(cropped[:, 0].diff(dim=1), share[:, None].expand(-1, 49), atol=1e-3)


@pytest.mark.parametrize("alpha", [0.01, 0.2, 1.0, 4.0])
def test_the_weight_of_mixup_is_the_smaller_part_of_a_beta_number(alpha: float) -> None:
    torch.manual_seed(7)
    weight = Mixup(alpha)._weight(torch.zeros(20_000, 1, 1))[:, 0]
    beta = np.random.default_rng(0).beta(alpha, alpha, 20_000)
    expected = np.minimum(beta, 1 - beta)
    points = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(np.quantile(weight.numpy(), points), np.quantile(expected, points), atol=0.02)


def test_mixup_takes_another_case_and_mixes_targets_alike() -> None:
    values = torch.arange(5.0)[:, None, None].expand(5, 2, 7).clone()
    changed, targets = seeded(parse_augmentation("mixup:5"), values, torch.eye(5), True, torch.ones(2))
    assert (targets.diag() < 1).all()
    assert (targets.diag() >= 0.5).all()
    assert torch.equal((targets > 0).sum(1), torch.full((5,), 2))
    assert torch.allclose(changed[:, 0, 0], targets @ torch.arange(5.0), atol=1e-6)


def test_mixup_mixes_only_what_both_have() -> None:
    nan = float("nan")
    values = torch.tensor([[[0.0, 0.0, 0.0, 0.0]], [[1.0, nan, nan, nan]]])
    changed, targets = seeded(parse_augmentation("mixup:5"), values, torch.eye(2), False, torch.ones(1))
    weight = changed[0, 0, 0]
    assert 0 < weight <= 0.5
    assert changed[0, 0, 1:].tolist() == [0, 0, 0]
    assert targets[0, 1] == pytest.approx(float(weight) / 4)  # one of its four timepoints was mixed
    assert changed[1, 0, 0] == pytest.approx(1 - float(targets[1, 0]))
    alone, kept = seeded(
        parse_augmentation("mixup:5"), torch.full((2, 1, 4), nan), torch.eye(2), False, torch.ones(1)
    )
    assert alone.isnan().all()
    assert torch.equal(kept, torch.eye(2))


def test_words_are_applied_from_left_to_right() -> None:
    values = torch.randn(4, 2, 9)
    names = [type(change).__name__ for change in parse_augmentation("mask:0.5+jitter:0.1").changes]
    assert names == ["Mask", "Jitter"]
    masked_last, _ = seeded(
        parse_augmentation("jitter:0.1+mask:0.9"), values, torch.eye(4), True, torch.ones(2)
    )
    assert any(len(set(row.tolist())) < 9 for row in masked_last[:, 0])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "jiter:0.1",
            r"augment 'jiter:0.1': there is no word 'jiter'. Did you mean 'jitter'\? There are: jitter:σ,",
        ),
        (
            "wobble:1",
            r"there is no word 'wobble'. There are: .*mixup:α. Join them with '\+', e.g. jitter:0.03",
        ),
        ("jitter", r"augment 'jitter': 'jitter' needs a number from 0 to 1 \(usage: jitter:σ\)"),
        ("jitter:", r"'jitter' needs a number from 0 to 1 \(usage: jitter:σ\)"),
        ("jitter:much", r"'jitter' needs a number from 0 to 1, not 'much' \(usage: jitter:σ\)"),
        ("jitter:0.1,scale:0.1", r"'jitter' needs a number from 0 to 1, not '0.1,scale:0.1'"),
        ("jitter:3", r"'jitter' needs a number from 0 to 1, not 3"),
        ("scale:-0.1", r"'scale' needs a number from 0 to 1, not -0.1"),
        ("mixup:nan", r"'mixup' needs a number from 0 to 10, not nan"),
        ("crop:0", r"'crop' needs a number from 0.1 to 1, not 0 \(usage: crop:share\)"),
        ("mask:1", r"'mask' needs a number from 0 to 0.9, not 1"),
        ("mixup:0.2+mixup:0.4", r"'mixup' stands twice, write 'mixup:0.2'"),
        ("crop:0.9+mask:0.1+crop:0.5", r"'crop' stands twice, write 'crop:0.9\+mask:0.1'"),
        ("crop:0.9+", r"augment 'crop:0.9\+': a word is missing; words are joined by one '\+'"),
        ("none+crop:0.9", r"'none' stands by itself"),
    ],
)
def test_a_wrong_spec_is_told_the_right_one(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_augmentation(spec)


def test_a_spec_is_spelled_in_one_way() -> None:
    assert str(parse_augmentation(" jitter:.030 + crop:1.0+mixup : 2")) == "jitter:0.03+crop:1+mixup:2"
    assert parse_augmentation("mask:0.10") == parse_augmentation("mask:0.1")


def test_every_word_is_tested_and_says_where_it_comes_from() -> None:
    assert {word.name for word in augment_words()} == set(STRONG)
    assert all(word.summary and word.source and word.make.__doc__ for word in augment_words())

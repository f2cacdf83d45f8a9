"""Dropout and stochastic depth: their share, their mean, their gradient, and that a seed repeats them."""

from __future__ import annotations

import pytest
import torch

from tsattn.models.dropout import Dropout, StochasticDepth
from tsattn.models.packing import Packed, Padded


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("shape", [(100_003,), (50, 40, 50)])
def test_a_share_is_dropped_and_the_mean_stays(share: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.ones(shape)
    found = Dropout(share)(x)
    zero = (found == 0).double().mean().item()
    assert zero == pytest.approx(share, abs=5 * (share * (1 - share) / x.numel()) ** 0.5)
    torch.testing.assert_close(
        found[found != 0], torch.full_like(found[found != 0], 1 / (1 - share)), rtol=1e-3, atol=0
    )
    # Neighbours come from one draw and are still independent.
    flat = (found.flatten()[: x.numel() // 4 * 4].view(-1, 4) == 0).double()
    expected = torch.full((6,), share**2, dtype=torch.float64)
    both = torch.stack([(flat[:, i] * flat[:, j]).mean() for i in range(4) for j in range(i)])
    torch.testing.assert_close(both, expected, rtol=0, atol=5 * (share**2 / len(flat)) ** 0.5 + 1e-9)


@pytest.mark.parametrize("kind", [Dropout, StochasticDepth])
def test_gradient_seed_and_evaluation(kind: type[Dropout | StochasticDepth]) -> None:
    layer, x = kind(0.4), torch.randn(64, 5, 6, requires_grad=True)
    given = (x,) if kind is Dropout else (x, Padded(64, None))
    torch.manual_seed(3)
    once = layer(*given)
    torch.manual_seed(3)
    assert torch.equal(layer(*given), once)
    assert not torch.equal(layer(*given), once)
    once.sum().backward()
    torch.testing.assert_close(x.grad, torch.where(once == 0, 0.0, 1 / 0.6), rtol=1e-4, atol=0)
    assert layer.eval()(*given) is x
    assert kind(0.0)(*given) is x


def test_stochastic_depth_leaves_out_whole_cases() -> None:
    torch.manual_seed(0)
    found = StochasticDepth(0.25)(torch.ones(4000, 3, 2), Padded(4000, None))
    out = (found == 0).all((1, 2))
    assert torch.equal(out, (found == 0).any((1, 2)))
    assert out.double().mean().item() == pytest.approx(0.25, abs=0.035)
    assert found.mean().item() == pytest.approx(1, abs=0.05)


def test_in_bfloat16_too() -> None:
    x = torch.ones(1000, dtype=torch.bfloat16)
    assert Dropout(0.5)(x).dtype == torch.bfloat16
    assert StochasticDepth(0.5)(x[:, None, None], Padded(1000, None)).dtype == torch.bfloat16


def test_stochastic_depth_leaves_out_the_same_cases_without_padding() -> None:
    visible = torch.rand(300, 7, generator=torch.Generator().manual_seed(1)) < 0.5
    visible[:, 3] = True
    x = torch.ones(300, 7, 2)
    torch.manual_seed(0)
    padded = StochasticDepth(0.5)(x, Padded(300, visible))
    torch.manual_seed(0)
    layout = Packed(visible)
    packed = StochasticDepth(0.5)(layout.pack(x), layout)
    assert torch.equal(packed, padded[visible])

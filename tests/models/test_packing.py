"""Training without the tokens that nobody sees: the same function and the same gradients as with them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tsattn.config import ModelConfig
from tsattn.models import classifier
from tsattn.models.attention import parts
from tsattn.models.classifier import TransformerClassifier
from tsattn.models.packing import Flat, Packed, Padded, lay_out


def spoilt(cases: int = 6, channels: int = 3, length: int = 23) -> Tensor:
    """Series of unequal length with gaps; the last has nothing observed."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(cases, channels, length, generator=generator)
    for case in range(cases):
        values[case, :, length - 3 * case :] = torch.nan
    values[1, :, 4:7] = torch.nan
    values[2, 0, 2] = torch.nan
    values[-1] = torch.nan
    return values


def padded_layout(x: Tensor, seen: Tensor | None, training: bool) -> Padded:
    return lay_out(x, seen, training=False)


SPECS = [*(part.name for part in parts()), "bn+sh", "linear+bn", "local:4+bn+sh"]
WORDS = [(spec, "linear") for spec in SPECS]
WORDS += [("bn+sh", word) for word in ("patch:4", "patch:5,2", "multiscale")]


@pytest.mark.parametrize(("attention", "tokens"), WORDS)
def test_packed_is_padded(attention: str, tokens: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    config = ModelConfig(
        channels=3, classes=4, attention=attention, tokens=tokens, width=16, heads=4, layers=2, dropout=0.0
    )
    model, values = TransformerClassifier(config).train(), spoilt()
    found = {}
    for name, layout in (("packed", lay_out), ("padded", padded_layout)):
        monkeypatch.setattr(classifier, "lay_out", layout)
        model.zero_grad()
        logits = model(values)
        logits.square().sum().backward()
        gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        found[name] = (logits.detach(), gradients)
    torch.testing.assert_close(found["packed"][0], found["padded"][0], rtol=1e-5, atol=1e-5)
    assert found["packed"][1].keys() == found["padded"][1].keys()
    for name, gradient in found["padded"][1].items():
        torch.testing.assert_close(found["packed"][1][name], gradient, rtol=1e-4, atol=1e-4, msg=name)


@pytest.mark.parametrize(("attention", "tokens"), WORDS)
def test_flat_is_padded(attention: str, tokens: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    config = ModelConfig(channels=3, classes=4, attention=attention, tokens=tokens, width=16, heads=4)
    model, values = TransformerClassifier(config).eval(), spoilt()
    with torch.inference_mode():
        padded = model(values)
        monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
        assert type(lay_out(torch.zeros(2, 3, 4), None, training=False)) is Flat
        torch.testing.assert_close(model(values), padded, rtol=1e-5, atol=1e-5)


def test_a_number_a_case_in_every_layout() -> None:
    x, seen = torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    of_cases = torch.tensor([2.0, -1.0])
    for layout in (Padded(2, seen), Flat(x, seen), Packed(seen)):
        scaled = layout.unpack(layout.pack(x) * layout.of_tokens(of_cases))
        assert torch.equal(scaled, x * of_cases[:, None, None])


def test_where_it_is_packed() -> None:
    x, seen = torch.zeros(2, 3, 4), torch.tensor([[True, True, False], [False, False, False]])
    packed = lay_out(x, seen, training=True)
    assert isinstance(packed, Packed)
    assert packed.visible is not None
    assert packed.visible.tolist() == [[True, True, False], [True, True, True]]  # of nothing observed, all
    assert packed.pack(x).shape == (5, 4)
    for layout in (
        lay_out(x, seen, training=False),
        lay_out(x, torch.ones(2, 3, dtype=torch.bool), training=True),
        lay_out(x, None, training=True),
        lay_out(x.to("meta"), seen.to("meta"), training=True),
    ):
        assert type(layout) is Padded
        assert layout.pack(x) is x
        assert layout.unpack(x) is x


def test_rows_come_back_where_they_were() -> None:
    visible = torch.tensor([[True, False, True], [False, True, False]])
    layout, x = Packed(visible), torch.randn(2, 3, 5, requires_grad=True)
    back = layout.unpack(layout.pack(x))
    assert torch.equal(back, x * visible[:, :, None])
    weight = torch.randn(2, 3, 5)
    (back * weight).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, weight * visible[:, :, None])
    double = x.detach().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda y: layout.unpack(layout.pack(y).square()), (double,))

"""The laws of padding and gaps through the whole model, for every token word."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tsattn.config import ModelConfig
from tsattn.errors import InputError
from tsattn.models.classifier import Probabilities, TransformerClassifier
from tsattn.models.layers import SinusoidalPosition
from tsattn.models.tokens import build_tokens, token_words, with_stride
from tsattn.models.tokens.competing import CompetingTokens, first_differences
from tsattn.models.tokens.convolutions import MultiscaleTokens

NAN = float("nan")
EXAMPLES = {"patch": "patch:6,4"}  # words that cannot stand without an option
WORDS = [
    *(EXAMPLES.get(word.name, word.name) for word in token_words()),
    *("multiscale:3", "hydra:4", "multiscale:2+hydra:2"),
]


def classifier(tokens: str = "multiscale", attention: str = "bn+sh") -> Probabilities:
    config = ModelConfig(channels=3, classes=4, attention=attention, tokens=tokens, width=32, heads=8)
    model = TransformerClassifier(config)
    model.standardise.mean.copy_(torch.tensor([5.0, -1.0, 0.0]))
    model.standardise.std.copy_(torch.tensor([2.0, 0.1, 1.0]))
    return Probabilities(model).eval()


def series(cases: int = 4, length: int = 41) -> Tensor:
    values = torch.randn(cases, 3, length)
    values[0, :, 7:12] = NAN  # a gap
    values[1, 1, 20] = NAN  # one channel missing at an observed timepoint
    values[2, :, 15:] = NAN  # a shorter case
    return values


@pytest.mark.parametrize("word", WORDS)
class TestEveryTokenWord:
    def test_amount_of_padding_changes_nothing(self, word: str) -> None:
        model, values = classifier(word), series()
        padded = torch.cat([values, torch.full((4, 3, 29), NAN)], dim=2)
        torch.testing.assert_close(model(padded), model(values), rtol=0, atol=1e-5)

    def test_a_case_in_a_batch_equals_the_case_alone(self, word: str) -> None:
        model, values = classifier(word), series()
        together = model(values)
        torch.testing.assert_close(together[2:3], model(values[2:3, :, :15]), rtol=0, atol=1e-5)
        torch.testing.assert_close(together[0:1], model(values[0:1]), rtol=0, atol=1e-5)

    def test_complete_series_need_no_mask(self, word: str) -> None:
        model, values = classifier(word).classifier, torch.randn(4, 3, 41)
        torch.testing.assert_close(model(values, True), model(values), rtol=0, atol=1e-5)

    def test_a_missing_value_is_its_channels_training_mean(self, word: str) -> None:
        model, values = classifier(word), torch.randn(2, 3, 41)
        filled = values.clone()
        values[0, 1, 9], filled[0, 1, 9] = NAN, -1.0
        torch.testing.assert_close(model(values), model(filled), rtol=0, atol=1e-6)

    def test_a_case_in_which_nothing_is_observed(self, word: str) -> None:
        model, values = classifier(word), series()
        values[3] = NAN
        together = model(values)
        assert together.isfinite().all()
        torch.testing.assert_close(together[3:4], model(torch.full((1, 3, 1), NAN)), rtol=0, atol=1e-6)

    def test_every_parameter_learns(self, word: str) -> None:
        model, values = classifier(word).classifier.train(), series()
        model(values).square().sum().backward()
        silent = [
            name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0
        ]
        assert silent == []

    def test_shapes(self, word: str) -> None:
        stage = build_tokens(word, 3, 32)
        for length in (1, 2, 4, 5, 6, 8, 40, 41):
            x, observed = torch.randn(2, 3, length), torch.ones(2, length, dtype=torch.bool)
            tokens, seen = stage(x, observed)
            assert tokens.shape == (2, math.ceil(length / getattr(stage, "stride", 1)), 32)
            assert seen is not None
            assert seen.shape == tokens.shape[:2]
            assert seen.all()
            torch.testing.assert_close(stage(x, None)[0], tokens)


def test_probabilities_sum_to_one() -> None:
    torch.testing.assert_close(classifier()(series()).sum(1), torch.ones(4))


@pytest.mark.parametrize(
    ("word", "says"),
    [
        (
            "patches",
            "there is no token stage 'patches'. Did you mean 'patch'? There are: conv, hydra[:S], lin",
        ),
        ("patch", "patch needs its length in timepoints"),
        ("patch:0", "patch needs its length"),
        ("patch:1,2,3", "patch needs its length"),
        ("patch:4,5", "stride 5 would skip timepoints between patches of 4"),
        ("conv:3", "'conv' takes no option, write 'conv'"),
        ("hydra:0", "expected timepoints a token, from 1 to 4096, e.g. 4 (usage: hydra[:S])"),
        ("conv+", "there is no token stage ''"),
        ("conv+conv", "'conv' stands twice, write 'conv'"),
        ("conv+multiscale:2", "begin at the same timepoints (conv every 1, multiscale:2 every 2)"),
    ],
)
def test_refused_words(word: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        build_tokens(word, 3, 32)
    assert says in str(error.value)


def test_width_must_be_divisible() -> None:
    with pytest.raises(InputError, match=r"width 30 cannot be divided among 8 heads: try --width 32"):
        TransformerClassifier(ModelConfig(channels=1, classes=2, width=30))
    with pytest.raises(InputError, match="the width must be a multiple of 4, not 30"):
        TransformerClassifier(ModelConfig(channels=1, classes=2, width=30, heads=2))


@pytest.mark.parametrize(
    ("given", "thinner"),
    [
        ("multiscale", "multiscale:4"),
        ("multiscale+hydra", "multiscale:4+hydra:4"),
        ("multiscale:2+hydra:2", "multiscale:2+hydra:2"),  # what is said stays
        ("multiscale+conv", "multiscale+conv"),  # conv has none, and tokens that are added up begin alike
        ("linear", "linear"),
        ("patch:16,8", "patch:16,8"),
    ],
)
def test_a_stride_where_none_is_said(given: str, thinner: str) -> None:
    assert with_stride(given, 4) == thinner
    assert with_stride(given, 1) == given


def test_stages_joined_are_added_up() -> None:
    stage = build_tokens("multiscale+conv", 3, 32)
    x, observed = torch.randn(2, 3, 21), torch.rand(2, 21) > 0.3
    x = x * observed[:, None]
    one, other = (part(x, observed)[0] for part in stage.stages)  # type: ignore[union-attr]
    torch.testing.assert_close(stage(x, observed)[0], one + other)


def test_a_thinned_token_is_the_mean_of_what_is_observed() -> None:
    stage = build_tokens("multiscale:4", 2, 32)
    assert isinstance(stage, MultiscaleTokens)
    x, observed = torch.randn(1, 32, 10), torch.tensor([[True, False, True, False, *[False] * 4, True, True]])
    means, seen = stage.thin(x, observed)
    assert seen is not None
    assert seen.tolist() == [[True, False, True]]
    torch.testing.assert_close(means[:, :, 0], x[:, :, [0, 2]].mean(2))
    torch.testing.assert_close(means[:, :, 2], x[:, :, 8:].mean(2))  # the last stretch is a short one
    assert not means[:, :, 1].any()


def test_competing_kernels_share_out_one_vote_a_group() -> None:
    stage = build_tokens("hydra", 3, 32)
    assert isinstance(stage, CompetingTokens)
    assert stage.kernels.mean(3).abs().max() < 1e-6
    torch.testing.assert_close(stage.kernels.norm(dim=3), torch.ones_like(stage.kernels[..., 0]))
    votes = stage._votes(torch.randn(2, 6, 50), 1).unflatten(1, (16, 8))
    torch.testing.assert_close(votes.sum(2), torch.zeros(2, 16, 50), rtol=0, atol=1e-4)
    assert votes.max() > 4  # of 7, the most there can be: where one fits best it has most of the votes
    assert {name for name, _ in stage.named_parameters()} == {
        *("project.weight", "project.bias", "norm.weight", "norm.bias")
    }


def test_first_differences_are_never_across_a_gap() -> None:
    x = torch.tensor([[[1.0, 3.0, 0.0, 7.0, 8.0]]])
    observed = torch.tensor([[True, True, False, True, True]])
    assert first_differences(x, observed).tolist() == [[[0.0, 2.0, 0.0, 0.0, 1.0]]]
    assert first_differences(x, None).tolist() == [[[0.0, 2.0, -3.0, 7.0, 1.0]]]


def test_a_multiscale_token_sees_65_and_4_timepoints() -> None:
    """Views of 9, 17, 33 and 65 timepoints, and the mixing convolution of 5 over them."""
    stage = build_tokens("multiscale", 1, 32)
    x = torch.zeros(1, 1, 201)
    moved = x.clone()
    moved[0, 0, 100] = 1.0
    reached = (stage(moved, None)[0] - stage(x, None)[0]).abs().amax(2)[0] > 1e-7
    seen = torch.nonzero(reached)[:, 0]
    assert (int(seen.min()), int(seen.max())) == (100 - 34, 100 + 34)
    assert isinstance(stage, MultiscaleTokens)
    views = [
        view.dilation[0] * (view.kernel_size[0] - 1) + 1
        for view in stage.views
        if isinstance(view, torch.nn.Conv1d)
    ]
    assert views == [9, 17, 33, 65]


def test_position_is_that_of_the_first_transformer() -> None:
    position = SinusoidalPosition(6)
    waves = (position(torch.zeros(1, 50, 6)) / position.gain)[0].numpy(force=True)
    for place in (0, 7, 49):
        for pair in range(3):
            angle = place / 10_000 ** (pair / 3)
            assert waves[place, pair] == pytest.approx(math.sin(angle), abs=1e-5)
            assert waves[place, 3 + pair] == pytest.approx(math.cos(angle), abs=1e-5)


def test_no_finite_value_overflows() -> None:
    model, values = classifier(), torch.randn(3, 3, 20)
    values[0], values[1, 0, 3], values[2] = 3e38, -3e38, 1e25
    assert model(values).isfinite().all()

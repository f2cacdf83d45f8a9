"""Fixed convolutions beside the transformer, and each case's own scale: laws, formulas, closed form."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tsattn.config import ModelConfig
from tsattn.data.collection import Collection
from tsattn.errors import InputError
from tsattn.export.half import in_half
from tsattn.models.beside import RidgeClassifier
from tsattn.models.classifier import TRUST, Probabilities, TransformerClassifier
from tsattn.models.convolutions import KERNELS, Convolutions, all_kernels
from tsattn.models.layers import own_scale
from tsattn.training.closed_form import SHRINKAGE, SURENESS, fit_beside, fit_ridge
from tsattn.training.resident import ResidentCases
from tsattn.training.statistics import take_statistics

NAN = float("nan")


def config(**changes: object) -> ModelConfig:
    shape = {"channels": 3, "classes": 4, "width": 32, "convolutions": 2000, "dilations": 3}
    return ModelConfig(**{**shape, "normalise": "both", **changes})  # type: ignore[arg-type]


def collection(cases: int = 60, length: int = 40) -> Collection:
    """Four classes of different rhythm, in three channels of different size."""
    random = np.random.default_rng(0)
    time = np.arange(length)
    labels = tuple("abcd"[case % 4] for case in range(cases))
    rhythm = np.array([2 + 2 * (case % 4) for case in range(cases)])
    waves = np.sin(2 * np.pi * rhythm[:, None] * time / length + random.uniform(0, 6, (cases, 1)))
    values = waves[:, None] * np.array([1, 100, 1e-3])[:, None] + np.array([0, 50, 0])[:, None]
    values = values + random.normal(size=values.shape) * np.array([1, 100, 1e-3])[:, None] * 0.5
    values[::7, :, 30:] = NAN
    return Collection(
        values=values.astype(np.float32),
        ids=tuple(map(str, range(cases))),
        channels=("a", "b", "c"),
        labels=labels,
        classes=("a", "b", "c", "d"),
    )


@pytest.fixture(scope="module")
def fitted() -> TransformerClassifier:
    torch.manual_seed(0)
    model = TransformerClassifier(config())
    train = collection()
    take_statistics(model, train)
    fitted = fit_beside(model, ResidentCases(train, train.classes, torch.device("cpu")), seed=0)
    assert fitted.ridge.accuracy > 0.8
    return model.eval()


def says(model: TransformerClassifier, values: Tensor, complete: bool = False) -> Tensor:
    """Probabilities."""
    return torch.softmax(model(values, complete), dim=1)


def series(cases: int = 4, length: int = 41) -> Tensor:
    torch.manual_seed(3)
    values = torch.randn(cases, 3, length) * torch.tensor([1.0, 100.0, 1e-3])[:, None]
    values[0, :, 7:12] = NAN  # a gap
    values[1, 1, 20] = NAN  # one channel missing at an observed timepoint
    values[2, :, 15:] = NAN  # a shorter case
    return values


class TestLaws:
    def test_amount_of_padding_changes_nothing(self, fitted: TransformerClassifier) -> None:
        values = series()
        padded = torch.cat([values, torch.full((4, 3, 29), NAN)], dim=2)
        torch.testing.assert_close(says(fitted, padded), says(fitted, values), rtol=0, atol=1e-4)

    def test_a_case_in_a_batch_equals_the_case_alone(self, fitted: TransformerClassifier) -> None:
        values = series()
        together = says(fitted, values)
        torch.testing.assert_close(together[2:3], says(fitted, values[2:3, :, :15]), rtol=0, atol=1e-4)
        torch.testing.assert_close(together[0:1], says(fitted, values[0:1]), rtol=0, atol=1e-4)

    def test_complete_series_need_no_mask(self, fitted: TransformerClassifier) -> None:
        values = torch.randn(4, 3, 41)
        torch.testing.assert_close(says(fitted, values, True), says(fitted, values), rtol=0, atol=1e-4)

    def test_a_case_in_which_nothing_is_observed(self, fitted: TransformerClassifier) -> None:
        values = series()
        values[3] = NAN
        together = says(fitted, values)
        assert together.isfinite().all()
        torch.testing.assert_close(together[3:4], says(fitted, torch.full((1, 3, 1), NAN)), rtol=0, atol=1e-4)

    @pytest.mark.parametrize("size", [1e-38, 1e-20, 1e20, 3e38])
    def test_no_size_of_values_overflows(self, fitted: TransformerClassifier, size: float) -> None:
        assert fitted(torch.randn(3, 3, 20).clamp(-1, 1) * size).isfinite().all()

    def test_series_shorter_than_every_kernel(self, fitted: TransformerClassifier) -> None:
        assert fitted(torch.randn(2, 3, 1)).isfinite().all()

    def test_in_training_the_transformer_is_alone(self, fitted: TransformerClassifier) -> None:
        alone = copy.deepcopy(fitted)
        alone.beside = None
        values = torch.randn(4, 3, 41)
        both, bare = copy.deepcopy(fitted).train(), alone.train()
        torch.manual_seed(1)
        expected = bare(values)
        torch.manual_seed(1)
        assert torch.equal(both(values), expected)

    def test_the_two_are_multiplied(self, fitted: TransformerClassifier) -> None:
        values, alone = torch.randn(4, 3, 41), copy.deepcopy(fitted)
        alone.beside = None
        assert fitted.beside is not None
        own = torch.log_softmax(alone(values), dim=1)
        of_convolutions = fitted.beside(values, None)
        torch.testing.assert_close(fitted(values), TRUST * (fitted.beside.say * own + of_convolutions))

    def test_the_transformers_weights_are_the_same_without(self) -> None:
        torch.manual_seed(5)
        bare = TransformerClassifier(config(convolutions=0))
        after = torch.rand(3)
        torch.manual_seed(5)
        both = TransformerClassifier(config())
        assert torch.equal(after, torch.rand(3)), "and the generator goes on as without"
        for name, parameter in bare.named_parameters():
            assert torch.equal(parameter, both.get_parameter(name)), name

    def test_half_precision_leaves_convolutions_in_float32(self, fitted: TransformerClassifier) -> None:
        values = series()
        narrow = in_half(fitted, wide_attention=True)
        assert isinstance(narrow, TransformerClassifier)
        assert narrow.beside is not None
        assert narrow.beside.weight.dtype == torch.float32
        torch.testing.assert_close(narrow(values).float(), fitted(values), rtol=0, atol=0.1)


class TestOwnScale:
    def test_size_and_place_of_a_case_do_not_matter(self) -> None:
        x = torch.randn(4, 3, 50)
        for factor, shift in [(1e-6, 0.0), (1e6, 3e6), (-2.0, 1.0)]:
            moved = x * factor + shift
            sign = 1 if factor > 0 else -1
            torch.testing.assert_close(own_scale(moved), sign * own_scale(x), rtol=0, atol=2e-4)

    def test_formula(self) -> None:
        values = series()
        found = own_scale(values).numpy()
        expected = values.double().numpy()
        mean = np.nanmean(expected, axis=2, keepdims=True)
        std = np.nanstd(expected, axis=2, keepdims=True)
        np.testing.assert_allclose(found, np.nan_to_num((expected - mean) / std), atol=1e-5)

    def test_small_cases_keep_their_digits_beside_large_ones(self) -> None:
        small = torch.sin(torch.arange(50) / 3)[None, None] * 1e-5
        torch.testing.assert_close(own_scale(small), own_scale(small * 1e6), rtol=0, atol=1e-5)

    def test_a_mean_far_away_is_taken_out_whole(self) -> None:
        """In whatever order it was added up: else engines and paddings disagree on a step of a barometer."""
        torch.manual_seed(0)
        values = 1000 + (torch.rand(50, 2, 97) < 0.3).float()
        values[torch.rand(values.shape) < 0.2] = NAN
        torch.testing.assert_close(own_scale(values.flip(2)).flip(2), own_scale(values), rtol=0, atol=5e-6)
        seen = values.double()
        centred = seen - seen.nanmean(2, keepdim=True)
        exact = (centred / centred.square().nanmean(2, keepdim=True).sqrt()).nan_to_num(0).float()
        torch.testing.assert_close(own_scale(values), exact, rtol=0, atol=2e-4)

    def test_a_constant_channel_is_zero(self) -> None:
        assert own_scale(torch.full((2, 3, 20), 7.1)).abs().max() < 0.2
        assert torch.equal(own_scale(torch.zeros(2, 3, 20)), torch.zeros(2, 3, 20))


class TestConvolutions:
    def test_kernels_are_all_there_are(self) -> None:
        kernels = all_kernels()
        assert kernels.shape == (KERNELS, 9)
        assert torch.equal(kernels.sum(dim=1), torch.zeros(KERNELS))
        assert (
            len({tuple(kernel) for kernel in kernels.tolist()})
            == KERNELS
            == len(list(itertools.combinations(range(9), 3)))
        )

    def test_formula(self) -> None:
        """Against loops over responses and thresholds in float64."""
        torch.manual_seed(1)
        convolutions = Convolutions(2, 2, 3, torch.Generator().manual_seed(1))
        x = torch.randn(5, 2, 30)
        seen = torch.ones(5, 30, dtype=torch.bool)
        seen[3, 20:] = False
        x = x * seen[:, None]
        convolutions.place_thresholds(x, seen)
        shares, heights = convolutions(x, seen)
        kernels = all_kernels().double().numpy()
        steps = np.diff(x.double().numpy(), axis=2, prepend=0)
        steps[:, :, 0] = 0
        steps = steps * (seen & F.pad(seen, (1, 0))[:, :-1])[:, None].numpy()
        place = 0
        for dilation in range(2):
            for threshold in range(3):
                for response in range(2 * KERNELS):
                    of = x.double().numpy() if response < KERNELS else steps
                    signal = np.einsum(
                        "c,bct->bt", convolutions.channels[dilation, response].double().numpy(), of
                    )
                    around = np.pad(signal, ((0, 0), (4 * 2**dilation,) * 2))
                    value = sum(
                        kernels[response % KERNELS, tap] * around[:, tap * 2**dilation :][:, :30]
                        for tap in range(9)
                    )
                    high = convolutions.thresholds[dilation, threshold, response].item()
                    slope = convolutions.slopes[dilation, threshold, response].item()
                    above = np.clip((value - high) * slope + 0.5, 0, 1)
                    expected = [row[mask].mean() for row, mask in zip(above, seen.numpy(), strict=True)]
                    np.testing.assert_allclose(shares[:, place].numpy(), expected, atol=2e-3)
                    place += 1
                    size = [np.log(np.abs(r[m]).mean()) for r, m in zip(value, seen.numpy(), strict=True)]
                    at = dilation * 2 * KERNELS + response
                    np.testing.assert_allclose(heights[:, at].numpy(), size, atol=1e-4)
        assert place == convolutions.shares == shares.shape[1]
        assert convolutions.heights == heights.shape[1] == 2 * 2 * KERNELS

    def test_thresholds_spread_over_the_responses(self) -> None:
        torch.manual_seed(1)
        convolutions = Convolutions(2, 1, 40, torch.Generator().manual_seed(1))
        x = torch.randn(20, 2, 60)
        convolutions.place_thresholds(x, torch.ones(20, 60, dtype=torch.bool))
        means = convolutions(x, None)[0].mean(dim=0)
        assert means.min() < 0.1
        assert means.max() > 0.9
        assert abs(means.mean().item() - 0.5) < 0.02

    def test_a_part_of_long_series_places_them_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A few cases at a time, to the same thresholds; and by fewer timepoints, to about the same."""
        torch.manual_seed(1)
        x, seen = torch.randn(20, 2, 60), torch.rand(20, 60) < 0.9
        x = torch.where(seen[:, None], x, 0.0)
        placed = []
        for timepoints, numbers in ((1 << 18, 1 << 24), (1 << 18, 50_000), (700, 50_000)):
            monkeypatch.setattr("tsattn.models.convolutions.MOST_TIMEPOINTS", timepoints)
            monkeypatch.setattr("tsattn.models.convolutions.MOST_NUMBERS", numbers)
            placed.append(Convolutions(2, 1, 40, torch.Generator().manual_seed(1)))
            placed[-1].place_thresholds(x, seen)
        torch.testing.assert_close(placed[1].thresholds, placed[0].thresholds)
        assert not torch.equal(placed[2].thresholds, placed[0].thresholds)
        means = placed[2](x, seen)[0].mean(dim=0)
        assert means.min() < 0.1
        assert means.max() > 0.9
        assert abs(means.mean().item() - 0.5) < 0.02

    def test_two_models_have_other_thresholds(self) -> None:
        x, seen = torch.randn(20, 1, 60), torch.ones(20, 60, dtype=torch.bool)
        made = [Convolutions(1, 1, 4, torch.Generator().manual_seed(seed)) for seed in (0, 1)]
        for each in made:
            each.place_thresholds(x, seen)
        assert torch.equal(made[0].channels, made[1].channels), "of a single channel nothing is drawn"
        assert not torch.equal(made[0].thresholds, made[1].thresholds)

    def test_every_channel_can_be_drawn(self) -> None:
        torch.manual_seed(0)
        drawn = Convolutions(12, 4, 1, torch.Generator().manual_seed(0)).channels
        assert set(drawn.unique().tolist()) == {0.0, 1.0}
        assert drawn.sum(dim=2).min() >= 1
        assert drawn.sum(dim=2).max() <= 9
        assert (drawn.sum(dim=(0, 1)) > 0).all()


class TestRidge:
    def test_emphasis_is_as_many_copies(self) -> None:
        random = np.random.default_rng(3)
        features = torch.from_numpy(random.normal(size=(30, 5)))
        targets = torch.from_numpy(random.integers(0, 3, 30))
        four_times = torch.tensor([2.0, 1, 1, 1, 1], dtype=torch.float64)  # squared
        emphasised = fit_ridge(features, targets, 3, four_times)
        copied = fit_ridge(features[:, [0, 0, 0, 0, 1, 2, 3, 4]], targets, 3)
        torch.testing.assert_close(emphasised.left_out, copied.left_out)
        torch.testing.assert_close(emphasised.weight[:, 0], copied.weight[:, :4].sum(dim=1))

    def test_left_out_equals_refitting_without_the_case(self) -> None:
        """What one decomposition gives is what as many regressions would have given."""
        random = np.random.default_rng(0)
        features = torch.from_numpy(random.normal(size=(25, 60)))
        targets = torch.from_numpy(random.integers(0, 3, 25))
        features[torch.arange(25), targets] += 2
        ridge = fit_ridge(features, targets, 3)
        standard = ((features - features.mean(0)) / features.std(0, correction=0)).numpy()
        wanted = 2.0 * F.one_hot(targets, 3).numpy() - 1
        found = {}
        for shrinkage, sureness in itertools.product(SHRINKAGE, SURENESS):
            scores = np.array([self._without(standard, wanted, i, shrinkage * 60) for i in range(25)])
            loss = F.cross_entropy(
                torch.from_numpy(scores / sureness), targets, label_smoothing=1 / 26
            ).item()
            found[loss] = scores / sureness
        assert ridge.loss == pytest.approx(min(found), rel=1e-6)
        np.testing.assert_allclose(ridge.left_out.numpy(), found[min(found)], rtol=1e-5, atol=1e-6)

    @staticmethod
    def _without(standard: np.ndarray, wanted: np.ndarray, case: int, shrinkage: float) -> np.ndarray:
        """Scores of a case from the others, with an intercept that is not shrunk."""
        rest = np.arange(len(standard)) != case
        design = np.c_[np.ones(len(standard)), standard]
        penalty = np.diag([0.0, *[shrinkage] * standard.shape[1]])
        inside = design[rest].T @ design[rest] + penalty
        result: np.ndarray = design[case] @ np.linalg.solve(inside, design[rest].T @ wanted[rest])
        return result

    def test_more_features_than_cases_and_fewer(self) -> None:
        random = np.random.default_rng(1)
        for cases, many in ((12, 300), (300, 5)):
            targets = torch.from_numpy(np.arange(cases) % 3)
            features = torch.from_numpy(random.normal(size=(cases, many)).astype(np.float32))
            features[torch.arange(cases), targets] += 6
            ridge = fit_ridge(features, targets, 3)
            right = (F.linear(features, ridge.weight, ridge.bias).argmax(1) == targets).float().mean()
            assert right > 0.95

    def test_that_all_were_right_makes_nobody_sure(self) -> None:
        targets = torch.arange(40) % 2
        features = F.one_hot(targets, 2).double() + 1e-3 * torch.randn(40, 2, dtype=torch.float64)
        ridge = fit_ridge(features, targets, 2)
        assert ridge.accuracy == 1
        sure = torch.softmax(F.linear(features, ridge.weight, ridge.bias), dim=1).amax(dim=1)
        assert 0.9 < sure.min() <= sure.max() < 0.999

    def test_features_that_say_nothing(self) -> None:
        targets = torch.tensor([0, 1] * 10)
        ridge = fit_ridge(torch.full((20, 8), 0.3), targets, 2)
        assert torch.equal(ridge.weight, torch.zeros(2, 8))
        assert ridge.bias.isfinite().all()

    def test_a_transformer_that_knows_nothing_has_no_say(self) -> None:
        train = collection()
        torch.manual_seed(0)
        model = TransformerClassifier(config())
        take_statistics(model, train)
        nn.init.normal_(model.head.weight, std=50.0)  # sure of itself, and wrong
        fit_beside(model, ResidentCases(train, train.classes, torch.device("cpu")), seed=0)
        assert model.beside is not None
        assert model.beside.say.item() < 0.2

    def test_cases_in_which_nothing_is_observed_place_no_thresholds(self) -> None:
        """Even where there are so few others that the first cases drawn are all empty."""
        train = collection(200)
        values = train.values.copy()
        drawn = np.random.default_rng(0).permutation(200)
        values[drawn[:190]] = NAN
        model = TransformerClassifier(config(convolutions=700, dilations=1))
        few = dataclasses.replace(train, values=values)
        take_statistics(model, few)
        fit_beside(model, ResidentCases(few, few.classes, torch.device("cpu")), seed=0)
        assert model.beside is not None
        assert model.beside.common.thresholds.std() > 0
        values[:] = NAN
        empty = dataclasses.replace(train, values=values)
        fitted = fit_beside(model, ResidentCases(empty, empty.classes, torch.device("cpu")), seed=0)
        assert fitted.ridge.weight.isfinite().all()

    def test_the_same_seed_gives_the_same_fit(self, fitted: TransformerClassifier) -> None:
        torch.manual_seed(0)
        again, train = TransformerClassifier(config()), collection()
        take_statistics(again, train)
        fit_beside(again, ResidentCases(train, train.classes, torch.device("cpu")), seed=0)
        for name, tensor in fitted.state_dict().items():
            assert torch.equal(tensor, again.state_dict()[name]), name


def test_onnx_runtime_says_what_torch_says(fitted: TransformerClassifier, tmp_path: Path) -> None:
    model = Probabilities(fitted).eval()
    path = tmp_path / "model.onnx"
    torch.onnx.export(
        model,
        (torch.zeros(2, 3, 50),),
        str(path),
        dynamo=True,
        external_data=False,
        input_names=["values"],
        output_names=["probabilities"],
        dynamic_shapes={"values": {0: "batch", 2: "time"}},
        verbose=False,
    )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    train = torch.from_numpy(collection().values)  # thresholds lie at responses of these very cases
    for values in (series(), series(3, 30), torch.randn(7, 3, 200), train):
        (found,) = session.run(None, {"values": values.numpy()})
        with torch.inference_mode():
            np.testing.assert_allclose(found, model(values).numpy(), atol=1e-4)


def test_an_unknown_word_of_scale() -> None:
    with pytest.raises(
        InputError, match=r"normalise 'bot': expected set or case or both\. Did you mean 'both'\?"
    ):
        config(normalise="bot")


def test_shares_are_about_as_many_as_asked() -> None:
    for asked, dilations in ((10_000, 1), (10_000, 7), (100, 12)):
        made = RidgeClassifier(2, 3, asked, dilations)
        shares = made.common.shares + made.own.shares
        least = 2 * 2 * KERNELS * dilations
        assert shares % least == 0
        assert abs(shares - asked) <= max(least / 2, least - asked)
        assert made.weight.shape[1] == shares + least


@pytest.mark.parametrize("dilations", [2, 8])
def test_heights_together_weigh_half_of_all_shares(dilations: int) -> None:
    made = RidgeClassifier(3, 4, 10_000, dilations)
    shares, heights, own = made.emphasis.square().split(
        [made.common.shares, made.common.heights, len(made.emphasis) // 2]
    )
    assert heights.sum().item() / shares.sum().item() == pytest.approx(0.5, rel=1e-4)
    assert torch.equal(own, torch.cat([shares, heights]))

"""A training that is stopped anywhere and resumed ends with the same weights, to the byte."""

from __future__ import annotations

import dataclasses
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from tsattn.config import ModelConfig, TrainingConfig
from tsattn.data.collection import Collection
from tsattn.errors import CheckFailed, InputError, Interrupted
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.loop import Fit, fit, never
from tsattn.training.resident import Batch, ResidentCases
from tsattn.training.state import State, StateFile
from tsattn.training.stepping import Training

CPU, CLASSES = torch.device("cpu"), ("quick", "slow")
PLAIN = TrainingConfig(epochs=4, batch_size=8, learning_rate=3e-3)  # 33 cases: 5 steps an epoch
RECIPES = {
    "plain": PLAIN,
    "averaged, radam, one-cycle": dataclasses.replace(
        PLAIN, averaging=0.9, optimiser="radam", schedule="one-cycle"
    ),
    "augmented": dataclasses.replace(PLAIN, augment="jitter:0.1+crop:0.8+mixup:0.4"),
    "balanced": dataclasses.replace(PLAIN, sampling="balanced", class_weight="balanced", schedule="constant"),
}


def waves(count: int = 33, seed: int = 0) -> Collection:
    """Slow and quick waves of several lengths, some with a gap."""
    generator = np.random.default_rng(seed)
    values = generator.normal(0, 0.3, (count, 1, 20)).astype(np.float32)
    values += np.sin(np.arange(20) * (0.3 + 0.4 * (np.arange(count) % 2))[:, None, None])
    for case in range(count):
        values[case, :, 12 + case % 9 :] = np.nan
    values[::7, :, 4:6] = np.nan
    return Collection(
        values=values,
        ids=tuple(map(str, range(count))),
        channels=("x",),
        labels=tuple(CLASSES[case % 2] for case in range(count)),
        classes=CLASSES,
    )


def begin(config: TrainingConfig) -> TransformerClassifier:
    torch.manual_seed(config.seed)
    shape = ModelConfig(channels=1, classes=2, width=16, heads=2, layers=2, stochastic_depth=0.2)
    return TransformerClassifier(shape)


def train(
    config: TrainingConfig,
    held_out: Collection | None,
    state: StateFile | None = None,
    asked_to_stop: Callable[[], bool] = never,
) -> tuple[TransformerClassifier, Fit]:
    model = begin(config)
    validation = None if held_out is None else ResidentCases(held_out, CLASSES, CPU)
    cases = ResidentCases(waves(), CLASSES, CPU)
    result = fit(
        model, cases, validation, config, lambda epoch: None, state=state, asked_to_stop=asked_to_stop
    )
    return model, result


def stop_after(steps: int) -> Callable[[], bool]:
    left = iter(range(steps, 0, -1))
    return lambda: next(left) == 1


def without_seconds(result: Fit) -> list[dict[str, object]]:
    return [{**dataclasses.asdict(epoch), "seconds": 0} for epoch in result.history]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("with_validation", [False, True])
def test_stopping_after_any_step_changes_nothing(recipe: str, with_validation: bool, tmp_path: Path) -> None:
    config, held_out = RECIPES[recipe], waves(seed=2) if with_validation else None
    expected, whole = train(config, held_out)
    state = StateFile(tmp_path)
    # 1: before the first epoch ends. 5, 10: at the end of one. Then the last step but one of what is left.
    for steps in (1, 4, 5, 3, 6):
        with pytest.raises(Interrupted, match="stopped in epoch"):
            train(config, held_out, state, stop_after(steps))
    found, resumed = train(config, held_out, state)
    for name, value in expected.state_dict().items():
        assert torch.equal(value, found.state_dict()[name]), name
    assert without_seconds(resumed) == without_seconds(whole)
    assert dataclasses.replace(resumed.chosen, seconds=0) == dataclasses.replace(whole.chosen, seconds=0)


def test_what_is_saved_at_the_end_of_an_epoch_is_gone_on_with(tmp_path: Path) -> None:
    expected, _ = train(PLAIN, None)
    state = StateFile(tmp_path)
    with pytest.raises(Interrupted):
        train(PLAIN, None, state, stop_after(12))
    saved = state.load()
    assert saved is not None
    assert (saved.facts["epoch"], saved.facts["batch"], len(saved.facts["history"])) == (3, 2, 2)
    finished, _ = train(PLAIN, None, state)
    again, _ = train(PLAIN, None, state)  # from the last epoch's end: nothing is left to do
    for name, value in expected.state_dict().items():
        assert torch.equal(value, finished.state_dict()[name])
        assert torch.equal(value, again.state_dict()[name])


def test_within_long_epochs_it_is_saved_too(tmp_path: Path) -> None:
    seen = []
    state = StateFile(tmp_path, within_epoch=0.0)

    def look() -> bool:
        saved = state.load()
        seen.append(None if saved is None else saved.facts["steps"])
        return False

    train(dataclasses.replace(PLAIN, epochs=1), None, state, look)
    assert seen == [None, 1, 2, 3, 4]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system then refuses to write more to a file, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_where_there_is_no_room_the_state_before_it_is_kept(tmp_path: Path) -> None:
    state = StateFile(tmp_path)
    good = State(facts={"n": 1}, tensors={"x": torch.arange(3.0)})
    large = State(facts={"n": 2}, tensors={"x": torch.zeros(100_000)})
    with (
        files_of_at_most(10_000),
        pytest.raises(InputError, match="none before it"),
    ):
        state.save(large)
    state.save(good)
    with files_of_at_most(10_000), pytest.raises(InputError, match="the state before it is kept") as error:
        state.save(large)
    assert f"--resume {tmp_path.parent}" in str(error.value)
    kept = state.load()
    assert kept is not None
    assert kept.facts == {"n": 1}
    assert torch.equal(kept.tensors["x"], torch.arange(3.0))
    assert [path.name for path in tmp_path.iterdir()] == ["training.safetensors"]


@pytest.mark.parametrize("content", [b"", b"\x10\0\0\0\0\0\0\0{}              ", np.zeros(50).tobytes()])
def test_a_file_that_is_no_state_is_refused(content: bytes, tmp_path: Path) -> None:
    state = StateFile(tmp_path)
    state.path.write_bytes(content)
    with pytest.raises(InputError, match="not the state of a training"):
        state.load()


def test_a_state_of_another_training_is_refused(tmp_path: Path) -> None:
    StateFile(tmp_path, of="one").save(State(facts={}, tensors={"a": torch.zeros(1)}))
    assert StateFile(tmp_path, of="one").load() is not None
    with pytest.raises(InputError, match="not the state of the training"):
        StateFile(tmp_path, of="other").load()


@pytest.mark.parametrize("spoilt", ["a tensor is missing", "a fact is missing", "no cases at once"])
def test_a_state_that_cannot_be_gone_on_with_is_refused_in_words(tmp_path: Path, spoilt: str) -> None:
    state = StateFile(tmp_path)
    with pytest.raises(Interrupted):
        train(PLAIN, None, state, stop_after(3))
    saved = state.load()
    assert saved is not None
    if spoilt == "a tensor is missing":
        del saved.tensors["random"]
    elif spoilt == "a fact is missing":
        del saved.facts["epoch"], saved.facts["order"]
    else:
        saved.facts["micro_batch"] = 0
    state.save(saved)
    with pytest.raises(InputError, match="not the state of a training"):
        train(PLAIN, None, state)
    state.path.unlink()
    state.path.mkdir()
    with pytest.raises(InputError, match="not the state of a training"):
        state.load()


def test_weights_that_are_no_numbers_after_the_last_step_are_not_the_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = Training.step

    def spoil_at_the_end(training: Training, batch: Batch) -> None:
        step(training, batch)
        if training.progress.steps == 20:
            training.flat.groups[0].data[0] = torch.nan

    monkeypatch.setattr(Training, "step", spoil_at_the_end)
    with pytest.raises(CheckFailed, match="no numbers after epoch 4"):
        train(PLAIN, None)

"""--compile: the same steps, compiled once for batches of all lengths, and one message where that fails."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from tsattn.config import ModelConfig
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.errors import CheckFailed
from tsattn.models.classifier import TransformerClassifier
from tsattn.training.compiling import compiled
from tsattn.training.resident import ResidentCases


@pytest.fixture(scope="module")
def cases() -> ResidentCases:
    vowels = load_split("JapaneseVowels", "train", TableOptions()).collection
    return ResidentCases(vowels, vowels.classes, torch.device("cpu"))


def model(attention: str = "bn+sh", tokens: str = "linear") -> TransformerClassifier:
    torch.manual_seed(0)
    config = ModelConfig(
        channels=12, classes=9, attention=attention, tokens=tokens, width=16, layers=1, dropout=0.0
    )
    return TransformerClassifier(config).train()


def test_a_batch_of_another_length_compiles_nothing_anew(cases: ResidentCases) -> None:
    torch.compiler.reset()
    ours = model()
    counter = CompileCounterWithBackend("eager")
    forward = compiled(ours, cases, counter)
    lengths, promises = set(), set()
    for start in range(0, 240, 40):
        batch = cases.batch(cases.lengths.argsort()[start : start + 30 + start // 10])
        gradients = []
        for run in (forward, ours):
            ours.zero_grad()
            logits = run(batch.values, batch.complete)
            logits.square().sum().backward()
            gradients.append([logits.detach(), *(p.grad for p in ours.parameters())])
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
        lengths.add(batch.values.shape[2])
        promises.add(batch.complete)
    assert len(lengths) >= 4
    assert counter.frame_count == len(promises)  # with a mask and without one


def test_where_torch_cannot_compile_there_is_one_message(cases: ResidentCases) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no compiler")

    torch.compiler.reset()
    batch = cases.batch(cases.lengths.argsort()[:4])
    with pytest.raises(
        CheckFailed, match=r"torch cannot compile the model here: (.|\n)*Train without --compile"
    ):
        compiled(model("softmax", "linear"), cases, broken)(batch.values, batch.complete)

"""Spoilt tables come to the same cases, or are refused as well, read in pieces and as a whole."""

from __future__ import annotations

import importlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tsattn.card import ModelCard
from tsattn.data.columns import TableOptions
from tsattn.data.tables import stream_table
from tsattn.errors import InputError
from tsattn.inference.inputs import Reading, Workers, blocks_of
from tsattn.inference.roles import roles_of

FUZZING = Path(__file__).parents[1] / "data"
CHANNELS = {"GunPoint": 1, "JapaneseVowels": 12, "BasicMotions": 6, "log": 6, "large": 6}
Cases = dict[str, np.ndarray]


def card_of(channels: int) -> ModelCard:
    return ModelCard(
        classes=("a", "b"),
        channels=tuple(f"dim_{i}" for i in range(channels)),
        attention="softmax",
        tokens="linear",
        preset="base",
        lengths=(1, 1, 1),
        mean=(0.0,) * channels,
        std=(1.0,) * channels,
        source="",
        protocol="",
        fingerprint="",
    )


def whole(path: Path, options: TableOptions, card: ModelCard) -> Cases | str:
    try:
        blocks = list(stream_table(path, roles_of(path, options, card), channels=card.channels))
    except InputError as error:
        return str(error)
    return {name: values for block in blocks for name, values in zip(block.ids, block.values, strict=True)}


def pieces(path: Path, options: TableOptions, card: ModelCard, workers: Workers) -> Cases | str:
    found: Cases = {}
    try:
        for block in blocks_of(path, Reading(options=options), card, workers):
            for fault in block.rows.faults.values():
                return fault
            out = np.empty((len(block), block.channels, max(int(block.lengths.max()), 1)), np.float32)
            block.fill(out, np.arange(len(block)))
            found |= dict(zip(block.rows.ids or (), out, strict=True))
    except InputError as error:
        return str(error)
    return found


@pytest.mark.filterwarnings("ignore")
def test_read_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FUZZING))
    fuzzing: Any = importlib.import_module("fuzzing")
    sources = [one for one in fuzzing.originals(tmp_path) if one.name.endswith(".csv")]
    outcomes: Counter[str] = Counter()
    with ThreadPoolExecutor(2) as pool:
        workers = Workers(pool=pool, depth=3)
        for number in range(160):
            spoilt = fuzzing.spoil(sources, 11, number)
            path = tmp_path / spoilt.name
            path.write_bytes(spoilt.data)
            card = card_of(next(n for name, n in CHANNELS.items() if spoilt.name.startswith(name)))
            options = replace(spoilt.options, label_of=None, group=None)
            one, other = whole(path, options, card), pieces(path, options, card, workers)
            if isinstance(one, str) or isinstance(other, str):
                assert isinstance(one, str), (number, other)
                assert isinstance(other, str), (number, one)
                assert str(path) in other
                outcomes["refused"] += 1
                continue
            assert list(one) == list(other), number
            for name, values in other.items():
                length = values.shape[1]
                np.testing.assert_array_equal(one[name][:, :length], values[:, : one[name].shape[1]])
            outcomes["cases"] += 1
    assert min(outcomes.values()) > 15, outcomes

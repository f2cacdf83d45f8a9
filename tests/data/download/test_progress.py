"""The bars of downloads, on a terminal and on none."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tsattn.cli import console
from tsattn.cli.fetching import bars
from tsattn.data.download.fetch import Way, fetch, fetch_many
from tsattn.data.download.watch import Silent
from tsattn.data.registry import DatasetEntry


def test_a_bar_a_file_and_one_in_all(
    web: Any, way: Way, entry: DatasetEntry, monkeypatch: pytest.MonkeyPatch, files: Any, pack: Any
) -> None:
    drawn = io.StringIO()
    terminal = Console(file=drawn, force_terminal=True, width=140, color_system=None)
    monkeypatch.setattr(console, "err", terminal)
    other = replace(entry, name="Others")
    web.files["/mirror/Others.zip"] = pack({name.replace("Motions", "Others"): files[name] for name in files})
    for name in ("Motions", "Others"):
        web.rules[f"/mirror/{name}.zip"] = lambda n, honest: (
            replace(honest, pace=0.005, cut=30_000) if n == 1 else replace(honest, pace=0.005)
        )
    way = replace(way, patience=replace(way.patience, first=0.6, longest=0.6))
    with bars() as watch:
        outcomes = fetch_many([entry, other], way, 2, watch, lambda outcome: None)
    assert all(outcome.fresh for outcome in outcomes)
    text = drawn.getvalue()
    for word in ("in all", "Motions.zip", "Others.zip", "kB/s", "(cut the connection; tried again in 0."):
        assert word in text
    assert f"/{2 * len(web.files['/mirror/Motions.zip']) / 1000:.1f} kB" in text


def test_silence_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=drawn))
    with bars() as watch:
        assert isinstance(watch, Silent)
        watch.begin("a", 1, 0)
        watch.at("a", 1)
        watch.say("a", "b")
        watch.end("a")
    assert drawn.getvalue() == ""


def test_what_happens_before_a_file_begins_is_said(
    web: Any, way: Way, entry: DatasetEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(
        console, "err", Console(file=drawn, force_terminal=True, width=140, color_system=None)
    )
    zip_file = "/mirror/Motions.zip"
    web.rules[zip_file] = lambda n, honest: replace(honest, status=503) if n == 1 else honest
    with bars() as watch:
        fetch(entry, way, watch)
    assert "Motions.zip: has a trouble of its own (503); tried again in 0.0 s" in drawn.getvalue()

"""datasets.yaml: complete, found, and forgiving about case."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tsattn.data import registry
from tsattn.data.registry import find_entry, load_registry
from tsattn.data.sources import embedded_folder
from tsattn.errors import InputError

FACTS = Path(__file__).parents[3] / "shared" / "uea" / "facts.csv"


def test_both_archives_are_complete() -> None:
    entries = load_registry().values()
    assert [sum(entry.archive == archive for entry in entries) for archive in ("UEA", "UCR")] == [30, 128]
    assert all(entry.zenodo for entry in entries)
    assert all(entry.channels == 1 for entry in entries if entry.archive == "UCR")


@pytest.mark.skipif(not FACTS.exists(), reason="the archives' summary is not beside the checkout")
def test_facts_are_the_archives_own() -> None:
    with FACTS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            entry = find_entry(row["name"])
            for fact in ("train", "test", "channels", "length", "classes"):
                assert str(getattr(entry, fact) or "") == row[fact], (row["name"], fact)
            assert (entry.archive, entry.kind) == (row["archive"], row["kind"])
            assert (entry.unequal, entry.missing) == (row["remark"] == "unequal", row["remark"] == "missing")


def test_embedded_means_that_aeon_has_it() -> None:
    for entry in load_registry().values():
        assert entry.embedded == (embedded_folder(entry.name) is not None), entry.name
    assert sum(entry.embedded for entry in load_registry().values()) == 8


def test_a_name_is_found_in_any_case() -> None:
    assert find_entry("japanesevowels").name == "JapaneseVowels"


def test_an_unknown_name_brings_near_ones() -> None:
    with pytest.raises(InputError) as caught:
        find_entry("JapanseVowls")
    assert str(caught.value).startswith(
        "'JapanseVowls' is neither a file or folder here nor one of the 158 named data sets. "
        "Did you mean JapaneseVowels? Type the name of a set, or a .csv file, a .ts file, or a folder or zip"
    )
    with pytest.raises(InputError, match=r"158 named data sets\. Type the name of a set"):
        find_entry("qqqqqq")


@pytest.mark.parametrize(
    "text", ["Set: {archive: UEA, colour: red}", "Set: {archive: UEA", "- a list", "Set: {archive: UEA}"]
)
def test_a_damaged_registry_is_said(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(registry, "_text", lambda: text)
    with pytest.raises(InputError, match=r"datasets\.yaml: the registry of data sets cannot be read"):
        load_registry.__wrapped__()

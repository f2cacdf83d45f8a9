"""Collections written as CSV and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.sources import load_split
from tsattn.data.tables import read_table, sorted_classes
from tsattn.data.write_tables import write_long_csv, write_wide_csv
from tsattn.errors import InputError

NAN = float("nan")


def read(path: Path) -> Collection:
    return read_table(path, TableOptions())[0]


def same(one: Collection, other: Collection) -> None:
    np.testing.assert_array_equal(one.values, other.values)
    assert (one.ids, one.channels, one.labels) == (other.ids, other.channels, other.labels)


WORDS = st.sampled_from(["a,b", '"', " x", "x ", "NaN", "1.0", "1", "🙂", "a\nb", "null", "?", "é\r\nö", "-"])
NAMES = st.one_of(
    WORDS, st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)
)


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    cases, channels, points = (draw(st.integers(1, high)) for high in (5, 3, 6))
    floats = st.floats(width=32, allow_infinity=False)
    values = draw(st_np.arrays(np.float32, (cases, channels, points), elements=floats))
    for case in values:
        case[:, draw(st.integers(0, points)) :] = np.nan
    labels = draw(st.none() | st.lists(NAMES, min_size=cases, max_size=cases).map(tuple))
    collection = Collection(
        values=values,
        ids=tuple(draw(st.lists(NAMES, min_size=cases, max_size=cases, unique=True))),
        channels=("x", "b c", 'q"')[:channels],
        labels=labels,
        classes=sorted_classes(labels or ()),
    )
    longest = max(int(collection.lengths.max()), 1)
    return Collection(values[:, :, :longest], collection.ids, collection.channels, labels, collection.classes)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(collection=collections())
def test_there_and_back(tmp_path: Path, collection: Collection) -> None:
    path = tmp_path / "t.csv"
    for write in (write_wide_csv, write_long_csv):
        write(collection, path)
        back = read(path)
        same(back, collection)
        assert back.classes == collection.classes
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("name", ["JapaneseVowels", "BasicMotions", "GunPoint", "PickupGestureWiimoteZ"])
def test_archive_sets_there_and_back(tmp_path: Path, name: str) -> None:
    cases = load_split(name, "train", TableOptions()).collection
    for write in (write_wide_csv, write_long_csv):
        write(cases, tmp_path / "t.csv")
        back, roles = read_table(tmp_path / "t.csv", TableOptions())
        same(back, cases)
        assert roles.layout == ("wide" if write is write_wide_csv else "long")


def test_one_column_alone_keeps_its_missing_values(tmp_path: Path) -> None:
    cases = Collection(np.array([[[1]], [[NAN]], [[2]]], np.float32), ("0", "1", "2"), ("x",))
    write_wide_csv(cases, tmp_path / "t.csv", id=None)
    same(read(tmp_path / "t.csv"), cases)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    cases = Collection(np.ones((2, 1, 1), np.float32), ("a", "a"), ("x",), ("u", "v"), ("u", "v"))
    with pytest.raises(InputError, match="id 'a' stands for two cases"):
        write_long_csv(cases, tmp_path / "t.csv")
    with pytest.raises(InputError, match="two columns would be called 'x_0'"):
        write_wide_csv(cases, tmp_path / "t.csv", label="x_0")
    with pytest.raises(InputError, match=r"cannot be written: No such file or directory\."):
        write_wide_csv(cases, tmp_path / "no" / "t.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_wide_csv(cases, tmp_path / "folder")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]

"""The .ts reader: equal to aeon on real files, right where aeon is wrong, and clear about bad files."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsattn.data.collection import Collection
from tsattn.data.ts import parse_ts, read_ts
from tsattn.errors import InputError

UEA = Path(__file__).parents[3] / "shared" / "uea"
HEAD = "@problemName Toy set\n@classLabel true b a\n@data\n"


def parse(text: str | bytes) -> Collection:
    return parse_ts(text.encode() if isinstance(text, str) else text, "toy.ts")


def values(text: str | bytes) -> list[list[list[float]]]:
    return parse(text).values.tolist()


# ---- equal to aeon on real files


def embedded() -> list[Path]:
    found = importlib.util.find_spec("aeon")
    assert found is not None
    assert found.origin is not None
    return sorted((Path(found.origin).parent / "datasets" / "data").glob("*/*.ts"))


def aeon_values(path: Path) -> np.ndarray:
    """(cases, channels, timepoints) float32 as aeon reads them, padded with NaN."""
    from aeon.datasets import load_from_ts_file

    cases, _ = load_from_ts_file(str(path))
    longest = max(case.shape[1] for case in cases)
    padded = [np.pad(case, ((0, 0), (0, longest - case.shape[1])), constant_values=np.nan) for case in cases]
    return np.stack(padded).astype(np.float32)


def assert_as_aeon(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    got = read_ts(path)
    np.testing.assert_array_equal(got.values, aeon_values(path), strict=True)
    lines = path.read_text(encoding="utf-8").splitlines()
    body = lines[[line.strip().lower() for line in lines].index("@data") + 1 :]
    assert got.labels == tuple(line.rpartition(":")[2].strip() for line in body)
    declared = next(line for line in lines if line.lower().startswith("@classlabel"))
    assert got.classes == tuple(declared.split()[2:])
    assert caplog.messages == []


@pytest.mark.parametrize("path", embedded(), ids=lambda path: path.stem)
def test_reads_embedded_sets_as_aeon(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if "@targetlabel true" in path.read_text(encoding="utf-8").lower():
        with pytest.raises(InputError, match=rf"{path.name}:\d+: @targetLabel true: this is a regression"):
            read_ts(path)
    else:
        assert_as_aeon(path, caplog)


@pytest.mark.skipif(not UEA.is_dir(), reason="the archive's zips are not here")
@pytest.mark.parametrize("archive", sorted(UEA.glob("*.zip")), ids=lambda path: path.stem)
def test_reads_archive_sets_as_aeon(archive: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with zipfile.ZipFile(archive) as zipped:
        for name in zipped.namelist():
            if name.endswith(".ts"):
                path = tmp_path / Path(name).name
                # 12 MB hold all of every file but those of SpokenArabicDigits, sampled to stay quick.
                with zipped.open(name) as stream:
                    data = stream.read(12 << 20)
                path.write_bytes(data[: data.rindex(b"\n") + 1] if len(data) == 12 << 20 else data)
                assert_as_aeon(path, caplog)


# ---- what the format allows


def test_labels_keep_spelling_and_declared_order() -> None:
    got = parse("@classLabel true Zebra 1.0 baNaNa unused\n@data\n1,2:baNaNa\n3,4:Zebra\n5,6: 1.0 \n")
    assert got.labels == ("baNaNa", "Zebra", "1.0")
    assert got.classes == ("Zebra", "1.0", "baNaNa", "unused")
    assert got.ids == ("0", "1", "2")
    assert got.channels == ("dim_0",)


def test_missing_values_in_every_spelling() -> None:
    text = HEAD + "1,?,nan,NaN,,NAN,-3e-2:a\n1, ? , nan,\t,+2,.5,6.:b\n?:a\n:b\n"
    nan = np.nan
    np.testing.assert_array_equal(
        parse(text).values[:, 0],
        np.array(
            [[1, nan, nan, nan, nan, nan, -0.03], [1, nan, nan, nan, 2, 0.5, 6], [nan] * 7, [nan] * 7],
            np.float32,
        ),
    )


def test_empty_values_at_the_edges_of_series() -> None:
    got = parse("@classLabel true a\n@data\n,1:2,:a\n3,:,4:a\n").values
    nan = np.nan
    np.testing.assert_array_equal(got, np.array([[[nan, 1], [2, nan]], [[3, nan], [nan, 4]]], np.float32))


def test_values_round_once_from_float64() -> None:
    # 1 + 2^-24 + 2^-60 lies just above the middle of two float32; its float64 is the middle itself.
    text = "1.00000005960464477626"
    assert values(HEAD + f"{text},16777217,1e-400:a\n") == [
        [[float(np.float32(np.float64(text))), 16777216.0, 0.0]]
    ]


@pytest.mark.parametrize(
    "line",
    [
        "(2007-01-01 00:00:00,4),(2007-01-01 00:01:00,-2.5),(2007-01-01 00:02:00,?)",
        "(0,4),(1,-2.5),(2,NaN)",
        "( 0.5 , 4 ) , (1.5,-2.5) ,(2.5,)",
    ],
)
def test_timestamps_keep_signs_and_integers(line: str) -> None:
    got = parse(f"@timeStamps true\n@classLabel true a b\n@data\n{line}:b\n{line}:a\n")
    np.testing.assert_array_equal(got.values, np.array([[[4, -2.5, np.nan]]] * 2, np.float32))
    assert got.labels == ("b", "a")


def test_timestamps_with_several_channels_and_no_labels() -> None:
    got = parse(
        "@timeStamps true\n@classLabel false\n@data\n(2007-01-01 00:00:00,1):(2007-01-01 00:00:00,2)\n"
    )
    assert got.values.tolist() == [[[1.0], [2.0]]]
    assert got.labels is None
    assert got.classes == ()


def test_blank_lines_comments_crlf_bom_and_tags_in_any_case() -> None:
    text = (
        "\ufeff# Überschrift\r\n\r\n@PROBLEMNAME My problem, with blanks\r\n  % @data\r\n@unheard of\r\n"
        "@ClassLabel TRUE b a\r\n   \r\n@Data  \r\n\r\n# 9,9:b\r\n 1,2 : 3,4 :a \r\n%\r\n5,6:7,8:b"
    )
    expected = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]
    for spelled in (text, text.replace("\r\n", "\n"), text.replace("\r\n", "\r")):
        assert values(spelled) == expected
        assert parse(spelled).labels == ("a", "b")


def test_latin_1_comments_and_labels() -> None:
    got = parse("# Größe\n@classLabel true groß übel\n@data\n1:übel\n".encode("latin-1"))
    assert got.labels == ("übel",)
    assert got.classes == ("groß", "übel")


def test_many_blocks_are_read_in_order() -> None:
    rows = np.arange(300_000).reshape(1000, 3, 100)
    lines = [":".join(",".join(map(str, channel)) for channel in case) + ":a" for case in rows.tolist()]
    lines[700] = lines[700].replace(",", ", +", 1)  # one block takes the slow path
    np.testing.assert_array_equal(parse(HEAD + "\n".join(lines)).values, rows.astype(np.float32))


def test_no_class_labels() -> None:
    for head in ("@classLabel false\n@data\n", "@data\n"):
        got = parse(head + "1,2\n3,4\n")
        assert got.values.tolist() == [[[1, 2]], [[3, 4]]]
        assert got.labels is None
        assert got.classes == ()


# ---- what is said, once


def test_channels_of_unequal_length_within_a_case(caplog: pytest.LogCaptureFixture) -> None:
    got = parse(HEAD + "1,2:3,4:a\n1,2,3:4:b\n1:2,3:b\n")
    nan = np.nan
    np.testing.assert_array_equal(
        got.values,
        np.array(
            [[[1, 2, nan], [3, 4, nan]], [[1, 2, 3], [4, nan, nan]], [[1, nan, nan], [2, 3, nan]]], np.float32
        ),
    )
    (said,) = caplog.messages
    assert said.startswith("toy.ts:5: channels of one case have between 1 and 3 timepoints; the shorter are")
    assert said.endswith("in 2 of 3 cases.")


def test_unequal_lengths_between_cases_are_no_remark(caplog: pytest.LogCaptureFixture) -> None:
    assert parse("@equalLength false\n" + HEAD + "1,2,3:a\n4:b\n").lengths.tolist() == [3, 1]
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("@dimensions 3", "@dimensions 3 but 2 channels"),
        ("@univariate true", "@univariate true but 2 channel(s)"),
        ("@equalLength true", "@equalLength true but lengths from 2 to 3"),
        ("@seriesLength 2", "@seriesLength 2 but up to 3 timepoints"),
        ("@missing false", "@missing false but missing values"),
        ("@timeStamps true", "@timeStamps true but no timestamps"),
        ("@classLabel true", "@classLabel true without labels but labelled cases"),
    ],
)
def test_data_win_over_a_header_that_contradicts_them(
    tag: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    got = parse(HEAD.replace("@data", f"{tag}\n@data") + "1,2,?:4,5,6:b\n7,8:9,10:a\n")
    assert got.values.shape == (2, 2, 3)
    assert got.labels == ("b", "a")
    assert caplog.messages == [
        f"toy.ts: the header contradicts the data, and the data are taken as they are: {said}."
    ]


def test_timestamps_that_the_header_denies(caplog: pytest.LogCaptureFixture) -> None:
    assert values("@timeStamps false\n" + HEAD + "(0,1),(1,2):a\n") == [[[1.0, 2.0]]]
    assert "@timeStamps false but timestamps" in caplog.text


def test_flags_that_allow_more_than_the_file_needs_are_no_contradiction(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        parse("@missing true\n@equalLength false\n@seriesLength 2\n@dimensions x\n" + HEAD + "1,2:a\n3,4:b\n")
    assert caplog.messages == []


# ---- what is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + "1,2:a\n1,x2:b\n",
            r"toy\.ts:5: found 'x2' where a number belongs \(channel dim_0, timepoint 1\)",
        ),
        (HEAD + "1,1_0:a\n", r"toy\.ts:4: found '1_0' where a number"),
        (HEAD + "1,1 0:a\n", r"toy\.ts:4: found '1 0' where a number"),
        (HEAD + "1,inf:a\n", r"toy\.ts:4: found 'inf' where a number"),
        (HEAD + "1,1e39:a\n", r"toy\.ts:4: '1e39' is too large"),
        (HEAD + "1,1e999:a\n", r"toy\.ts:4: '1e999' is too large"),
        (HEAD + "1,2:A\n", r"toy\.ts:4: the label 'A' is not listed by @classLabel, which has 'b', 'a'\."),
        (HEAD + "1,2:a\n\n# c\n1,2:\n", r"toy\.ts:7: the case has no label"),
        (HEAD + "1,2\n", r"toy\.ts:4: the case has no label"),
        (HEAD + "1,2:3,4\n", r"toy\.ts:4: the case has no label"),
        (HEAD + "(2007-01-01 00:00:00,4),(2007-01-01 00:00:01,5)\n", r"toy\.ts:4: the case has no label"),
        (HEAD + "1:2:a\n1:2:3:a\n", r"toy\.ts:5: 3 channel\(s\) where 2 were expected"),
        ("@dimensions 3\n" + HEAD + "1:2:a\n1:2:3:a\n", r"toy\.ts:5: 2 channel\(s\) where 3 were expected"),
        (HEAD + "(0,1)(1,2):a\n", r"toy\.ts:4: found '1  2' where a number"),
        (HEAD + "(0,1),(1:a\n", r"toy\.ts:4: found '\(1' in a case with timestamps"),
        (HEAD + "(0,1),(1):a\n", r"toy\.ts:4: found '\(1\)' in a case with timestamps"),
        (HEAD + "1,2:a\n@data\n", r"toy\.ts:5: the tag '@data' stands among the cases"),
        (HEAD, r"toy\.ts:3: no case after @data"),
        (HEAD + "\n# nothing\n", r"toy\.ts:3: no case after @data"),
        ("@problemName x\n", r"toy\.ts:1: no line @data"),
        ("1,2:a\n", r"toy\.ts:1: found '1,2:a' before @data"),
        ("@data 1,2:a\n", r"toy\.ts:1: @data is followed by '1,2:a'"),
        ("@classLabel a b\n@data\n1:a\n", r"toy\.ts:1: @classLabel is followed by 'a b'"),
        ("@classLabel\n@data\n1:a\n", r"toy\.ts:1: @classLabel is followed by nothing"),
        ("@data\n1,2:1\n3,4:2\n", r"toy\.ts:2: the cases end in what looks like a label \('2' the last\)"),
        (
            "@x\n@targetLabel TRUE\n@data\n1,2:1\n",
            r"toy\.ts:2: @targetLabel true: this is a regression problem",
        ),
        ("", r"toy\.ts:1: the file is empty"),
        (" \r\n\n", r"toy\.ts:1: the file is empty"),
        (HEAD + "1,2:a\n1,\0:a\n", r"toy\.ts:5: a NUL byte"),
        (HEAD.encode("utf-16"), r"toy\.ts:1: a NUL byte"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", r"toy\.ts:1: found '\\x89PNG' before @data"),
    ],
)
def test_refuses_with_file_and_line(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        parse(text)


def test_refuses_a_line_that_padding_would_blow_up() -> None:
    text = HEAD + "1,2:a\n" * 5000 + ",".join("1" * 40_000) + ":b\n"
    with pytest.raises(InputError, match=r"^toy\.ts:5004: a series of 40000 timepoints where most have 2;"):
        parse(text)


def test_refuses_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.ts: cannot be read \(No such file or directory\)"):
        read_ts(tmp_path / "gone.ts")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        read_ts(tmp_path)


def test_imports_neither_torch_nor_aeon_nor_pandas(tmp_path: Path) -> None:
    path = tmp_path / "toy.ts"
    path.write_text(HEAD + "1,?:a\n")
    code = (
        "import sys, pathlib; from tsattn.data.ts import read_ts; read_ts(pathlib.Path(sys.argv[1]));"
        "sys.exit(', '.join({'torch', 'aeon', 'pandas'} & set(sys.modules)) or 0)"
    )
    process = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


# ---- there and back

numbers = st.floats(width=32, allow_infinity=False)  # NaN too
labels = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"), exclude_characters=":"),
    min_size=1,
    max_size=6,
)


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    cases, channels, longest = (draw(st.integers(1, high)) for high in (5, 3, 6))
    flat = draw(st.lists(numbers, min_size=cases * channels * longest, max_size=cases * channels * longest))
    array = np.array(flat, np.float32).reshape(cases, channels, longest)
    for case in range(1, cases):
        array[case, :, draw(st.integers(0, longest)) :] = np.nan
    classes = draw(st.lists(labels, min_size=1, max_size=4, unique=True))
    return Collection(
        values=array,
        ids=tuple(map(str, range(cases))),
        channels=tuple(f"dim_{i}" for i in range(channels)),
        labels=tuple(draw(st.sampled_from(classes)) for _ in range(cases)),
        classes=tuple(classes),
    )


def as_ts(collection: Collection, draw: st.DataObject) -> str:
    """`collection` in one of the many spellings a .ts file may have; its first case has full length."""
    newline = draw.draw(st.sampled_from(["\n", "\r\n", "\n\n", "\n# 1,2:x\n"]))
    comma = draw.draw(st.sampled_from([",", ", ", " ,"]))
    stamped = draw.draw(st.booleans())

    def cell(time: int, value: float) -> str:
        text = draw.draw(st.sampled_from(["?", "NaN", "nan", ""])) if np.isnan(value) else repr(value)
        return f"(2007-01-01 00:0{time}:00,{text})" if stamped else text

    lines = ["@classLabel true " + " ".join(collection.classes), "@data"]
    assert collection.labels is not None
    for i, case in enumerate(collection.values):
        length = case.shape[1] if i == 0 else max(1, int(collection.lengths[i]))
        series = [comma.join(cell(t, v) for t, v in enumerate(channel[:length].tolist())) for channel in case]
        lines.append(":".join([*series, collection.labels[i]]))
    return newline.join(lines)


@settings(max_examples=150, deadline=None)
@given(collections(), st.data())
def test_random_collections_read_back_equal(collection: Collection, data: st.DataObject) -> None:
    got = parse_ts(as_ts(collection, data).encode(), "random.ts")
    np.testing.assert_array_equal(got.values, collection.values, strict=True)
    assert (got.ids, got.channels, got.labels, got.classes) == (
        collection.ids,
        collection.channels,
        collection.labels,
        collection.classes,
    )

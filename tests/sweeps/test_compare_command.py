"""`tsattn compare` as it is typed: formats, files, plots, and what it says of mistakes."""

from __future__ import annotations

import base64
import csv
import importlib.util
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sweep_figures import cell, cells, failed, write_sweep

from tsattn.cli.app import main

Typed = Callable[..., tuple[int, str, str]]
AWKWARD = "my_file.py:a&b <i>%$#{x}~^|*` 100"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real figures, one cell that failed, and a method with an awkward name."""
    some = [
        *cells(),
        failed("LSST", "softmax", "no memory\nleft"),
        *(cell(one.data, AWKWARD, accuracy=0.5) for one in cells() if one.method == "bn" and one.seed == 0),
    ]
    return write_sweep(tmp_path_factory.mktemp("sweep") / "DIR", some)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """typed(*words): (exit code, stdout, stderr) of `tsattn compare *words`."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["tsattn", "compare", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return run


def test_the_terminal_shows_all_of_it(typed: Typed, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    code, out, _ = typed(sweep)
    assert code == 0
    assert re.search(r"Accuracy on TEST, % \(1 of [23]\)", out)  # too wide for one table
    assert re.search(r"Handwriting .*57\.65 ± 0\.24\*", out)
    assert "mean rank" in out
    assert re.search(r"LSST +│ softmax +│ 0 +│ no memory left", out)
    assert AWKWARD.split()[0] in out.replace("\n", "")
    assert max(len(line) for line in out.splitlines() if line.startswith("│")) <= 90


def test_a_csv_holds_every_score_in_full(typed: Typed, sweep: Path, tmp_path: Path) -> None:
    place = tmp_path / "table.csv"
    code, out, err = typed(sweep, "-o", place)
    assert (code, out) == (0, "")
    assert f"{place} is written" in err.replace("\n", "")
    rows = list(csv.DictReader(io.StringIO(place.read_text("utf-8"))))
    assert len(rows) == 5 * 7
    (one,) = [row for row in rows if (row["data"], row["method"]) == ("NATOPS", "bn+sh")]
    values = [of.metrics["accuracy"] for of in cells() if (of.data, of.method) == ("NATOPS", "bn+sh")]
    assert float(one["mean"]) == pytest.approx(sum(value or 0 for value in values) / 3)
    assert (one["runs"], one["best_or_tied"]) == ("3", "true")
    assert any(row["method"] == AWKWARD and row["std"] == "" for row in rows)


def test_json_is_one_document_and_agrees_with_the_file(typed: Typed, sweep: Path, tmp_path: Path) -> None:
    _, out, _ = typed(sweep, "--json")
    typed(sweep, "-o", tmp_path / "it.json")
    document = json.loads(out)
    assert document == json.loads((tmp_path / "it.json").read_text("utf-8"))
    assert document["reference"] == "softmax"
    assert len(document["scores"]["NATOPS"]["softmax"]["values"]) == 3
    assert document["failures"][0]["message"] == "no memory\nleft"


def test_markdown_has_as_many_fields_in_every_row(typed: Typed, sweep: Path) -> None:
    _, out, _ = typed(sweep, "--format", "markdown", "--published")
    tables = re.findall(r"(?:^\|.*\n?)+", out, re.MULTILINE)
    assert len(tables) == 5
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1
    assert re.search(r"\| Handwriting \|.*\*\*57\.65 ± 0\.24\*\*", out)
    assert "TimesNet (published) †" in out


def test_latex_is_escaped_and_balanced(typed: Typed, sweep: Path) -> None:
    _, out, _ = typed(sweep, "--format", "latex", "--published")
    assert r"my\_file.py:a\&b \textless{}i\textgreater{}\%\$\#\{x\}\textasciitilde{}\textasciicircum{}" in out
    assert out.count(r"\toprule") == out.count(r"\bottomrule") == out.count(r"\begin{table}") == 5
    for tabular in re.findall(r"\\begin\{tabular\}\{.*?\\end\{tabular\}", out, re.DOTALL):
        head, *rows = tabular.split("\n")
        columns = len(
            re.findall(
                r"[lr]|p\{.*?\}", head.removeprefix(r"\begin{tabular}{")[:-1].replace(r"\linewidth", "")
            )
        )
        fields = {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows if row.endswith("\\\\")}
        assert fields == {columns}
    assert not set("±†‡–−…") & set(out)
    bare = re.sub(r"\\[{}]", "", out)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"(?<!\\)[#_]", out.replace("% Made", ""))


class Tags(HTMLParser):
    """Counts tags, notes sources of pictures, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.pictures: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag == "img":
            self.pictures.append(dict(attrs)["src"] or "")
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_the_plots_are_drawn(
    typed: Typed, sweep: Path, tmp_path: Path
) -> None:
    code, _, err = typed(sweep, "-o", tmp_path / "page.html", "--plots", tmp_path / "plots")
    assert code == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert not {"script", "link", "i"} & set(tags.seen)
    assert not re.search(r"https?://", re.sub(r"base64,[^\"]*", "", text))
    assert len(tags.pictures) == 6
    for picture in tags.pictures:
        kind, _, coded = picture.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert ElementTree.fromstring(base64.b64decode(coded)).tag.endswith("svg")
    names = {
        "critical-difference",
        "comparison-matrix",
        "differences",
        "training-time",
        "length",
        "learning-curves",
    }
    files = {place.name: place.read_bytes() for place in (tmp_path / "plots").iterdir()}
    assert set(files) == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    assert all(content.startswith(b"\x89PNG") for name, content in files.items() if name.endswith("png"))
    assert "as PNG and SVG" in err


def test_plots_that_cannot_be_drawn_are_named(typed: Typed, tmp_path: Path) -> None:
    small = write_sweep(tmp_path / "DIR", [cell("A", "softmax"), cell("A", "bn", accuracy=0.6)])
    code, _, err = typed(small, "--plots", tmp_path / "plots")
    assert code == 0
    for name in ("critical-difference", "comparison-matrix", "training-time", "length"):
        assert f"{name} is not drawn" in err
    assert sorted(place.stem for place in (tmp_path / "plots").glob("*.png")) == [
        "differences",
        "learning-curves",
    ]


def test_without_matplotlib_the_tables_are_still_there(
    typed: Typed, sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "matplotlib" else found(name, *a)
    )
    code, out, err = typed(sweep, "--plots", tmp_path / "plots")
    assert (code, out) == (2, "")
    assert "pip install 'tsattn[plots]'" in err
    assert not (tmp_path / "plots").exists()
    code, _, err = typed(sweep, "-o", tmp_path / "page.html")
    assert code == 0
    assert "without plots" in err
    assert "Handwriting" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["empty"], "empty: neither cells of a sweep nor run folders"),
        (["DIR", "-o", "table.doc"], "its ending says no format"),
        (["DIR", "-o", "no/such/table.md"], "cannot be written"),
        (["DIR", "--plots", "file/plots"], "no folder can be made there"),
        (["DIR", "--metric", "log_loss"], "cells have none"),
        (["DIR", "--metric", "accurracy"], "Did you mean 'accuracy'?"),
        (["DIR", "--reference", "sofmax"], "Did you mean 'softmax'?"),
        (["DIR", "--published", "--metric", "macro_f1"], "what was published is accuracy"),
        (["DIR", "--json", "--format", "csv"], "--json and --format csv"),
        (["DIR", "again"], "are the same cell"),
        (["single"], "one method only, bn"),
        (["spoilt"], "not a finished cell"),
    ],
)
def test_one_message_says_what_is_wrong(
    words: list[str], message: str, typed: Typed, sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("file").write_text("", "utf-8")
    Path("DIR").symlink_to(sweep)
    if "again" in words:
        write_sweep(Path("again"), cells()[:1])
    if "single" in words:
        write_sweep(Path("single"), [cell("A", "bn")])
    if "spoilt" in words:
        write_sweep(Path("spoilt"), [cell("A", "bn")])
        next(Path("spoilt").rglob("cell.json")).write_text('{"format": 1}', "utf-8")
    code, out, err = typed(*words)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert message in err
    assert "Traceback" not in err


def test_a_folder_named_twice_counts_once(typed: Typed, sweep: Path) -> None:
    _, once, _ = typed(sweep, "--json")
    _, twice, _ = typed(sweep, sweep / "cells", "--json")
    assert once == twice


def test_it_imports_neither_torch_nor_what_draws(sweep: Path) -> None:
    code = (
        "import sys\nfrom tsattn.cli.app import main\n"
        f"sys.argv = ['tsattn', 'compare', {str(sweep)!r}, '--json']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'torch', 'aeon', 'matplotlib', 'pandas'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr == "set()\n"
    assert json.loads(done.stdout)["metric"] == "accuracy"

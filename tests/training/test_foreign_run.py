"""A run whose attention tsattn did not bring: trained, refused, allowed, tampered with, exported.

One test each runs real processes; the others call the console script's entry point in this one,
with a registry as a new process has it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import Command, Done, command_in

from tsattn.data.sources import embedded_folder
from tsattn.models.attention import foreign, installed, parts, registry

ROOT = Path(__file__).parents[2]
SET = "BasicMotions"
SMALL = ("--tokens", "linear", "--width", "16", "--heads", "2", "--layers", "1", "--epochs", "1")
COLD = """\
from torch.nn import functional as F

from tsattn.models.attention.contract import Mechanism
from tsattn.models.attention.registry import core


@core("cold", summary="softmax at a low temperature", cost="N²", source="an example", option="T")
class Cold(Mechanism):
    def __init__(self, heads, option=None):
        super().__init__()
        self.temperature = float(option or 0.5)

    def forward(self, q, k, v, observed):
        mask = None if observed is None else observed[:, None, None, :].expand(-1, 1, q.shape[2], -1)
        return F.scaled_dot_product_attention(q / self.temperature, k, v, attn_mask=mask)
"""
BLIND = COLD.replace("attn_mask=mask", "attn_mask=None")  # attends to padding


def process(*words: object, cwd: Path, path: Path | None = None) -> Done:
    """`tsattn WORDS…` in a process of its own; path: one more place of installed software."""
    places = os.pathsep.join(map(str, filter(None, (ROOT, path))))
    done = subprocess.run(
        [sys.executable, "-m", "tsattn", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def tsattn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """tsattn(*words): the command in `tmp_path`, which knows only what tsattn brings."""
    ours = {part.name: part for part in parts() if part.origin is None}
    command = command_in(tmp_path, monkeypatch, capsys)

    def call(*words: object) -> Done:
        monkeypatch.setattr(registry, "_PARTS", dict(ours))
        monkeypatch.setattr(foreign, "_packages", set())
        monkeypatch.setattr(installed, "_tried", set())
        return command(*words)

    return call


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose attention is a file that is no longer there."""
    place = tmp_path_factory.mktemp("foreign")
    (place / "cold.py").write_text(COLD, "utf-8")
    done = process("train", SET, "--attention", "cold.py:cold:0.3+bn", *SMALL, "--out", "run", cwd=place)
    assert done.code == 0, done.err
    (place / "cold.py").unlink()
    return place / "run"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, at run/ in the working folder."""
    return shutil.copytree(trained, tmp_path / "run")


def test_the_run_folder_holds_the_code(trained: Path) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text("utf-8"))
    assert config["model"]["attention"] == "cold:0.3+bn"
    assert (trained / "code" / "cold.py").read_text("utf-8") == COLD
    assert config["code"] == [
        {
            "part": "cold",
            "file": "code/cold.py",
            "sha256": hashlib.sha256(COLD.encode()).hexdigest(),
            "distribution": "",
            "version": "",
        }
    ]


FILE = Path(str(embedded_folder(SET))) / f"{SET}_TEST.ts"
READERS = {
    "eval": ("eval", "run"),
    "export": ("export", "onnx", "run", "-o", "model.onnx"),
    "predict": ("predict", "run", FILE, "-o", "classified.csv"),
}


@pytest.mark.parametrize("reader", READERS)
def test_code_is_run_only_if_allowed(reader: str, run: Path, tsattn: Command, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    refused = tsattn(*READERS[reader])
    assert (refused.code, refused.out) == (2, "")
    sha256 = hashlib.sha256(COLD.encode()).hexdigest()
    assert (
        f"run: its attention 'cold' is code of its own, run/code/cold.py (sha256 {sha256}). Reading the run "
        "would run that code: read it first, then type --allow-code." in refused.err
    )
    assert not [part for part in parts() if part.origin]
    assert sorted(tmp_path.rglob("*")) == before
    allowed = tsattn(*READERS[reader], "--allow-code")
    assert allowed.code == 0, allowed.err
    assert [str(part.origin) for part in parts() if part.origin] == ["run/code/cold.py"]
    if reader == "export":
        _a_model_file_needs_no_code(tmp_path)


def _a_model_file_needs_no_code(place: Path) -> None:
    shutil.rmtree(place / "run")
    done = process("predict", "model.onnx", FILE, "-o", "classified.csv", cwd=place)
    assert done.code == 0, done.err
    assert "cold:0.3+bn" in done.err
    assert len((place / "classified.csv").read_text("utf-8").splitlines()) == 41


def test_changed_code_is_refused_even_if_allowed(run: Path, tsattn: Command) -> None:
    (run / "code" / "cold.py").write_text("raise SystemExit(99)\n", "utf-8")
    done = tsattn("eval", "run", "--allow-code")
    assert done.code == 2
    assert "run/code/cold.py: not the code that was trained with. Its sha256 is" in done.err
    assert hashlib.sha256(COLD.encode()).hexdigest() in done.err


def test_missing_code_is_said(run: Path, tsattn: Command) -> None:
    (run / "code" / "cold.py").unlink()
    done = tsattn("eval", "run", "--allow-code")
    assert done.code == 2
    assert "run/code/cold.py: missing; it holds the attention 'cold' that the run needs." in done.err


def test_code_outside_the_folder_is_never_read(run: Path, tsattn: Command, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(COLD, "utf-8")
    config = run / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("code/cold.py", "../evil.py"), "utf-8")
    done = tsattn("eval", "run", "--allow-code")
    assert done.code == 2
    assert "run/code/evil.py: missing" in done.err


@pytest.mark.parametrize(
    ("found", "instead", "says"),
    [
        ("file: code/cold.py", "file: 7", "code holds words, not ['cold', 7,"),
        ("- part: cold", "- port: cold", "unexpected keyword argument 'port'"),
        ("attention: cold:0.3+bn", "attention: other.py:cold+bn", "there is no part 'other.py'"),
    ],
)
def test_a_configuration_that_makes_no_sense(
    found: str, instead: str, says: str, run: Path, tsattn: Command, tmp_path: Path
) -> None:
    (tmp_path / "other.py").write_text("raise SystemExit(99)\n", "utf-8")
    config = run / "config.yaml"
    text = config.read_text("utf-8")
    assert found in text
    config.write_text(text.replace(found, instead), "utf-8")
    done = tsattn("eval", "run", "--allow-code")
    assert done.code == 2
    assert says in done.err


def test_check_tells_sound_from_broken(tsattn: Command, tmp_path: Path) -> None:
    (tmp_path / "cold.py").write_text(COLD, "utf-8")
    done = tsattn("attention", "check", "cold.py:cold+bn", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert (document["attention"], document["held"]) == ("cold+bn", True)
    laws = {finding["law"]: finding for finding in document["laws"]}
    assert laws["torch as ONNX Runtime"]["difference"] <= laws["torch as ONNX Runtime"]["allowed"] == 1e-4
    assert laws["shape, values, gradients: bfloat16 with gaps"]["held"]

    (tmp_path / "blind.py").write_text(BLIND, "utf-8")
    done = tsattn("attention", "check", "blind.py:cold+bn", "--json")
    assert done.code == 3
    assert "attention 'cold+bn' breaks 3 of " in done.err
    document = json.loads(done.out)
    assert not document["held"]
    broken = [finding for finding in document["laws"] if not finding["held"]]
    assert [finding["law"] for finding in broken] == [
        "content of padding and gaps",
        "amount of padding",
        "a case in a batch as alone",
    ]
    assert all(finding["difference"] > finding["allowed"] for finding in broken)


def test_check_shows_a_table_and_what_an_export_failed_on(tsattn: Command, tmp_path: Path) -> None:
    looks = COLD.replace("        mask =", "        v = v if v.sum() < 1e9 else -v\n        mask =")
    (tmp_path / "looks.py").write_text(looks, "utf-8")
    done = tsattn("attention", "check", "looks.py:cold+bn")
    assert done.code == 3
    assert "attention 'cold+bn' breaks 1 of 11 laws: 'torch as ONNX Runtime'." in done.err
    assert "amount of padding" in done.out
    assert "broken" in done.out
    assert "cold+bn, torch as ONNX Runtime: looks.py:14: GuardOnDataDependentSymNode: " in done.out
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("conv:4", "attention 'conv:4': the kernel must be an odd number of timepoints, not '4'"),
        ("cold.py:cold:x", "attention 'cold:x': could not convert string to float: 'x' (usage: cold:T)."),
        ("nowhere.py:cold", "no such file nowhere.py"),
    ],
)
def test_a_wrong_command_is_no_broken_law(typed: str, says: str, tsattn: Command, tmp_path: Path) -> None:
    (tmp_path / "cold.py").write_text(COLD, "utf-8")
    done = tsattn("attention", "check", typed)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_what_fails_the_same_way_is_said_once(tsattn: Command, tmp_path: Path) -> None:
    (tmp_path / "cold.py").write_text(
        COLD.replace("        mask =", "        1 / 0\n        mask ="), "utf-8"
    )
    done = tsattn("attention", "check", "cold.py:cold+bn")
    assert done.code == 3
    assert done.out.count("ZeroDivisionError") == 1
    assert (
        "cold+bn, content of padding and gaps and 10 more: cold.py:14: ZeroDivisionError: division by zero"
        in done.out
    )


def test_an_error_while_training_is_the_files(tsattn: Command, tmp_path: Path) -> None:
    (tmp_path / "cold.py").write_text(COLD.replace("q / self", "q @ q / self"), "utf-8")
    done = tsattn("train", SET, "--attention", "cold.py:cold+bn", *SMALL, "--out", "run")
    assert done.code == 2
    assert "Error: cold.py:15: RuntimeError: " in done.err
    assert "`tsattn attention check` tries an attention by itself." in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_list_and_show_know_a_file(tsattn: Command, tmp_path: Path) -> None:
    (tmp_path / "cold.py").write_text(COLD, "utf-8")
    plain = json.loads(tsattn("attention", "list", "--json").out)
    assert {row["origin"] for row in plain} == {""}
    rows = {row["spec"]: row for row in json.loads(tsattn("attention", "list", "cold.py", "--json").out)}
    assert rows["cold[:T]"]["origin"] == "cold.py"
    assert len(rows) == len(plain) + 1
    table = tsattn("attention", "list", "cold.py").out
    assert "cold[:T]" in table
    assert "from" in table
    assert "cold.py" in table
    assert tsattn("attention", "list", "cold.py", "--markdown") == tsattn("attention", "list", "--markdown")
    shown = json.loads(tsattn("attention", "show", "cold.py:cold+bn", "--json").out)
    assert shown["spec"] == "cold+bn"
    assert "nobody has stated one for it" in shown["primal"]


def lay_down(folder: Path, version: str, text: str = COLD) -> Path:
    """A distribution as an installer lays it down, with the attention `cold`."""
    information = folder / f"far_away-{version}.dist-info"
    information.mkdir(parents=True)
    (folder / "far_away.py").write_text(text, "utf-8")
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: far-away\nVersion: {version}\n", "utf-8"
    )
    (information / "entry_points.txt").write_text("[tsattn.attention]\ncold = far_away:Cold\n", "utf-8")
    return folder


def test_an_installed_attention_needs_no_flag_but_has_to_be_there(tmp_path: Path) -> None:
    site, newer = lay_down(tmp_path / "site", "1.2"), lay_down(tmp_path / "newer", "1.3")
    words = ("train", SET, "--attention", "cold+bn", *SMALL, "--out", "run")
    done = process(*words, cwd=tmp_path, path=site)
    assert done.code == 0, done.err
    assert not (tmp_path / "run" / "code").exists()
    (code,) = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text("utf-8"))["code"]
    assert (code["part"], code["distribution"], code["version"]) == ("cold", "far-away", "1.2")

    done = process("eval", "run", cwd=tmp_path, path=site)
    assert (done.code, done.err) == (0, "")
    done = process("eval", "run", cwd=tmp_path, path=newer)
    assert done.code == 0
    assert "run: trained with far-away 1.2, 1.3 is installed; predictions may differ." in done.err
    done = process("eval", "run", cwd=tmp_path)
    assert done.code == 2
    assert (
        "run: its attention 'cold' comes from the distribution far-away 1.2, which is not installed here or "
        "cannot be used. Install far-away==1.2." in done.err
    )


def test_a_broken_installed_attention_disturbs_nothing(tmp_path: Path) -> None:
    site = lay_down(tmp_path / "site", "1.2", COLD + "\nimport nowhere_at_all\n")
    done = process("attention", "list", "--json", cwd=tmp_path, path=site)
    assert done.code == 0
    assert {row["origin"] for row in json.loads(done.out)} == {""}
    assert "Attention 'cold' of far-away 1.2 cannot be used: " in done.err
    assert "far_away.py:17: ModuleNotFoundError: No module named 'nowhere_at_all'." in done.err
    assert "Traceback" not in done.err

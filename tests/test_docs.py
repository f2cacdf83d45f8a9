"""What README and docs say is so: tables are those of the registry, examples and commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tsattn.cli.attention import markdown_table
from tsattn.data.collection import Collection
from tsattn.data.write_tables import write_wide_csv
from tsattn.models.attention import Heads, build, registry

ROOT = Path(__file__).parents[1]
QUICK = "--epochs 2 --width 16 --heads 2 --layers 1"


def block(document: str, name: str) -> str:
    found = re.search(
        rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", (ROOT / document).read_text("utf-8"), re.DOTALL
    )
    assert found, f"{document} has no block {name}"
    return found[1]


@pytest.mark.parametrize("document", ["README.md", "docs/attention.md"])
def test_the_table_of_attentions_is_that_of_the_registry(document: str) -> None:
    assert block(document, "attention") == markdown_table(), "run: tsattn attention list --markdown"


def test_the_readme_shows_the_demo_and_names_the_figures() -> None:
    shown = block("README.md", "demo")
    for command in ("$ tsattn train", "$ tsattn eval", "$ tsattn export onnx", "$ tsattn predict"):
        assert command in shown
    assert "JapaneseVowels" in block("README.md", "accuracy")


def run_commands(commands: str, place: Path) -> None:
    """The commands of a shell block, on tables made here; training is made short."""
    generator = np.random.default_rng(0)
    labels = tuple("ab"[case % 2] for case in range(40))
    values = generator.normal(size=(40, 2, 30)).astype(np.float32)
    values[::2] += np.linspace(0, 3, 30, dtype=np.float32)
    cases = Collection(
        values=values, ids=tuple(map(str, range(40))), channels=("x", "y"), labels=labels, classes=("a", "b")
    )
    for name in ("cases", "held-out", "new"):
        write_wide_csv(cases, place / f"{name}.csv", label="kind")
    for line in commands.strip().splitlines():
        words = shlex.split(line)
        assert words[0] == "tsattn"
        extra = shlex.split(QUICK) if words[1] == "train" else []
        done = subprocess.run(
            [sys.executable, "-m", *words, *extra], cwd=place, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
    assert len((place / "classified.csv").read_text("utf-8").splitlines()) == 41


def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    (commands,) = re.findall(
        r"```sh\n(tsattn train cases.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    run_commands(commands, tmp_path)


def new_mechanism() -> str:
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "attention.md").read_text("utf-8"), re.DOTALL
    )
    return str(code)


def test_the_commands_on_an_attention_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "cold.py").write_text(new_mechanism(), "utf-8")
    commands = block("docs/attention.md", "own attention").removeprefix("```sh\n").removesuffix("```")
    run_commands(commands, tmp_path)


def test_the_example_of_a_new_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PARTS", dict(registry._PARTS))
    code = new_mechanism()
    exec(compile(code, "docs/attention.md", "exec"), {"__name__": "example"})
    q, k, v = torch.randn(3, 1, 2, 9, 4).unbind(0)
    cold, warm = build("cold:0.25", Heads(2, 4)), build("softmax", Heads(2, 4))
    torch.testing.assert_close(cold(q, k, v, None), warm(4 * q, k, v, None))
    torch.testing.assert_close(
        build("cold:1+bn", Heads(2, 4))(q, k, v, None), build("bn", Heads(2, 4))(q, k, v, None)
    )

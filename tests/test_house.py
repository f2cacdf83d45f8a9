"""The rules of the house that can be read from the source: floors, heavy imports, forbidden calls."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tsattn"
FILES = sorted(PACKAGE.rglob("*.py"))

# An import points to a lower floor or stays in its room; floor 0 is one room.
FLOORS = {
    "": 0,
    "errors": 0,
    "host": 0,
    "config": 0,
    "card": 0,
    "presets": 0,
    "models": 1,
    "data": 1,
    "runs": 2,
    "inference": 2,
    "training": 3,
    "evaluation": 3,
    "export": 3,
    "doctor": 3,
    "sweeps": 4,
    "cli": 5,
    "__main__": 6,
}
LIGHT = ("errors", "host", "config", "card", "presets", "data", "inference")
HEAVY = {"torch", "aeon", "sklearn", "matplotlib"}
LINES = 300
# They run code of a user or a tracker, which may raise anything and is reported, never swallowed.
RUNS_CODE_OF_OTHERS = {PACKAGE / "models" / "attention" / "foreign.py", PACKAGE / "training" / "tracking.py"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room(path: Path) -> str:
    """The first name below tsattn: a folder, or a file that stands by itself; "" for __init__."""
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def over(files: list[Path]) -> pytest.MarkDecorator:
    """Runs a test once a file."""
    return pytest.mark.parametrize("path", files, ids=lambda path: str(path.relative_to(ROOT)))


def modules(node: ast.AST) -> list[str]:
    """Dotted names that an import statement may load; `from a import b` may load a and a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def rooms_used(path: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import from tsattn, wherever in the file it stands."""
    for node in ast.walk(tree(path)):
        for name in modules(node):
            head, _, rest = name.partition(".")
            if head == "tsattn":
                used = rest.split(".")[0]
                yield node.lineno, used if used in FLOORS else ""  # type: ignore[attr-defined]


def at_module_level(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported: not in functions, not for type checkers only."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        for inner in ("body", "orelse", "finalbody", "handlers"):
            yield from at_module_level(getattr(node, inner, []))


@over(FILES)
def test_imports_point_down(path: Path) -> None:
    own = room(path)
    assert own in FLOORS, f"{own} has no floor: give it one here and in docs/architecture.md"
    wrong = [
        f"line {line}: {own} (floor {FLOORS[own]}) imports {used} (floor {FLOORS[used]})"
        for line, used in rooms_used(path)
        if used != own and FLOORS[used] >= max(FLOORS[own], 1)
    ]
    assert not wrong, "\n".join(wrong)


@over([path for path in FILES if room(path) in LIGHT])
def test_light_rooms_import_nothing_heavy(path: Path) -> None:
    nodes = ast.walk(tree(path)) if room(path) == "inference" else at_module_level(tree(path).body)
    heavy = [name for node in nodes for name in modules(node) if name.split(".")[0] in HEAVY]
    assert not heavy


def test_importing_the_light_rooms_loads_nothing_heavy() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in FILES
        if room(path) in (*LIGHT, "cli") and path.stem != "__init__"
    ]
    code = f"import sys, json, {', '.join(names)}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(json.loads(done.stdout))


def calls(path: Path) -> Iterator[tuple[int, str, list[str | None]]]:
    """(line, what is called, names of its keyword arguments)."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func), [word.arg for word in node.keywords]


@over([path for path in FILES if room(path) != "cli"])
def test_only_the_command_line_prints(path: Path) -> None:
    assert not [line for line, called, _ in calls(path) if called in ("print", "sys.stdout.write")]


@over(FILES)
def test_nothing_is_read_that_could_run_code(path: Path) -> None:
    names = {name.split(".")[0] for node in ast.walk(tree(path)) for name in modules(node)}
    assert not names & {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    for line, called, keywords in calls(path):
        assert called not in ("eval", "exec", "torch.load", "torch.save"), f"line {line}: {called}"
        assert called != "yaml.load" or "Loader" in keywords, f"line {line}: yaml.load without a Loader"
    for node in ast.walk(tree(path)):
        assert not (isinstance(node, ast.keyword) and node.arg == "allow_pickle") or (
            ast.unparse(node.value) == "False"
        ), f"line {node.value.lineno}: allow_pickle"
    unsafe = {"unsafe_load", "full_load", "Loader", "CLoader", "UnsafeLoader", "FullLoader"}
    used = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    assert not used & unsafe


@over(FILES)
def test_no_file_is_longer_than_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES


@over(FILES)
def test_nothing_catches_every_exception(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            reraises = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            broad = {"everything", "Exception", "BaseException"} & set(re.findall(r"\w+", caught))
            allowed = reraises or path in RUNS_CODE_OF_OTHERS
            assert not broad or allowed, f"line {node.lineno}: catches {caught}"

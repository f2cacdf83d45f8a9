"""Presets: what ships, a user's own file, who overrides whom, and the line of every mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tsattn.cli.app import app
from tsattn.errors import InputError
from tsattn.presets import reading
from tsattn.presets.reading import Preset, is_file, load_preset, parse_preset, preset_names, preset_text
from tsattn.presets.values import RANGES, read_value

ROOT = Path(__file__).parents[1]
SETTABLE = {
    key: hint
    for cls in reading.SECTIONS.values()
    for key, hint in get_type_hints(cls).items()
    if key not in reading._ELSEWHERE
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "mine.yaml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def shell(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("name", preset_names())
def test_what_ships_loads_and_says_what_it_is(name: str) -> None:
    preset = load_preset(name)
    assert preset.name == name
    assert preset.summary
    assert set(preset.model) | set(preset.training) | set(preset.rules) | set(preset.ensemble) == set(
        preset.places
    )
    files = {place.split(":")[0] for place in preset.places.values()}
    assert f"{name}.yaml" in files <= {f"{known}.yaml" for known in preset_names()}


def test_a_file_of_ones_own() -> None:
    name = write(
        "# what I like\n"
        "summary: small, slow\n"
        "model:\n"
        "  width: 64\n"
        "  attention: local:32+bn\n"
        "  dropout: 0\n"
        "training:\n"
        "  learning_rate: 5e-4\n"
        "  epochs: 7\n"
    )
    preset = load_preset(name)
    assert preset == Preset(
        name="mine.yaml",
        summary="small, slow",
        model={"width": 64, "attention": "local:32+bn", "dropout": 0.0},
        training={"learning_rate": 0.0005, "epochs": 7},
    )
    assert isinstance(preset.model["dropout"], float)
    assert preset.places["epochs"] == "mine.yaml:9"


def test_a_file_goes_before_the_preset_it_begins_with() -> None:
    preset = load_preset(write("preset: fast\nmodel: {width: 64}\n"))
    fast = load_preset("fast")
    assert preset.model == {**fast.model, "width": 64}
    assert preset.training == fast.training
    assert (preset.places["width"], preset.places["heads"]) == ("mine.yaml:2", fast.places["heads"])
    assert preset.summary == ""


@pytest.mark.parametrize("text", ["summary: nothing else\n", "model:\ntraining:\n", "model: {}\n"])
def test_what_is_left_out_is_not_set(text: str) -> None:
    preset = load_preset(write(text))
    assert (preset.model, preset.training) == ({}, {})


@pytest.mark.parametrize(
    ("typed", "file"),
    [("base", False), ("base.yaml", True), ("base.yml", True), ("here/base", True), ("base.txt", False)],
)
def test_a_name_or_a_file(typed: str, file: bool) -> None:
    assert is_file(typed) is file


def test_a_file_in_any_folder_with_any_ending() -> None:
    Path("recipes").mkdir()
    write("model: {width: 8}\n", "recipes/tiny")
    write("\ufeffmodel: {width: 8}\r\n", "recipes/bom.yml")
    assert load_preset("recipes/tiny").model == load_preset("recipes/bom.yml").model == {"width": 8}


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("1e-3", 0.001),
        ("1E-3", 0.001),
        ("1.e-3", 0.001),
        (".001", 0.001),
        ("1", 1.0),
        ("+0.5", 0.5),
        ("0", 0.0),
    ],
)
def test_a_number_is_read_as_it_plainly_is(spelled: str, value: float) -> None:
    read = load_preset(write(f"training:\n  learning_rate: {spelled}\n")).training["learning_rate"]
    assert (read, type(read)) == (value, float)


MODEL, TRAINING = "summary: x\nmodel:\n  layers: 2\n  ", "training:\n  "
MISTAKES: dict[str, tuple[str, str]] = {
    "unknown key": (MODEL + "widht: 64", "4: unknown key 'widht' in 'model:'. Did you mean 'width'?"),
    "flag's name": (TRAINING + "lr: 1", "2: unknown key 'lr' in 'training:'. Did you mean 'learning_rate'?"),
    "unlike any key": (
        MODEL + "zzz: 1",
        "4: unknown key 'zzz' in 'model:'. Known: attention, tokens, width,",
    ),
    "unknown section": (
        "modell:\n  width: 1",
        "1: unknown key 'modell' in the preset. Did you mean 'model'?",
    ),
    "in the other section": (
        MODEL + "epochs: 5",
        "4: unknown key 'epochs' in 'model:'. It belongs below 'train",
    ),
    "in no section": ("width: 64", "1: unknown key 'width' in the preset. It belongs below 'model:'."),
    "known from the data": (
        MODEL + "channels: 3",
        "4: unknown key 'channels' in 'model:'. It cannot be set here",
    ),
    "seed": (
        TRAINING + "seed: 3",
        "2: unknown key 'seed' in 'training:'. It cannot be set here: a seed belongs",
    ),
    "text for a whole number": (
        MODEL + "width: wide",
        "4: width is wide; expected a whole number, 1 or more.",
    ),
    "text for a number": (TRAINING + "clip: high", "2: clip is high; expected a number, above 0."),
    "number in quotes": (
        TRAINING + 'learning_rate: "0.001"',
        '2: learning_rate is "0.001"; expected a number, 0 or more. Write 0.001 without quotes.',
    ),
    "whole number in quotes": (
        MODEL + "width: '64'",
        "4: width is '64'; expected a whole number, 1 or more. Wri",
    ),
    "fraction": (MODEL + "width: 64.0", "4: width is 64.0; expected a whole number, 1 or more."),
    "truth for a whole number": (
        MODEL + "heads: true",
        "4: heads is true; expected a whole number, 1 or more.",
    ),
    "truth for a number": (TRAINING + "clip: yes", "2: clip is yes; expected a number, above 0."),
    "octal": (TRAINING + "epochs: 010", "2: epochs is 010; expected a whole number, 1 or more."),
    "sexagesimal": (TRAINING + "epochs: 1:30", "2: epochs is 1:30; expected a whole number, 1 or more."),
    "comma": (TRAINING + "clip: 0,5", "2: clip is 0,5; expected a number, above 0."),
    "not a number": (
        TRAINING + "learning_rate: .nan",
        "2: learning_rate is .nan; expected a number, 0 or more.",
    ),
    "infinite": (TRAINING + "learning_rate: .inf", "2: learning_rate is .inf; expected a number, 0 or more."),
    "too large": (
        TRAINING + "learning_rate: 1e999",
        "2: learning_rate is 1e999; expected a number, 0 or more.",
    ),
    "negative": (
        TRAINING + "learning_rate: -1e-3",
        "2: learning_rate is -1e-3; expected a number, 0 or more.",
    ),
    "zero": (MODEL + "width: 0", "4: width is 0; expected a whole number, 1 or more."),
    "share": (MODEL + "dropout: 1", "4: dropout is 1; expected a number, from 0 to below 1."),
    "held out": (TRAINING + "validation: 0.95", "2: validation is 0.95; expected a number, from 0 to 0.9."),
    "no value": (MODEL + "width:", "4: width is empty; expected a whole number, 1 or more."),
    "no text": (MODEL + "attention: ~", "4: attention is empty; expected text."),
    "number for text": (
        MODEL + "tokens: 5",
        "4: tokens is 5; expected text. If '5' is that text, write it in quo",
    ),
    "truth for text": (
        MODEL + "attention: off",
        "4: attention is off; expected text. If 'off' is that text, wr",
    ),
    "list": (MODEL + "width: [1, 2]", "4: width is a list; expected a whole number, 1 or more."),
    "mapping": (MODEL + "width: {a: 1}", "4: width is a mapping; expected a whole number, 1 or more."),
    "summary": ("summary: [a]", "1: summary is a list; expected text."),
    "twice": (MODEL + "width: 1\n  layers: 3", "5: layers stands here again, first in line 3. Keep one."),
    "section twice": (
        "model: {width: 1}\n\nmodel: {}",
        "3: model stands here again, first in line 1. Keep one.",
    ),
    "key is a list": ("model:\n  ? [a]\n  : 1", "2: unknown key 'a list' in 'model:'. Known: "),
    "merge": ("model:\n  <<: {width: 1}", "2: unknown key '<<' in 'model:'. Known: "),
    "section is text": ("model: small", "1: 'model:' is small; expected lines such as 'key: value'."),
    "section is a list": (
        "model:\n  - width: 1",
        "2: 'model:' is a list; expected lines such as 'key: value'.",
    ),
    "text": (
        "just words",
        "1: the preset is just words; expected lines such as 'model:' and, indented below it, 'w",
    ),
    "list of lines": ("- model", "1: the preset is a list; expected lines such as 'model:' and, indented"),
    "tab as indent": ("model:\n\twidth: 64", "2: a tab, which YAML does not take. Write spaces."),
    "tab after the colon": (
        "model:\n  layers: 2\n  width:\t64",
        "3: a tab, which YAML does not take. Write spaces.",
    ),
    "quote": (
        MODEL + "attention: 'bn\n  width: 3",
        "4: this is no YAML (found unexpected end of stream). A line is",
    ),
    "long key": (MODEL + '"a\\nb": 1', "4: unknown key 'a b' in 'model:'. Known: attention,"),
    "long value": (
        MODEL + "width: " + "x" * 99,
        f"4: width is {'x' * 60}…; expected a whole number, 1 or more.",
    ),
    "bracket": ("model: {width: 64\ntraining: {}", "2: this is no YAML ("),
    "indent": (
        MODEL + "  width: 3",
        "4: this is no YAML (mapping values are not allowed here). A line is 'key: ",
    ),
    "two documents": ("model: {}\n---\nmodel: {}", "2: this is no YAML (but found another document)"),
    "unknown alias": ("model: *a", "1: this is no YAML (found undefined alias"),
    "control character": ("model:\n  width: \x01", "2: a character that YAML does not allow."),
    "unknown base": ("preset: bas", "1: preset 'bas': there is none. Did you mean 'base'?"),
    "base is a file": (
        "preset: mine.yaml",
        "1: preset is mine.yaml; expected one of base, best, fast, paper, and no file.",
    ),
    "code": ("model:\n  width: !!python/object:os.system [x]", "2: width is a list; expected a whole number"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_its_line(mistake: str) -> None:
    text, message = MISTAKES[mistake]
    with pytest.raises(InputError) as caught:
        load_preset(write(text + "\n"))
    assert str(caught.value).startswith(f"mine.yaml:{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.yaml: the preset is empty; expected 'model:'"),
        ("# nothing\n", "mine.yaml: the preset is empty"),
        ("[" * 3000, "mine.yaml: nested too deep for a preset"),
        ('summary: "\\UFFFFFFFF"', "mine.yaml: this is no YAML (an escape names no character)"),
        ("# " + "x" * (1 << 20), "preset mine.yaml: more than 1 MiB"),
    ],
)
def test_a_file_that_is_no_preset_at_all(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load_preset(write(text))


def test_a_file_that_cannot_be_read() -> None:
    Path("folder.yaml").mkdir()
    Path("latin.yaml").write_bytes(b"model:\n  width: 3 # gr\xfc\xdfe\n")
    for name, message in {
        "nowhere.yaml": "preset nowhere.yaml: there is no such file. Presets with a name are base, ",
        "folder.yaml": "preset folder.yaml: cannot be read (Is a directory)",
        "no\0name.yaml": "cannot be read (embedded null byte)",
        "latin.yaml": "latin.yaml:2: not UTF-8 text. Save the file as UTF-8.",
    }.items():
        with pytest.raises(InputError, match=re.escape(message)):
            load_preset(name)


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(
        InputError, match=r"preset 'bass': there is none. Did you mean 'base'\? There are: base, "
    ):
        load_preset("bass")
    write("model: {}", "mine.yaml")
    with pytest.raises(InputError, match=r"preset 'mine': there is none. Did you mean 'mine.yaml'\?"):
        load_preset("mine")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_spoilt_preset_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    text = preset_text("base")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 3))
        new = data.draw(
            st.text(max_size=3) | st.sampled_from([*"\t\n:-[]{}&*!|>'\"%@#", " \n", "? ", "- ", "~"])
        )
        text = text[:place] + new + text[place + gone :]
    try:
        preset = parse_preset("mine.yaml", text)
    except InputError as error:
        assert re.match(r"mine\.yaml(:\d+)?: ", str(error))  # noqa: PT017
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        for key, value in {**preset.model, **preset.training}.items():
            assert type(value) is SETTABLE[key]


@dataclass(frozen=True)
class Even:
    """Stands for a configuration that refuses what fits type and range."""

    needed: int
    one: int = 2
    other: int = 2

    def __post_init__(self) -> None:
        if self.one % 2 or self.other % 2:
            raise ValueError("one and other are even")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"one": 4, "other": 3}, "mine.yaml:7: one and other are even"),
        ({"one": 3, "other": 3}, "mine.yaml: one and other are even"),
    ],
)
def test_what_the_configuration_refuses_has_its_line_too(values: dict[str, int], message: str) -> None:
    places = {"one": "mine.yaml:6", "other": "mine.yaml:7"}
    with pytest.raises(InputError) as caught:
        reading._refuse_what_the_class_refuses(Even, values, places, "mine.yaml")
    assert str(caught.value) == message


def test_a_word_that_there_is_not_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("training:\n  epochs: 3\n  schedule: cosin\n", "utf-8")
    with pytest.raises(InputError) as caught:
        load_preset(str(path))
    expected = "schedule 'cosin': expected cosine or one-cycle or constant. Did you mean 'cosine'?"
    assert str(caught.value) == f"{path}:3: {expected}"


@pytest.mark.parametrize("key", SETTABLE)
def test_every_field_can_be_set_and_every_number_has_its_range(key: str) -> None:
    import yaml

    field = next(f for cls in reading.SECTIONS.values() for f in fields(cls) if f.name == key)
    default = 5 if field.default is MISSING else field.default
    root: Any = yaml.compose(yaml.safe_dump({key: default}))
    assert read_value(key, root.value[0][1], SETTABLE[key]) == default
    assert SETTABLE[key] in (bool, str) or key in RANGES, f"give {key} a range in tsattn/presets/values.py"


@pytest.mark.parametrize(("hint", "value"), [(bool, True), (int | None, 3), (float | None, 0.5)])
def test_types_that_a_field_may_come_to_have(hint: Any, value: Any) -> None:
    import yaml

    node: Callable[[str], Any] = lambda text: yaml.compose(text, Loader=yaml.SafeLoader)  # noqa: E731
    assert read_value("anything", node(str(value).lower()), hint) == value
    if hint is not bool:
        assert read_value("anything", node("null"), hint) is None
    with pytest.raises(TypeError, match="a preset cannot hold"):
        read_value("anything", node("x"), dict)


def test_the_list() -> None:
    listed = json.loads(shell("preset", "list", "--json"))
    assert [entry["name"] for entry in listed] == list(preset_names())
    assert listed[0] == {
        "name": "base",
        "summary": load_preset("base").summary,
        "model": load_preset("base").model,
        "training": load_preset("base").training,
        "rules": load_preset("base").rules,
        "ensemble": {},
    }
    drawn = shell("preset", "list")
    for word in ("base", "fast", "width"):
        assert word in drawn


def test_a_preset_is_shown_as_it_is() -> None:
    assert shell("preset", "show", "base") == (ROOT / "tsattn/presets/base.yaml").read_text("utf-8")
    assert json.loads(shell("preset", "show", "fast", "--json"))["model"] == load_preset("fast").model
    name = write("preset: fast # and wider\nmodel: {width: 64}\n")
    assert shell("preset", "show", name) == "preset: fast # and wider\nmodel: {width: 64}\n"
    shown = json.loads(shell("preset", "show", name, "--json"))
    assert (shown["model"]["width"], shown["rules"]["passes"]) == (64, 20)


@pytest.mark.parametrize("words", [("preset", "show"), ("train", "GunPoint", "--preset")])
def test_the_command_line_says_file_and_line(words: tuple[str, ...]) -> None:
    name = write("training:\n  learning_rate: fast\n")
    with pytest.raises(
        InputError, match=r"^mine.yaml:2: learning_rate is fast; expected a number, 0 or more.$"
    ):
        CliRunner().invoke(app, [*words, name], catch_exceptions=False)


def test_a_training_takes_a_file_and_what_is_typed_goes_first() -> None:
    import yaml

    name = write(
        "preset: fast\nmodel: {width: 16, heads: 2, layers: 1}\ntraining: {epochs: 1, learning_rate: 1e-4}\n"
    )
    shell("train", "GunPoint", "--preset", name, "--layers", "2", "--out", "run", "--json")
    config = yaml.safe_load(Path("run/config.yaml").read_text("utf-8"))
    assert config["preset"] == name
    assert {key: config["model"][key] for key in ("width", "layers", "tokens")} == {
        "width": 16,  # of the file
        "layers": 2,  # as typed
        "tokens": "multiscale:2",  # of the preset that the file begins with
    }
    assert (config["training"]["epochs"], config["training"]["learning_rate"]) == (1, 1e-4)
    assert config["training"]["clip"] == 1.0  # the default


DOCUMENT = (ROOT / "docs" / "presets.md").read_text("utf-8")


def test_the_document_names_every_key() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", DOCUMENT, re.MULTILINE)
    assert set(SETTABLE) <= {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def test_the_example_and_the_commands_of_the_document() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    write(example, "my.yaml")
    commands = re.findall(r"^\$ tsattn (preset .*)\n((?:[^$`].*\n)*)", DOCUMENT, re.MULTILINE)
    assert len(commands) == 3
    for command, output in commands:
        printed = shell(*command.split())
        assert all(line in printed for line in output.splitlines()), command
    assert load_preset("my.yaml").training["learning_rate"] == 5e-4


def test_the_rules_of_the_document_are_what_a_training_prints() -> None:
    (shown,) = re.findall(r"<!-- rules -->\n```console\n\$ tsattn (.*)\n((?:.*\n)*?)```", DOCUMENT)
    assert shown[1] in shell(*shown[0].split())


def test_the_mistakes_of_the_document() -> None:
    rows = re.findall(r"^\| `(  .*?)` \| `(my.yaml:2: .*)` \|$", DOCUMENT, re.MULTILINE)
    assert len(rows) == 5
    for line, message in rows:
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            load_preset(write(f"model:\n{line}\n", "my.yaml"))

"""An attention of the user's own: from a file, from installed software, and what is said of broken ones."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tsattn.config import Code
from tsattn.errors import InputError
from tsattn.models.attention import Heads, build, foreign, installed, laws, parts, registry
from tsattn.models.attention.foreign import load_file, recorded, resolve

HEAD = """\
from torch import Tensor
from torch.nn import functional as F

from tsattn.models.attention.contract import Heads, Mechanism
from tsattn.models.attention.registry import core, wrapper

"""
COLD = (
    HEAD
    + """
@core("cold", summary="softmax at a low temperature", cost="N²", source="an example", option="T")
class Cold(Mechanism):
    def __init__(self, heads, option=None):
        super().__init__()
        self.temperature = float(option or 0.5)

    def forward(self, q, k, v, observed):
        mask = None if observed is None else observed[:, None, None, :].expand(-1, 1, q.shape[2], -1)
        return F.scaled_dot_product_attention(q / self.temperature, k, v, attn_mask=mask)
"""
)
HALF = (
    HEAD
    + """
@wrapper("half", summary="half of it", cost="unchanged", source="an example")
class Half(Mechanism):
    def __init__(self, heads, inner):
        super().__init__()
        self.inner = inner(heads)

    def forward(self, q, k, v, observed):
        return self.inner(q, k, v, observed) / 2
"""
)


def core_of(body: str, name: str = "odd", claims: str = "") -> str:
    """A file with one core whose forward is `body`."""
    return HEAD + (
        f'\n@core("{name}", summary="s", cost="N", source="x")\nclass Odd(Mechanism):\n    {claims}\n'
        "    def __init__(self, heads):\n        super().__init__()\n\n"
        f"    def forward(self, q, k, v, observed):\n        {body}\n"
    )


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(registry, "_PARTS", dict(registry._PARTS))
    monkeypatch.setattr(foreign, "_packages", set())
    monkeypatch.setattr(installed, "_tried", set())
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith((foreign.MODULES, "far_away")):
            del sys.modules[name]


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_file_is_named_in_a_spec_and_stands_there_by_its_plain_name() -> None:
    write("my/cold.py", COLD)
    write("half.py", HALF)
    assert resolve("my/cold.py:cold:0.25+bn") == "cold:0.25+bn"
    assert resolve(" my/cold.py:cold + half.py:half ") == "cold+half"
    q, k, v = torch.randn(3, 1, 2, 9, 4).unbind(0)
    mixed = build("cold:0.25+half", Heads(2, 4))(q, k, v, None)
    torch.testing.assert_close(2 * mixed, build("softmax", Heads(2, 4))(4 * q, k, v, None))
    assert {str(part.origin) for part in parts() if part.origin} == {"my/cold.py", "half.py"}
    assert not Path("my/__pycache__").exists()


def test_a_plain_spec_runs_nothing() -> None:
    write("bn.py", "raise SystemExit(9)")
    assert resolve("softmax+bn") == "bn"
    assert recorded("bn+sh") == ()


def test_the_same_content_is_run_once_and_other_content_of_that_name_is_refused() -> None:
    write(
        "cold.py",
        COLD + "\nfrom pathlib import Path\nwith Path('runs.txt').open('a') as f:\n    f.write('x')\n",
    )
    write("copy/cold.py", Path("cold.py").read_text("utf-8"))
    assert resolve("cold.py:cold") == resolve("copy/cold.py:cold") == "cold"
    assert Path("runs.txt").read_text() == "x"
    write("other.py", COLD.replace("0.5", "0.4"))
    with pytest.raises(InputError) as error:
        resolve("other.py:cold")
    assert str(error.value) == (
        "other.py:8: an attention called 'cold' is registered already, from cold.py; "
        "give this one another name."
    )
    assert {part.name for part in parts() if part.origin} == {"cold"}


def test_what_is_recorded_is_the_content_that_was_run() -> None:
    write("a/one.py", COLD)
    write("b/one.py", HALF)
    spec = resolve("a/one.py:cold+b/one.py:half")
    Path("a/one.py").write_text("changed since", "utf-8")
    cold, half = recorded(spec)
    assert (cold.part, cold.file, half.part) == ("cold", "code/one.py", "half")
    assert half.file == f"code/one-{half.sha256[:8]}.py"
    assert foreign.content_of(cold).decode() == COLD
    assert foreign.content_of(half).decode() == HALF


WRONG = {
    "no file": ("nowhere.py:cold", "", "no such file nowhere.py"),
    "no name": ("mine.py+bn", COLD, "which attention of mine.py? Write 'mine.py:NAME'"),
    "empty name": ("mine.py:", COLD, "mine.py does not register '', write 'mine.py:cold'"),
    "other name": ("mine.py:warm+bn", COLD, "mine.py does not register 'warm', write 'mine.py:cold'"),
    "a name of ours": ("mine.py:softmax", COLD, "mine.py does not register 'softmax', write 'mine.py:cold'"),
    "no attention": ("mine.py:cold", "x = 1\n", "mine.py: registers no attention. Write @core("),
    "empty": ("mine.py:cold", "", "mine.py: registers no attention"),
    "syntax": ("mine.py:cold", "def f(:\n", "mine.py:1: SyntaxError: invalid syntax."),
    "null bytes": ("mine.py:cold", "x = 1\0", "mine.py"),
    "neighbour": (
        "mine.py:cold",
        "\nimport my_neighbour\n",
        "mine.py:2: ModuleNotFoundError: No module named 'my_neighbour'. The file is recorded by itself",
    ),
    "exception": ("mine.py:cold", COLD + "\n1 / 0\n", "mine.py:18: ZeroDivisionError: division by zero."),
    "leaves": ("mine.py:cold", "import sys\nsys.exit('bye')\n", "mine.py:2: SystemExit: bye."),
    "its own way to leave": (
        "mine.py:cold",
        "class Odd(BaseException): ...\nraise Odd('x')\n",
        "mine.py:2: Odd: x.",
    ),
    "forward without a mask": (
        "mine.py:cold",
        COLD.replace("v, observed)", "v)"),
        "mine.py:8: Cold needs forward(self, q, k, v, observed): too many positional arguments.",
    ),
    "a summary that is no text": (
        "mine.py:cold",
        COLD.replace('cost="N²"', "cost=2"),
        "mine.py:8: cost of attention 'cold' has to be text, not 2.",
    ),
    "built in": (
        "mine.py:bn",
        COLD.replace('"cold"', '"bn"'),
        "mine.py:8: an attention called 'bn' is built in",
    ),
    "twice": ("mine.py:cold", COLD + COLD, "an attention called 'cold' is registered already, from mine.py"),
    "a word with plus": (
        "mine.py:a",
        COLD.replace('"cold"', '"a+b"'),
        "mine.py:8: 'a+b' cannot name an attention",
    ),
    "forgotten argument": (
        "mine.py:cold",
        COLD.replace('cost="N²", ', ""),
        "mine.py:8: TypeError: core() missing 1 required keyword-only argument: 'cost'",
    ),
    "no option": (
        "mine.py:cold",
        COLD.replace(", option=None", "").replace("option or ", ""),
        "mine.py:8: Cold needs __init__(self, heads, option): too many positional arguments.",
    ),
    "no inner": (
        "mine.py:half",
        HALF.replace("heads, inner)", "heads, *, inner)", 1),
        "mine.py:8: Half needs __init__(self, heads, inner)",
    ),
    "no constructor": (
        "mine.py:odd",
        HEAD + '@core("odd", summary="s", cost="N", source="x")\nclass Odd(Mechanism):\n'
        "    def forward(self, q, k, v, observed):\n        return v\n",
        "Odd has no __init__(self, heads)",
    ),
    "no forward": (
        "mine.py:cold",
        COLD.replace("def forward", "def backward"),
        "Cold has no forward(self, q, k, v, observed)",
    ),
    "no mechanism": (
        "mine.py:cold",
        COLD.replace("class Cold(Mechanism)", "class Cold"),
        "'cold' has to be a class derived from Mechanism",
    ),
    "plus in the path": ("a+b/mine.py:cold", "", "a path with '+' in it cannot stand in a spec"),
    "nonsense besides": ("mine.py:cold+linear", COLD, "write 'mine.py:cold' or 'linear'"),
    "a folder": ("folder.py:cold", "", "no such file folder.py"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_one_message_and_leaves_nothing_behind(case: str) -> None:
    typed, text, says = WRONG[case]
    write("mine.py", text)
    write("a+b/mine.py", COLD)
    Path("folder.py").mkdir()
    modules = set(sys.modules)
    with pytest.raises(InputError) as error:
        resolve(typed)
    message = str(error.value)
    assert says in message
    assert "Traceback" not in message
    assert "\n" not in message
    if case not in (
        "other name",
        "a name of ours",
        "empty name",
        "nonsense besides",
        "no attention",
        "empty",
    ):
        assert not [part for part in parts() if part.origin]
        assert not [name for name in set(sys.modules) - modules if name.startswith(foreign.MODULES)]


def test_a_drive_letter_is_part_of_the_path() -> None:
    with pytest.raises(InputError, match=r"no such file C:\\my\\cold\.py\."):
        resolve(r"C:\my\cold.py:cold+bn")


def test_bytecode_beside_a_file_is_never_run() -> None:
    """A run folder's hash covers the text; a planted cache must not stand in for it."""
    path = write("cold.py", COLD)
    evil = write("evil.py", "raise SystemExit('planted')\n")
    py_compile.compile(
        str(evil),
        importlib.util.cache_from_source(str(path)),
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    assert [part.name for part in load_file(path)] == ["cold"]


def test_an_error_inside_is_blamed_on_the_file_and_ours_is_not() -> None:
    write("odd.py", core_of("return v @ q"))
    mechanism = build(resolve("odd.py:odd+bn"), Heads(2, 4))
    q, k, v = torch.randn(3, 1, 2, 9, 4).unbind(0)
    with pytest.raises(RuntimeError) as raised:
        mechanism(q, k, v, None)
    assert foreign.blame(raised.value) == "odd.py:15"
    with pytest.raises(AttributeError) as ours:
        build("bn", Heads(2, 4))(q, None, v, None)
    assert foreign.blame(ours.value) is None


BREAKS = {
    "attends to padding": (
        "return F.scaled_dot_product_attention(q, k, v)",
        {"content of padding and gaps", "amount of padding", "a case in a batch as alone"},
    ),
    "depends on the batch": (
        "return v if observed is None else v * observed[:, None, :, None] + v.mean(0, keepdim=True)",
        {"content of padding and gaps", "a case in a batch as alone"},
    ),
    "another shape": (
        "return v.mean(2, keepdim=True)",
        {"shape, values, gradients: float32", "shape, values, gradients: bfloat16 with gaps"},
    ),
    "another type": (
        "return v.float()",
        {"shape, values, gradients: bfloat16", "shape, values, gradients: bfloat16 with gaps"},
    ),
    "not finite": ("return v / 0", {"constant keys stay finite", "shape, values, gradients: float32"}),
    "no gradient": ("return v.detach() + 0 * q", {"shape, values, gradients: float32"}),
    "raises": ("return v[:, :, :, 7]", {"all observed as no mask", "shape, values, gradients: float32"}),
}


@pytest.mark.parametrize("case", BREAKS)
def test_a_broken_law_is_found(case: str) -> None:
    body, laws_broken = BREAKS[case]
    write("odd.py", core_of(body))
    findings = list(laws.examine(resolve("odd.py:odd")))
    broken = {finding.law: finding for finding in findings if not finding.held}
    assert laws_broken <= set(broken)
    assert all(one.note or (one.difference or 0) > (one.allowed or 0) for one in broken.values())
    if case == "raises":
        assert broken["all observed as no mask"].note.startswith("odd.py:15: IndexError: index 7 is out of")


def test_a_false_claim_is_found() -> None:
    body = "return v * (q * k).tanh()"
    write("odd.py", core_of(body, claims="ignores_key_shift = True"))
    findings = {one.law: one for one in laws.examine(resolve("odd.py:odd"))}
    assert not findings[laws.CLAIM].held
    write("honest.py", core_of(body, name="honest"))
    assert laws.CLAIM not in {one.law for one in laws.examine(resolve("honest.py:honest"))}


def test_a_sound_attention_obeys_and_is_the_same_every_time() -> None:
    write("cold.py", COLD)
    spec = resolve("cold.py:cold")
    once, again = list(laws.examine(spec)), list(laws.examine(spec))
    assert once == again
    assert all(finding.held for finding in once)
    assert laws.specs_around(spec) == ("cold", "cold+bn", "cold+sh")
    write("half.py", HALF)
    assert laws.specs_around(resolve("half.py:half")) == ("half", "linear+half", "half+bn", "half+sh")
    assert laws.specs_around("flow") == ("flow", "flow+bn")
    assert laws.specs_around("bn+sh") == ("bn+sh",)


def install(
    folder: Path, distribution: str, module: str, text: str, points: str, version: str = "1.2"
) -> None:
    """A distribution as an installer lays it down: a module and a dist-info folder."""
    write(str(folder / f"{module}.py"), text)
    information = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", "utf-8"
    )
    (information / "entry_points.txt").write_text(f"[tsattn.attention]\n{points}\n", "utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def test_an_installed_attention_is_found_by_its_name(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    install(site, "far-away", "far_away", COLD, "cold = far_away:Cold")
    assert resolve("softmax") == "softmax"
    assert "far_away" not in sys.modules  # nobody asked for it
    assert resolve("cold+bn") == "cold+bn"
    assert [str(part.origin) for part in parts() if part.origin] == ["far-away 1.2"]
    assert recorded("cold+bn") == (Code(part="cold", distribution="far-away", version="1.2"),)
    assert caplog.text == ""


def test_a_broken_installed_attention_is_a_remark(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    install(site, "far-away", "far_away", COLD + "\n1 / 0\n", "cold = far_away")
    install(site, "far-away-2", "far_away_2", HALF, "half = far_away_2")
    install(site, "far-away-3", "far_away_3", HALF, "gone = far_away_3:Gone")
    installed.load_installed()
    assert {part.name for part in parts() if part.origin} == {"half"}
    assert "Attention 'cold' of far-away 1.2 cannot be used: " in caplog.text
    assert "far_away.py:18: ZeroDivisionError: division by zero." in caplog.text
    assert "Attention 'gone' of far-away-3 1.2 cannot be used: " in caplog.text
    with pytest.raises(InputError, match="there is no part 'cold'"):
        resolve("cold")


def test_an_installed_attention_cannot_take_a_built_in_name(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, "far-away", "far_away", COLD.replace('"cold"', '"bn"'), "bn = far_away")
    installed.load_installed()
    assert "an attention called 'bn' is built in" in caplog.text
    assert next(part for part in parts() if part.name == "bn").origin is None


@pytest.mark.parametrize(
    ("body", "gives"),
    [
        ("return None", "NoneType"),
        ("return v, v", "tuple"),
        ("return v[:, :, :1]", "(1, 2, 1, 4) torch.float32"),
        ("return v.double()", "(1, 2, 9, 4) torch.float64"),
    ],
)
def test_a_wrong_output_is_said_of_the_attention_that_gave_it(body: str, gives: str) -> None:
    """Not of the layer that meets it next, which would look like a bug of ours."""
    write("odd.py", core_of(body))
    mechanism = build(resolve("odd.py:odd+bn"), Heads(2, 4))
    q, k, v = torch.randn(3, 1, 2, 9, 4).unbind(0)
    with pytest.raises(InputError) as error:
        mechanism(q, k, v, None)
    assert str(error.value) == f"odd.py: attention 'odd' gives {gives}, expected (1, 2, 9, 4) torch.float32."


def test_a_constructor_that_forgets_its_base_is_said() -> None:
    write("odd.py", core_of("return v").replace("super().__init__()", "pass"))
    spec = resolve("odd.py:odd")
    with pytest.raises(InputError, match=r"odd\.py: attention 'odd' has to call super\(\)\.__init__\(\)"):
        build(spec, Heads(2, 4))


def test_what_a_file_prints_leaves_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json stdout is one document."""
    write("cold.py", COLD + "\nprint('hello')\n")
    resolve("cold.py:cold")
    assert tuple(capsys.readouterr()) == ("", "hello\n")


def test_a_pipe_is_not_waited_for() -> None:
    os.mkfifo("pipe.py")
    with pytest.raises(InputError, match=r"pipe\.py: this is no file"):
        load_file(Path("pipe.py"))


@pytest.mark.parametrize(
    ("typed", "write_this"),
    [("bn+cold.py:cold:2", "cold.py:cold:2+bn"), ("cold.py:cold+linear", "cold.py:cold")],
)
def test_a_refusal_names_a_spelling_that_can_be_typed(typed: str, write_this: str) -> None:
    """A plain name of a part that only a file brings would not be found."""
    write("cold.py", COLD)
    with pytest.raises(InputError) as error:
        resolve(typed)
    assert f"write '{write_this}'" in str(error.value)
    resolve(write_this)

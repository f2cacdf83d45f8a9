"""`tsattn runs`: what lies below a folder, what differs between two, and that only runs are deleted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tsattn.cli.app import main
from tsattn.runs import held

SHAPE = ["--width", "8", "--heads", "2", "--layers", "1", "--tokens", "linear", "--threads", "1"]


def tsattn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["tsattn", *words])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out, printed.err


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, of which one is judged and one is copied with another seed."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        words = ["train", "GunPoint", "--attention", "bn+sh", "--epochs", "2", *SHAPE, "-o", str(place / "a")]
        for line in (words, ["eval", str(place / "a")]):
            patch.setattr("sys.argv", ["tsattn", *line])
            with pytest.raises(SystemExit) as left:
                main()
            assert not left.value.code
    shutil.copytree(place / "a", place / "deep" / "b")
    config = place / "deep" / "b" / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("seed: 0", "seed: 7"), "utf-8")
    return place


def test_the_list_has_every_run_below_a_folder(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = tsattn(monkeypatch, capsys, "runs", "list", str(trained), "--json")
    assert status == 0
    rows: list[dict[str, Any]] = json.loads(out)
    assert [Path(row["run"]).relative_to(trained).as_posix() for row in rows] == ["a", "deep/b"]
    metrics = json.loads((trained / "a" / "metrics.json").read_text("utf-8"))
    first = rows[0]
    assert (first["data"], first["attention"], first["tokens"], first["seed"]) == (
        "GunPoint", "bn+sh", "linear", 0,
    )  # fmt: skip
    assert first["test"] == metrics["test"]["accuracy"]
    assert (first["epochs"], first["finished"], first["validation"]) == (2, True, None)
    status, out, _ = tsattn(monkeypatch, capsys, "runs", "list", str(trained))
    assert "2 runs below" in out
    assert "of all: data GunPoint, attention bn+sh, tokens linear, preset base" in " ".join(out.split())
    assert out.split()[:3] == ["run", "seed", "test"]  # what is alike in all takes no room in the table
    assert f"{100 * metrics['test']['accuracy']:.2f}" in out


def test_a_spoilt_run_is_said_and_the_others_are_listed(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    (tmp_path / "copy" / "a" / "config.yaml").write_text("source: [", "utf-8")
    status, out, err = tsattn(monkeypatch, capsys, "runs", "list", str(tmp_path / "copy"), "--json")
    assert status == 0
    assert [Path(row["run"]).name for row in json.loads(out)] == ["b"]
    assert "config.yaml" in err


def test_show_and_diff(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = str(trained / "a"), str(trained / "deep" / "b")
    _, out, _ = tsattn(monkeypatch, capsys, "runs", "show", one, "--json")
    assert json.loads(out)["config"]["model"]["attention"] == "bn+sh"
    _, out, _ = tsattn(monkeypatch, capsys, "runs", "show", one)
    assert "config.training.epochs" in out
    _, out, _ = tsattn(monkeypatch, capsys, "runs", "diff", one, other, "--json")
    found = json.loads(out)
    assert found["config"] == {"training.seed": [0, 7]}
    assert found["metrics"] == found["environment"] == {}
    _, out, _ = tsattn(monkeypatch, capsys, "runs", "diff", one, one)
    assert "Nothing differs" in out


def test_only_run_folders_are_deleted_and_nobody_is_surprised(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    folder = tmp_path / "copy"
    (folder / "thesis.tex").touch()
    (folder / "link").symlink_to(folder / "a", target_is_directory=True)
    for words, said in (
        ([str(folder)], "not a run folder"),
        ([str(folder / "nothing")], "no such run folder"),
        ([str(folder / "link")], "a link"),
        ([str(folder / "a"), str(folder)], "not a run folder"),
        ([str(folder / "a")], "Type --yes"),
    ):
        yes = [] if said == "Type --yes" else ["--yes"]
        status, out, err = tsattn(monkeypatch, capsys, "runs", "rm", *words, *yes)
        assert (status, out) == (2, ""), words
        assert said in err
        assert (folder / "a" / "model.safetensors").is_file()
    with held(folder / "a"):
        status, _, err = tsattn(monkeypatch, capsys, "runs", "rm", str(folder / "a"), "--yes")
        assert status == 2
        assert "another process" in err
    (folder / "a" / "notes.txt").touch()
    status, _, err = tsattn(monkeypatch, capsys, "runs", "rm", str(folder / "a"), "--yes")
    assert (status, "notes.txt: not a file of a run" in "".join(err.splitlines())) == (2, True)
    (folder / "a" / "notes.txt").rename(folder / "a" / "model.onnx")
    monkeypatch.chdir(folder / "a")
    status, _, _ = tsattn(monkeypatch, capsys, "runs", "rm", ".", str(folder / "a"), "--yes")
    assert status == 0
    assert sorted(path.name for path in folder.iterdir()) == ["deep", "link", "thesis.tex"]
    assert (folder / "deep" / "b" / "model.safetensors").is_file()


def test_it_asks(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer in (False, True):
        monkeypatch.setattr("typer.confirm", lambda _, answer=answer: answer)
        status, _, err = tsattn(monkeypatch, capsys, "runs", "rm", str(tmp_path / "copy" / "a"))
        assert status == 0
        assert "bn+sh on GunPoint, seed 0" in err
        assert ("Nothing was deleted" in err) is not answer
        assert (tmp_path / "copy" / "a").exists() is not answer

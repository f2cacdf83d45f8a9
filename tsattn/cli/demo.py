"""`tsattn demo`: the main job from start to end on data that come with the installation."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from typing import Annotated

import typer

DATA, SPEC, PRESET = "JapaneseVowels", "bn+sh", "fast"

NEXT = (
    ("the default recipe, which takes a few minutes", f"tsattn train {DATA}"),
    ("another attention on the same data", f"tsattn train {DATA} --attention linear"),
    ("what an attention can be made of", "tsattn attention list"),
    ("your own table, a row a case", "tsattn train cases.csv --label COLUMN"),
    ("your own table, a row a timepoint", "tsattn train log.csv --id COLUMN --time COLUMN --label COLUMN"),
    ("classify files", "tsattn predict MODEL.onnx new.csv -o classified.csv --proba"),
)


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder for what is made. Default: runs/demo.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Train, judge, export and predict on the spoken vowels of nine speakers, in a minute or so.

    Runs the very commands it shows.
    """
    from tsattn.cli import console
    from tsattn.cli.eval import evaluate
    from tsattn.cli.export import export_to_onnx
    from tsattn.cli.predict import predict
    from tsattn.cli.training_view import draw_training, prepare_visibly, run_visibly
    from tsattn.data.columns import TableOptions

    folder = out or _fresh()
    run, table, answers = folder / "run", folder / "test.csv", folder / "answers.csv"
    model = run / "model.onnx"

    _show_command(f"tsattn train {DATA} --attention {SPEC} --preset {PRESET} --out {run}")
    prepared = prepare_visibly(
        DATA,
        asked={"attention": SPEC, "seed": 0},
        cutting={},
        holding={},
        preset=PRESET,
        device="auto",
        threads=None,
        out=run,
        table=TableOptions(),
    )
    draw_training(run_visibly(prepared))
    _show_command(f"tsattn eval {run}")
    evaluate(str(run))
    _show_command(f"tsattn export onnx {run}")
    export_to_onnx(run)
    truth = _write_test_split(table)
    console.show(f"\nThe {len(truth)} cases of the test split now stand in {table}, a row a case.")
    _show_command(f"tsattn predict {model} {table} -o {answers}")
    predict(str(model), [str(table)], str(answers))

    _compare(answers, truth, run)
    console.show("\nWhat to type next:")
    for purpose, line in NEXT:
        console.show(f"  [dim]# {purpose}[/]\n  {line}")


def _fresh() -> Path:
    names = itertools.chain(["demo"], (f"demo-{number}" for number in itertools.count(2)))
    return next(path for path in (Path("runs") / name for name in names) if not path.exists())


def _show_command(line: str) -> None:
    from tsattn.cli import console

    console.show(f"\n[bold cyan]$ {line}[/]")


def _write_test_split(table: Path) -> dict[str, str]:
    """Writes the test split as a wide CSV; the true label of each id."""
    from tsattn.data.columns import TableOptions
    from tsattn.data.sources import load_split
    from tsattn.data.write_tables import write_wide_csv

    test = load_split(DATA, "test", TableOptions()).collection
    assert test.labels is not None
    write_wide_csv(test, table)
    return dict(zip(test.ids, test.labels, strict=True))


def _compare(answers: Path, truth: dict[str, str], run: Path) -> None:
    """Shows that the answers in the CSV are as right as the run was. CheckFailed where they are not."""
    from tsattn.cli import console
    from tsattn.errors import CheckFailed

    with answers.open(newline="", encoding="utf-8") as file:
        said = {row["id"]: row["label"] for row in csv.DictReader(file)}
    accuracy = sum(said[case] == label for case, label in truth.items()) / len(truth)
    expected = json.loads((run / "metrics.json").read_text("utf-8"))["test"]["accuracy"]
    if accuracy != expected:
        raise CheckFailed(
            f"{answers}: {100 * accuracy:.2f} % right, but the run itself had {100 * expected:.2f} %."
        )
    console.show(
        f"{100 * accuracy:.2f} % of the answers in {answers} are right: the accuracy of the run itself."
    )

"""`tsattn eval`: judge a trained model on labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from tsattn.cli.options import (
    AllowCode,
    AsJson,
    BatchSize,
    Device,
    IdColumn,
    LabelColumn,
    LabelPattern,
    LabelsFile,
    Layout,
    PerWhat,
    Registry,
    TimeColumn,
)

if TYPE_CHECKING:
    from tsattn.card import ModelCard
    from tsattn.data.sources import LoadedSplit
    from tsattn.evaluation.metrics import Report
    from tsattn.evaluation.redundancy import LayerRedundancy
    from tsattn.inference.predictor import Predictor
    from tsattn.runs.members import Members


def evaluate(
    model: Annotated[
        str,
        typer.Argument(metavar="RUN_OR_ONNX", help="Run folder or model file (.onnx).", show_default=False),
    ],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="Name of a data set, folder or file; what the model was trained on if not given.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        Literal["test", "train"], typer.Option("--split", help="Which part of SOURCE to judge on.")
    ] = "test",
    per: PerWhat = "recording",
    heads: Annotated[
        bool,
        typer.Option("--heads", help="Also measure how alike the heads of each layer are (run folders)."),
    ] = False,
    batch_size: BatchSize = 64,
    device: Device = "auto",
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    labels_file: LabelsFile = None,
    label_pattern: LabelPattern = None,
    registry: Registry = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Judge a run or a model file on labelled data.

    A run folder and the model file exported from it give the same figures.
    """
    from tsattn.card import BEST_ON_TEST, chosen_on_test
    from tsattn.cli import console
    from tsattn.cli.eval_several import draw_members, judge_members
    from tsattn.cli.model_source import read_split
    from tsattn.cli.open_model import open_predictor, refuse_model_file
    from tsattn.cli.report_tables import show_heads, show_report
    from tsattn.data.columns import TableOptions
    from tsattn.evaluation.evaluate import evaluate as judge

    console.hear_remarks()
    if heads:
        refuse_model_file(Path(model), "--heads")
    typed = TableOptions(
        layout=layout,
        id=id_column,
        time=time_column,
        label=label_column,
        labels=None if labels_file is None else str(labels_file),
        label_pattern=label_pattern,
    )

    def judged(place: str) -> Judged:
        """One model on the cases, its figures noted where they are its own test split's."""
        predictor = open_predictor(place, device, allow_code=allow_code)
        card = predictor.card
        judged_on = source if source is not None else card.source
        part = read_split(card, source, split, typed, registry)
        with console.working(f"judging {len(part.collection)} cases"):
            report = judge(predictor, part.collection, batch_size, majority=card.majority or None, per=per)
            layers = _redundancy(predictor, part, batch_size) if heads else []
        if trained_on(card, judged_on, split, part):
            console.remark(
                f"{part.origin}: the model was trained on these cases; it may do worse on new ones."
            )
        elif judged_on == card.source:
            _note(Path(place), report)
        return Judged(place, predictor, part, report, layers)

    several = _several(Path(model))
    members = None if several is None else judge_members(Path(model), several, lambda at: judged(at).report)
    whole = judged(model) if several is None or several.ensemble else None
    if as_json:
        console.show_json({**({} if whole is None else whole.document(heads)), **(members or {})})
        return
    if members is not None:
        draw_members(members, f"{model}, each run")
    if whole is not None:
        stamp = f" — {BEST_ON_TEST}" if chosen_on_test(whole.predictor.card.protocol) else ""
        show_report(whole.report, f"{model} on {whole.part.origin}{stamp}", whole.predictor.provider)
        if heads:
            show_heads(whole.layers)


class Judged(NamedTuple):
    """A model, the cases it was judged on, and what it came to."""

    place: str
    predictor: Predictor
    part: LoadedSplit
    report: Report
    layers: list[LayerRedundancy]

    def document(self, heads: bool) -> dict[str, Any]:
        """For --json."""
        document = {
            "model": self.place,
            "attention": self.predictor.card.attention,
            "protocol": self.predictor.card.protocol,
            "provider": self.predictor.provider,
            "source": self.part.name,
            "origin": self.part.origin,
            **self.report.to_dict(),
        }
        return {**document, "heads": [vars(one) for one in self.layers]} if heads else document


def _several(folder: Path) -> Members | None:
    """What a folder of several runs holds, None for a run or a model file."""
    if not folder.is_dir():
        return None
    from tsattn.runs.members import read_members

    return read_members(folder)


def trained_on(card: ModelCard, place: str, split: str, part: LoadedSplit) -> bool:
    """True if cases of `part` were trained on, as far as the card can tell."""
    if part.collection.fingerprint() == card.fingerprint:
        return True
    return place == card.source and (split == "train" or part.undivided)


def _redundancy(predictor: Predictor, part: LoadedSplit, batch_size: int) -> list[LayerRedundancy]:
    from tsattn.evaluation.redundancy import redundancy
    from tsattn.runs import TorchPredictor

    assert isinstance(predictor, TorchPredictor)  # of a run folder, as was checked
    return redundancy(predictor.run, part.collection, batch_size)


def _note(run: Path, report: Report) -> None:
    """Leaves the test split's figures in the run folder, from where export puts them into the model file."""
    if not run.is_dir():
        return
    from tsattn.cli import console
    from tsattn.runs import record_test

    try:
        record_test(run, report.figures())
    except OSError as error:
        console.remark(f"{run}: the figures could not be noted in the run folder ({error.strerror}).")

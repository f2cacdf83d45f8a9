"""`tsattn train`: a source in, a run folder out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsattn.cli.options import AsJson, Device, IdColumn, LabelColumn, Layout, Registry, TimeColumn

if TYPE_CHECKING:
    from tsattn.training.loop import Epoch
    from tsattn.training.workflow import Prepared, Trained

_MODEL, _TRAINING, _CUTTING = "Model", "Training", "Recordings"


def train(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Data set, CSV or .ts file, or folder or zip of NAME_TRAIN.ts and NAME_TEST.ts.",
            show_default=False,
        ),
    ],
    attention: Annotated[
        str | None,
        typer.Option(
            "--attention",
            metavar="SPEC",
            help="E.g. softmax, linear, bn, sh, bn+sh; `tsattn attention list` shows all. Default: bn+sh.",
            rich_help_panel=_MODEL,
            show_default=False,
        ),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            "--tokens",
            metavar="WORD",
            help="linear, patch:P[,stride], conv or multiscale. Default: the preset's.",
            rich_help_panel=_MODEL,
            show_default=False,
        ),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(
            "--width", min=1, metavar="D", help="Of a token.", rich_help_panel=_MODEL, show_default=False
        ),
    ] = None,
    heads: Annotated[
        int | None,
        typer.Option(
            "--heads",
            min=1,
            metavar="H",
            help="Heads of each attention.",
            rich_help_panel=_MODEL,
            show_default=False,
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(
            "--layers",
            min=1,
            metavar="N",
            help="Blocks of the stack.",
            rich_help_panel=_MODEL,
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option("--preset", metavar="NAME", help="Named recipe.", rich_help_panel=_TRAINING)
    ] = "base",
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs",
            min=1,
            metavar="N",
            help="Default: 60, more for small sets and fewer for large ones.",
            rich_help_panel=_TRAINING,
            show_default=False,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size",
            min=1,
            metavar="N",
            help="Default: 16, 32 from 1,000 cases on, 64 from 4,000.",
            rich_help_panel=_TRAINING,
            show_default=False,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--lr",
            min=0.0,
            metavar="X",
            help="Highest learning rate. Default: the preset's.",
            rich_help_panel=_TRAINING,
            show_default=False,
        ),
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(
            "--validation",
            min=0.0,
            max=0.9,
            metavar="SHARE",
            help="Share of TRAIN held out to choose the epoch. Default: 0.2 where TRAIN can spare it.",
            rich_help_panel=_TRAINING,
            show_default=False,
        ),
    ] = None,
    time_ordered: Annotated[
        bool,
        typer.Option(
            "--time-ordered",
            help="Hold out the last of TRAIN instead of a stratified part.",
            rich_help_panel=_TRAINING,
        ),
    ] = False,
    validation_file: Annotated[
        Path | None,
        typer.Option(
            "--val-file",
            metavar="FILE",
            help="Hold out the cases of this file and train on all of SOURCE.",
            rich_help_panel=_TRAINING,
            show_default=False,
        ),
    ] = None,
    resample: Annotated[
        str | None,
        typer.Option(
            "--resample",
            metavar="N|mean-length",
            help="Bring every recording to one length.",
            rich_help_panel=_CUTTING,
            show_default=False,
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            min=1,
            metavar="LENGTH",
            help="Cut recordings into windows of that many timepoints.",
            rich_help_panel=_CUTTING,
            show_default=False,
        ),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            "--stride",
            min=1,
            metavar="S",
            help="Timepoints between the starts of two windows. Default: half a window.",
            rich_help_panel=_CUTTING,
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            min=0,
            metavar="N",
            help="Of weights, order and held-out cases.",
            rich_help_panel=_TRAINING,
        ),
    ] = 0,
    device: Device = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", min=1, metavar="N", help="CPU threads; all cores if not given.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Run folder. Default: runs/NAME-SPEC-seedN.", show_default=False
        ),
    ] = None,
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """Train a transformer with the chosen attention and write a run folder.

    The test split is not looked at; `tsattn eval RUN` does that.
    """
    from tsattn.cli import console
    from tsattn.data.columns import TableOptions

    console.hear_remarks()
    trained = train_visibly(
        source,
        asked={
            "attention": attention,
            "tokens": tokens,
            "width": width,
            "heads": heads,
            "layers": layers,
            "epochs": epochs,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "validation": validation,
            "seed": seed,
        },
        cutting={"resample": resample, "window": window, "stride": stride},
        holding={"latest": time_ordered, "file": validation_file},
        preset=preset,
        device=device,
        threads=threads,
        out=out,
        table=TableOptions(layout=layout, id=id_column, time=time_column, label=label_column),
        registry=registry,
    )
    if as_json:
        console.show_json({"run": str(trained.out), **trained.metrics})
    else:
        draw_training(trained)


def train_visibly(
    source: str, *, cutting: dict[str, Any], holding: dict[str, Any], **choices: Any
) -> Trained:
    """Trains as `training.workflow` does and shows on stderr what is decided and how far it is."""
    from tsattn.cli import console
    from tsattn.cli.fetching import fetch_visibly

    fetch_visibly(source, choices.get("registry"))
    with console.working("loading"):
        from tsattn.training import workflow
        from tsattn.training.holdout import Holding

        prepared = workflow.prepare(
            source, cutting=workflow.Cutting(**cutting), holding=Holding(**holding), **choices
        )
    _say_what_follows(prepared)
    with _watching(prepared) as watch:
        return workflow.train(prepared, watch)


def draw_training(trained: Trained) -> None:
    """The final table of a training."""
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    metrics = trained.metrics
    table = Table()
    for heading in ("", "loss", "accuracy"):
        table.add_column(heading, justify="left" if not heading else "right")
    for part in ("train", "validation"):
        if metrics[part] is not None:
            table.add_row(part, f"{metrics[part]['loss']:.4f}", f"{100 * metrics[part]['accuracy']:.2f} %")
    console.show(table)
    console.show(
        f"epoch {metrics['epoch']} of {metrics['epochs']}, {metrics['seconds']:.1f} s, "
        f"{metrics['parameters']:,} parameters, written to {escape(str(trained.out))}"
    )


def _say_what_follows(prepared: Prepared) -> None:
    from tsattn.cli import console

    model, training = prepared.config.model, prepared.config.training
    console.remark(
        f"{prepared.config.source}: {len(prepared.train)} training cases, {model.channels} channels, "
        f"{model.classes} classes"
    )
    console.remark(
        f"{model.attention} attention, {model.tokens} tokens, {model.layers} layers, width {model.width}, "
        f"{model.heads} heads, {prepared.parameters:,} parameters, on {prepared.config.device}"
    )
    console.remark(
        f"{training.epochs} epochs, batches of {training.batch_size}; protocol {prepared.protocol}"
    )


@contextmanager
def _watching(prepared: Prepared) -> Iterator[Callable[[Epoch], None]]:
    """A progress bar with losses, accuracies and time left; nothing where stderr is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from tsattn.cli import console

    bar = Progress(
        TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console.err,
        disable=not console.err.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=prepared.config.training.epochs)
        yield lambda epoch: bar.update(task, completed=epoch.epoch, description=_figures(epoch))


def _figures(epoch: Epoch) -> str:
    words = f"loss {epoch.train_loss:.3f}  accuracy {100 * epoch.train_accuracy:.1f} %"
    if epoch.validation_loss is not None and epoch.validation_accuracy is not None:
        words += f"  validation {epoch.validation_loss:.3f}  {100 * epoch.validation_accuracy:.1f} %"
    return words

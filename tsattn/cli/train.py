"""`tsattn train`: a source in, a run folder out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsattn.cli.options import (
    AsJson,
    Device,
    GroupColumn,
    IdColumn,
    LabelColumn,
    LabelPattern,
    LabelsFile,
    Layout,
    Registry,
    TimeColumn,
)
from tsattn.cli.train_options import (
    Attention,
    Epochs,
    HeadCount,
    Layers,
    LearningRate,
    Out,
    Preset,
    Resample,
    Seed,
    Source,
    Stride,
    Threads,
    TimeOrdered,
    Tokens,
    TrainingBatch,
    Validation,
    ValidationFile,
    Width,
    Window,
)

if TYPE_CHECKING:
    from tsattn.training.loop import Epoch
    from tsattn.training.workflow import Prepared, Trained


def train(
    source: Source,
    attention: Attention = None,
    tokens: Tokens = None,
    width: Width = None,
    heads: HeadCount = None,
    layers: Layers = None,
    preset: Preset = "base",
    epochs: Epochs = None,
    batch_size: TrainingBatch = None,
    learning_rate: LearningRate = None,
    validation: Validation = None,
    time_ordered: TimeOrdered = False,
    validation_file: ValidationFile = None,
    resample: Resample = None,
    window: Window = None,
    stride: Stride = None,
    seed: Seed = 0,
    device: Device = "auto",
    threads: Threads = None,
    out: Out = None,
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    group_column: GroupColumn = None,
    labels_file: LabelsFile = None,
    label_pattern: LabelPattern = None,
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
        table=TableOptions(
            layout=layout,
            id=id_column,
            time=time_column,
            label=label_column,
            group=group_column,
            labels=None if labels_file is None else str(labels_file),
            label_pattern=label_pattern,
        ),
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

"""A training as it is seen: what is decided, how far it is, what it came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsattn.errors import Interrupted

if TYPE_CHECKING:
    from pathlib import Path

    from tsattn.training.parallel import Company
    from tsattn.training.preparing import Prepared
    from tsattn.training.progress import Epoch
    from tsattn.training.workflow import Trained


def prepare_visibly(
    source: str, *, cutting: dict[str, Any], holding: dict[str, Any], **choices: Any
) -> Prepared:
    """Prepares as `training.preparing` does, with a spinner where that takes time."""
    from tsattn.cli import console
    from tsattn.cli.fetching import fetch_visibly

    fetch_visibly(source, choices.get("registry"))
    with console.working("loading"):
        from tsattn.training import preparing
        from tsattn.training.holdout import Holding

        return preparing.prepare(
            source, cutting=preparing.Cutting(**cutting), holding=Holding(**holding), **choices
        )


def prepared_again(run: Path, out: Path, allow_code: bool) -> Prepared:
    """The training of a run folder, to go on with it or to repeat it."""
    from tsattn.cli import console

    with console.working("loading"):
        from tsattn.training import preparing

        return preparing.prepare_again(run, out=out, allow_code=allow_code)


def joined() -> Company:
    """The processes that torchrun started this one with, or this one alone; one of them is seen and heard."""
    from tsattn.cli import console
    from tsattn.training.parallel import find_company

    company = find_company()
    if not company.leads:
        console.be_silent()
    elif company.size > 1:
        console.remark(f"{company.size} processes share every batch; this one writes")
    return company


def run_visibly(prepared: Prepared, company: Company | None = None, *, more: bool = False) -> Trained:
    """Trains and shows on stderr what is decided and how far it is; Ctrl-C and SIGTERM keep its state.

    more: others follow, which do not begin if a signal came too late to stop this one: Interrupted.
    """
    from tsattn.cli.interrupts import asked_to_stop
    from tsattn.training import workflow

    _say_what_follows(prepared)
    with asked_to_stop() as stopping, _watching(prepared) as watch:
        trained = workflow.train(prepared, watch, stopping, company)
        if more and stopping():
            raise Interrupted(f"{trained.out} is finished. Type the same command again to go on.")
    if company is not None:
        company.leave()
    return trained


def show_trained(trained: Trained, as_json: bool) -> None:
    """What a training came to, for a person or a program."""
    from tsattn.cli import console

    if as_json:
        console.show_json({"run": str(trained.out), **trained.metrics})
    else:
        draw_training(trained)


def draw_training(trained: Trained) -> None:
    """The final table of a training."""
    from rich.markup import escape
    from rich.table import Table

    from tsattn.card import BEST_ON_TEST
    from tsattn.cli import console

    metrics = trained.metrics
    table = Table()
    for heading in ("", "loss", "accuracy"):
        table.add_column(heading, justify="left" if not heading else "right")
    for part in ("train", "validation"):
        if metrics[part] is not None:
            table.add_row(part, f"{metrics[part]['loss']:.4f}", f"{100 * metrics[part]['accuracy']:.2f} %")
    console.show(table)
    if metrics["protocol"].startswith(BEST_ON_TEST):
        console.show(f"protocol {metrics['protocol']}")
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
        f"{training.epochs} epochs, batches of {training.batch_size}; protocol {prepared.config.protocol}"
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
        refresh_per_second=4,  # each drawing takes time from the step
        disable=not console.err.is_terminal,
    )
    with bar:
        config = prepared.config
        task = bar.add_task("", total=config.training.epochs)

        def watch(epoch: Epoch) -> None:
            last = epoch.epoch == config.training.epochs and config.model.convolutions > 0
            words = _figures(epoch) + "  fitting convolutions" * last
            bar.update(task, completed=epoch.epoch, description=words)

        yield watch


def _figures(epoch: Epoch) -> str:
    words = f"loss {epoch.train_loss:.3f}  accuracy {100 * epoch.train_accuracy:.1f} %"
    if epoch.validation_loss is not None and epoch.validation_accuracy is not None:
        words += f"  validation {epoch.validation_loss:.3f}  {100 * epoch.validation_accuracy:.1f} %"
    return words

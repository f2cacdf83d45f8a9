"""The application: joins the commands and turns TsattnError into one message and an exit code."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from tsattn import __version__
from tsattn.cli.lazy import Entry, lazy_group
from tsattn.errors import InputError, TsattnError

# In the order in which a user meets them.
COMMANDS = {
    "demo": Entry("tsattn.cli.demo:demo", "Train, judge, export and predict on embedded data, in minutes."),
    "train": Entry("tsattn.cli.train:train", "Train a classifier and write a run folder."),
    "reproduce": Entry(
        "tsattn.cli.reproduce:reproduce", "Repeat a run from its folder and compare, to the byte."
    ),
    "eval": Entry("tsattn.cli.eval:evaluate", "Judge a run or a model file on labelled data."),
    "bench": Entry(
        "tsattn.cli.bench:bench", "Compare attentions and baselines on many data sets, in one folder."
    ),
    "runs": Entry("tsattn.cli.runs:app", "What was run, with what, and how good it is."),
    "compare": Entry("tsattn.cli.compare:compare", "Put what was tried beside each other, with statistics."),
    "export": Entry("tsattn.cli.export:app", "Turn a run into one self-contained model file, and prove it."),
    "show": Entry("tsattn.cli.show:show", "What a model file or a run says of itself."),
    "predict": Entry("tsattn.cli.predict:predict", "Classify files with a model file or a run."),
    "data": Entry("tsattn.cli.data:app", "Data sets by name, and files in every form."),
    "attention": Entry("tsattn.cli.attention:app", "What an attention spec can be made of."),
    "doctor": Entry("tsattn.cli.doctor:doctor", "What this machine can do, tried and not guessed."),
    "preset": Entry("tsattn.cli.preset:app", "Named recipes, and what is in one."),
}

app = typer.Typer(
    name="tsattn",
    cls=lazy_group(COMMANDS),
    help="Classify time series with transformers whose attention you choose by a word.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tsattn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and leave.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the console script. Exit codes: 0, 2 input, 3 check, 130 interrupted, 1 bug."""
    for stream in (sys.stdout, sys.stderr):  # a letter that the encoding lacks becomes '?', not an error
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="tsattn")
    except TsattnError as error:
        from tsattn.cli import console

        console.fail(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _leave_if_others_raised(error)
        raise


def _leave_if_others_raised(error: Exception) -> None:
    """An error in an attention that tsattn did not bring is the user's to mend, not a bug of ours."""
    foreign = sys.modules.get("tsattn.models.attention.foreign")
    if foreign is not None and foreign.blame(error) is not None:
        from tsattn.cli import console

        console.fail(f"{foreign.describe(error)}. `tsattn attention check` tries an attention by itself.")
        sys.exit(InputError.exit_code)

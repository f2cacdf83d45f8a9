"""`tsattn data`: what is there by name, what a file holds, and files from one form into another."""

from __future__ import annotations

import typer

from tsattn.cli.lazy import Entry, lazy_group

COMMANDS = {
    "list": Entry("tsattn.cli.data_list:list_sets", "The named data sets, and which of them are here."),
    "info": Entry("tsattn.cli.data_info:info", "The figures of a data set or a file."),
    "inspect": Entry("tsattn.cli.data_inspect:inspect", "What a file is, and the command that trains on it."),
    "convert": Entry("tsattn.cli.data_convert:convert", "From one file format into another."),
    "download": Entry("tsattn.cli.data_download:download", "Fetch named data sets into the cache."),
    "verify": Entry("tsattn.cli.data_verify:verify", "Check again what the cache holds."),
}

app = typer.Typer(
    cls=lazy_group(COMMANDS), help="Data sets by name, and files in every form.", no_args_is_help=True
)


# Keeps Typer from turning a group of one command into that command.
@app.callback()
def _group() -> None:
    pass

"""A command group that imports a command when it is called, not when it is listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Entry(NamedTuple):
    """Where a command lives and what the overview says of it.

    place: "module:attribute", the attribute being the command's function or, for a group of
        commands, its Typer application. summary: one line for `tsattn --help`.
    """

    place: str
    summary: str


def lazy_group(entries: Mapping[str, Entry]) -> type[TyperGroup]:
    """The `cls` of a Typer application whose commands are `entries`, in that order.

    Help, completion of names and suggestions read only the summaries; each command file costs a few
    milliseconds of import and of signature reading, which `tsattn --help` should not grow by.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **attrs: Any) -> None:
            super().__init__(**attrs)
            for name, entry in entries.items():
                self.commands[name] = TyperCommand(name=name, help=entry.summary)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and args[0] in entries:
                self.commands[args[0]] = _load(args[0], entries[args[0]])
            return super().resolve_command(ctx, args)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            from tsattn.cli.overview import show_overview

            show_overview(
                " ".join([ctx.command_path, *self.collect_usage_pieces(ctx)]),
                self.help or "",
                [(", ".join(option.opts), getattr(option, "help", "")) for option in self.get_params(ctx)],
                [(name, entry.summary) for name, entry in entries.items()],
            )

    return LazyGroup


def _load(name: str, entry: Entry) -> Any:
    module, attribute = entry.place.split(":")
    target = getattr(import_module(module), attribute)
    parent = typer.Typer(add_completion=False)
    if isinstance(target, typer.Typer):
        parent.add_typer(target, name=name)
    else:
        parent.command(name)(target)
    return typer.main.get_group(parent).commands[name]

"""What the columns of a table to be predicted are, with what the model knows of its training table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tsattn.card import ModelCard
from tsattn.data.columns import TableOptions, layout_of_files, names_timepoints
from tsattn.data.heads import open_head
from tsattn.data.rows import TableHead


def roles_of(path: Path, options: TableOptions, card: ModelCard) -> TableOptions:
    """As `roles_of_head`, of the table at `path`."""
    return roles_of_head(open_head(path), options, card)


def roles_of_head(head: TableHead, options: TableOptions, card: ModelCard) -> TableOptions:
    """`options`, completed with the roles of the training table where this file has such columns.

    What the user typed stands. The wide layout is never taken over: the header tells it as well, and
    a long file read as wide would give wrong rows without an error. The time of training is a time here
    even where channels are missing: it never becomes a channel.
    """
    columns = set(head.names)
    typed = {options.id, options.time, options.label, options.group}
    known = {
        role: name
        for role, name in card.table.items()
        if role != "layout" and name in columns and name not in typed
    }
    id_column = options.id or known.get("id")
    alike = card.table.get("layout") == "long" and set(card.channels) <= columns and options.layout != "wide"
    label, group = options.label or known.get("label"), options.group or known.get("group")
    told = layout_of_files(head, replace(options, id=id_column, label=label, group=group))
    alike = set(card.channels) <= columns and options.layout != "wide"
    timed = "time" in known and (told != "wide" or not names_timepoints(head)) and options.layout != "wide"
    trained = card.table.get("layout")
    is_long = options.layout == "long" or (trained == "long" and (timed or (alike and id_column is not None)))
    is_case = options.layout == "file" or (
        trained == "file" and told == "file" and id_column is None and (timed or alike)
    )
    return TableOptions(
        layout="long" if is_long else "file" if is_case else options.layout,
        id=id_column,
        time=options.time or (known.get("time") if is_long or is_case or timed else None),
        label=label,
        group=group,
        label_of=options.label_of,
        columns=None if is_long or is_case else card.table.get("columns"),
    )

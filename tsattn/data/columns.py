"""Which column of a table is what: layout, id, time, label and the channels.

Said by the options, else told from the header and the first rows. Nothing is guessed silently: a
column that is left out is named in a remark, and where two readings are possible the message asks.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from tsattn.data.csvtext import listed
from tsattn.data.oddnames import say_odd_names
from tsattn.data.rolenames import ID_NAMES, LABEL_NAMES, TIME_NAMES
from tsattn.data.rows import TableHead
from tsattn.data.timepoints import in_order_of_time
from tsattn.data.trainedcolumns import as_text, first_absent, from_text, say_absent, say_left_out
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

_NUMBERED = re.compile(r"(.+)_(\d{1,9})")
Layout = Literal["long", "wide", "file"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
ONE_CHANNEL = "value"
"""Name of the channel of a wide table whose columns carry no channel's name."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What the user said of a table's columns; None where nothing was said.

    layout: "long" (a row a timepoint), "wide" (a row a case) or "file" (a file a case, a row a
    timepoint). id, time, label: names of columns.
    group: name of the column that says what cases may not be torn apart (a subject, a machine).
    label_of: "timepoint" where the label of a long table may change within a case.
    labels, label_pattern: of several files, the table with a label a file, or a regular expression whose
    one group is the label in a file's name.
    columns: never typed; what `TableRoles.for_card` notes of the training table.
    """

    layout: str | None = None
    id: str | None = None
    time: str | None = None
    label: str | None = None
    group: str | None = None
    label_of: str | None = None
    labels: str | None = None
    label_pattern: str | None = None
    columns: str | None = None

    @staticmethod
    def of(table: Mapping[str, str]) -> TableOptions:
        """The options in what a run or a model file noted of its table; what is unknown is left out."""
        return TableOptions(**{field.name: table.get(field.name) for field in fields(TableOptions)})


@dataclass(frozen=True, kw_only=True)
class TableRoles:
    """What each column of one table is.

    channels: names of the channels. columns: for each channel its value columns in order of time;
    in the long layout one column a channel. id, time, label, group: names of columns, None if there is none.
    """

    layout: Layout
    id: str | None
    time: str | None
    label: str | None
    group: str | None
    channels: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]

    def as_dict(self) -> dict[str, str]:
        """`layout`, `id`, `time`, `label` and `group` as far as they are there, for the model card."""
        roles = {role: getattr(self, role) for role in ("layout", "id", "time", "label", "group")}
        return {role: name for role, name in roles.items() if name is not None}

    def for_card(self) -> dict[str, str]:
        """`as_dict`, and where no column names a channel the value columns as `columns`."""
        nameless = self.layout == "wide" and self.channels == (ONE_CHANNEL,)
        nameless = nameless and not all(map(_NUMBERED.fullmatch, self.columns[0]))
        return self.as_dict() | ({"columns": as_text(self.columns[0])} if nameless else {})


def resolve_roles(
    head: TableHead, options: TableOptions, channels: tuple[str, ...] | None = None
) -> TableRoles:
    """The roles of the columns of the table that begins with `head`.

    channels: what the model was trained on; the table's channels are then these, in this order.
    InputError for an unknown column, a role that fits no layout, a missing timepoint, wrong channels.
    """
    named = _named(head, options)
    layout = _layout(head, options, named)
    if layout == "file" and options.id is not None:
        raise InputError(
            f"{head.path}: --id {options.id} names the case of a row; in the layout file the file is the "
            "case. Leave out --id or type --layout long."
        )
    if layout == "long" and named.id is None:
        raise InputError(
            f"{head.path}: the long layout needs the column that names the case of a row. "
            f"Type --id COLUMN, one of: {listed(head.names)}."
        )
    if layout == "wide":
        if options.time is not None:
            raise InputError(
                f"{head.path}: --time {options.time} orders the rows of a case; in the wide layout a row "
                "is a whole case. Leave out --time or type --layout long."
            )
        spare = {named.id, named.time, named.label, named.group}
        if named.time is not None:
            logger.warning("%s: column %r is taken for a time and not used.", head.path, named.time)
            named = replace(named, time=None)
        groups = _wide_groups(head, spare, channels, options.columns)
    else:
        groups = _long_groups(head, {named.id, named.time, named.label, named.group}, channels)
    if channels is not None:
        groups = _as_the_model_has_them(head, groups, channels)
    return TableRoles(
        layout=layout,
        id=None if layout == "file" else named.id,
        time=named.time,
        label=named.label,
        group=named.group,
        channels=tuple(groups),
        columns=tuple(tuple(columns) for columns in groups.values()),
    )


def layout_of_files(head: TableHead, options: TableOptions) -> Layout:
    """The layout of many files of which this is the first: each one case if nothing else is said, and
    it has no id column, and a time column or no columns CHANNEL_TIMEPOINT.
    """
    named = _named(head, options)
    numbered = named.time is None and _numbered(head, {named.label, named.group})
    alone = named.id is None and not numbered
    return "file" if options.layout is None and alone else _layout(head, options, named)


def names_timepoints(head: TableHead) -> bool:
    """True if columns are of the form CHANNEL_TIMEPOINT."""
    return bool(_numbered(head, set()))


def _named(head: TableHead, options: TableOptions) -> TableOptions:
    """The options, completed by columns whose name says their role."""
    taken: dict[str, str] = {}
    for role in ("id", "time", "label", "group"):
        column = getattr(options, role)
        if column is None:
            continue
        if column not in head.names or not column:
            near = difflib.get_close_matches(column, head.names, n=3)
            meant = f"Did you mean {' or '.join(near)}?" if near else f"Columns: {listed(head.names)}."
            raise InputError(f"{head.path}: no column {column!r} (--{role}). {meant}")
        if column in taken:
            raise InputError(
                f"{head.path}: column {column!r} cannot be --{taken[column]} and --{role} at once."
            )
        taken[column] = role

    def by_name(words: Sequence[str]) -> str | None:
        free = {name.lower(): name for name in reversed(head.names) if name not in taken}
        return next((free[word] for word in words if word in free), None)

    return replace(
        options,
        id=options.id or by_name(ID_NAMES),
        time=options.time or by_name(TIME_NAMES),
        label=options.label or by_name(LABEL_NAMES),
    )


def _layout(head: TableHead, options: TableOptions, named: TableOptions) -> Layout:
    if options.layout is not None:
        if options.layout not in LAYOUTS:
            raise InputError(f"layout {options.layout!r} is not known. Type long, wide or file.")
        return next(layout for layout in LAYOUTS if layout == options.layout)
    if options.time is not None:
        return "long"
    if options.columns and first_absent(head, from_text(head, options.columns), set()) is None:
        return "wide"  # as in training
    repeats = named.id is not None and _ids_repeat(head, named.id)
    if _numbered(head, {named.id, named.time, named.label}):
        # Numbered sensors beside an id that repeats and a time column are a long table's.
        return "long" if repeats and named.time is not None else "wide"
    if named.id is None and named.time is not None:
        raise InputError(
            f"{head.path}: a column {named.time!r} and none that names the case. If a row is a timepoint, "
            "type --id COLUMN; if a row is a whole case, type --layout wide."
        )
    return "long" if repeats else "wide"


def _ids_repeat(head: TableHead, column: str) -> bool:
    """True if two rows of the sample have the same id, side by side or not."""
    ids = head.sample(column)
    return len(set(ids)) < len(ids)


def _wide_groups(
    head: TableHead, spare: set[str | None], wanted: tuple[str, ...] | None, trained: str | None
) -> dict[str, tuple[str, ...]]:
    """Channel → value columns in order of time; trained: columns noted in training."""
    numbered = _numbered(head, spare)
    known = from_text(head, trained) if trained is not None else ()
    if known and (absent := first_absent(head, known, spare)) is None:
        say_left_out(head, (name for name in _numeric(head, spare) if name not in set(known)))
        return {ONE_CHANNEL: known}
    if wanted is not None and set(wanted) <= set(every := _numbered(head, spare, text=True)):
        say_left_out(head, (name for name in numbered if name not in wanted))
        numbered = {name: every[name] for name in wanted}
        ignored: list[str] = []
    else:
        values = _numeric(head, spare)
        if not numbered:
            _say_text_columns(head, spare)
            if known and absent is not None:
                say_absent(head, absent, values)
            elif wanted is None:
                say_odd_names(head, values)
            return {ONE_CHANNEL: _at_least_one(head, values)}
        used = {column for columns in numbered.values() for _, column in columns}
        ignored = [column for column in values if column not in used]
        _say_text_columns(head, spare)
    if ignored:
        logger.warning(
            "%s: not of the form CHANNEL_TIMEPOINT and therefore not used: %s.", head.path, listed(ignored)
        )
    return in_order_of_time(head, numbered)


def _long_groups(
    head: TableHead, spare: set[str | None], wanted: tuple[str, ...] | None
) -> dict[str, tuple[str, ...]]:
    """Channel → its one column."""
    if wanted is not None and set(wanted) <= set(head.names) - spare:
        say_left_out(head, (name for name in _numeric(head, spare) if name not in wanted))
        return {name: (name,) for name in wanted}
    _say_text_columns(head, spare)
    return {name: (name,) for name in _at_least_one(head, _numeric(head, spare))}


def _as_the_model_has_them(
    head: TableHead, groups: dict[str, tuple[str, ...]], wanted: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """The channels the model was trained on, in its order: by name, else by number."""
    if set(wanted) <= set(groups):
        return {name: groups[name] for name in wanted}
    if len(groups) != len(wanted):
        count = f"{len(groups)} channel{'' if len(groups) == 1 else 's'}"
        raise InputError(
            f"{head.path}: {count} ({listed(list(groups))}), the model expects {len(wanted)} "
            f"({listed(wanted)})."
        )
    logger.warning(
        "%s: channels are taken in order, %s as %s.", head.path, listed(list(groups)), listed(wanted)
    )
    return dict(zip(wanted, groups.values(), strict=True))


def _numbered(
    head: TableHead, spare: set[str | None], *, text: bool = False
) -> dict[str, list[tuple[int, str]]]:
    """Channel → (timepoint, column) for columns of the form CHANNEL_TIMEPOINT, text columns only if asked."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for column in head.names if text else _numeric(head, spare):
        match = _NUMBERED.fullmatch(column)
        if match and column not in spare:
            groups.setdefault(match[1], []).append((int(match[2]), column))
    return groups


def _numeric(head: TableHead, spare: set[str | None]) -> list[str]:
    """Named columns without a role that hold a number, or nothing at all, in the sample."""
    unfit = spare | head.text_columns
    return [name for name in head.names if name and name not in unfit]


def _say_text_columns(head: TableHead, spare: set[str | None]) -> None:
    unused = [name for name in head.names if name in head.text_columns and name and name not in spare]
    if unused:
        logger.warning("%s: columns of text are not used: %s.", head.path, listed(unused))
    if "" in head.names:
        number = head.names.index("") + 1
        logger.warning("%s: column %d has no name (a row index?) and is not used.", head.path, number)


def _at_least_one(head: TableHead, columns: list[str]) -> tuple[str, ...]:
    if not columns:
        raise InputError(
            f"{head.path}: no column with numbers is left for the series. Columns: {listed(head.names)}."
        )
    return tuple(columns)

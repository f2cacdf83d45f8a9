"""What a user types as SOURCE becomes the cases of one split.

A SOURCE is a path, or the name of a registered data set where no such path exists:

    NAME                    a set of datasets.yaml or of the user's own registry; those embedded in aeon
                            are there without network, others of the archives are fetched into the cache
    folder, .zip            with NAME_TRAIN.ts and NAME_TEST.ts
    X_TRAIN.ts, X_TRAIN.csv "train" is the file, "test" the file X_TEST beside it
    X_TEST.ts, X_TEST.csv   "test" is the file; it is refused for "train"
    any other .ts or .csv   the file is the data for either split (`LoadedSplit.undivided` says so)
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tsattn.data.archives import Member, pair_in
from tsattn.data.collection import Collection
from tsattn.data.columns import TableOptions
from tsattn.data.csvtext import listed, read_head
from tsattn.data.named import embedded_folder as embedded_folder
from tsattn.data.named import fetched_folder, looks_like_a_path
from tsattn.data.own_sets import own_options, own_set, own_test, own_train
from tsattn.data.registry import DatasetEntry, find_entry, load_registry
from tsattn.data.tables import read_table, table_roles
from tsattn.errors import InputError

logger = logging.getLogger(__name__)

Split = Literal["train", "test"]
_SPLIT_NAME = re.compile(r"(.*)_(TRAIN|TEST)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class LoadedSplit:
    """Cases with where they came from.

    name: of the data set, without _TRAIN or _TEST. table: roles of the columns for the model card,
    empty if the source is no table. origin: the file read, for people.
    undivided: the source has no splits of its own, so that "train" and "test" are the same cases.
    """

    collection: Collection
    name: str
    origin: str
    table: dict[str, str] = field(default_factory=dict)
    undivided: bool = False


def load_split(source: str, split: Split, options: TableOptions, registry: Path | None = None) -> LoadedSplit:
    """The cases of `split` of SOURCE; every case has a label.

    registry: the user's registry; datasets.yaml in the working folder if None.
    InputError if the source is not there, is of no known form, has no such split or no labels, for
    fewer than two classes to train on, and where TRAIN and TEST differ in their channels.
    """
    path = Path(source).expanduser()
    if (own := own_set(source, registry)) is not None:
        loaded = _from_own_set(own, split, options)
    elif path.exists():
        _say_if_also_a_name(source)
        loaded = _from_path(path, split, options)
    elif looks_like_a_path(source):
        raise InputError(f"{source}: no such file or folder.")
    else:
        entry = find_entry(source, registry)
        loaded = _from_registry(entry, split)
        _check_facts(loaded, entry, split)
    collection = loaded.collection
    if collection.labels is None:
        raise _no_labels(loaded.origin, path if path.suffix.lower() == ".csv" else None)
    if split == "train" and len(found := sorted(set(collection.labels))) < 2:
        raise InputError(
            f"{loaded.origin}: every case has the label {found[0]!r}. Training needs at least two classes."
        )
    return loaded


def load_file(path: Path, options: TableOptions) -> LoadedSplit:
    """All cases of one .csv or .ts file, whatever split it is called; labels as far as it has them.

    InputError if it is not there, is of another form or cannot be read.
    """
    if path.suffix.lower() == ".csv":
        return _table(path, options)
    if path.suffix.lower() == ".ts":
        return _series(Member(path))
    raise _unknown_form(path)


def _from_registry(entry: DatasetEntry, split: Split) -> LoadedSplit:
    folder = embedded_folder(entry.name)
    if folder is not None:
        loaded = _from_pair(folder, split)
        return replace(loaded, origin=f"{entry.name}_{split.upper()}.ts (embedded in aeon)")
    return _from_pair(fetched_folder(entry), split)


def _from_own_set(entry: DatasetEntry, split: Split, typed: TableOptions) -> LoadedSplit:
    options, train = own_options(entry, typed), own_train(entry)
    if split == "train":
        loaded = _whole(train, split, options)
    else:
        loaded = _test_beside(train, own_test(entry), options)
    return replace(loaded, name=entry.name)


def _whole(path: Path, split: Split, options: TableOptions) -> LoadedSplit:
    """A file whatever split its name tells; of a folder or zip the split."""
    if path.is_dir() or path.suffix.lower() == ".zip":
        return _from_pair(path, split)
    return load_file(path, options)


def _test_beside(train: Path, test: Path, options: TableOptions) -> LoadedSplit:
    if train.suffix.lower() == test.suffix.lower() == ".csv":
        return _table_beside(train, test, options)
    return _whole(test, "test", options)


def _from_path(path: Path, split: Split, options: TableOptions) -> LoadedSplit:
    suffix = path.suffix.lower()
    if path.is_dir() or suffix == ".zip":
        _say_unused(options, path)
        return _from_pair(path, split)
    if suffix not in (".csv", ".ts"):
        raise _unknown_form(path)
    file = _file_of(path, split)
    undivided = _SPLIT_NAME.fullmatch(path.stem) is None
    if suffix == ".csv":
        loaded = _table(file, options) if file == path else _table_beside(path, file, options)
    else:
        _say_unused(options, path)
        loaded = _series(Member(file))
        if file != path:
            _check_channels(Member(path), loaded)
    return replace(loaded, undivided=undivided)


def _file_of(path: Path, split: Split) -> Path:
    """The file that holds `split` where the user typed `path`."""
    match = _SPLIT_NAME.fullmatch(path.stem)
    if match is None or match[2].lower() == split:
        return path
    if split == "train":
        raise InputError(f"{path} is the test split by its name. To train, type its TRAIN file.")
    word = "TEST" if match[2].isupper() else "test"
    sibling = path.with_name(f"{match[1]}_{word}{path.suffix}")
    if not sibling.is_file():
        raise InputError(
            f"{path} is the training split by its name, and {sibling} is not there. Type the test file."
        )
    return sibling


def _from_pair(place: Path, split: Split) -> LoadedSplit:
    pair = pair_in(place)
    wanted = pair.train if split == "train" else pair.test
    if wanted is None:
        raise InputError(f"{place} holds no {pair.name}_{split.upper()}.ts, only the other split.")
    loaded = _series(wanted)
    if split == "test" and pair.train is not None:
        _check_channels(pair.train, loaded)
    return loaded


def _series(member: Member) -> LoadedSplit:
    from tsattn.data.ts import parse_ts

    collection = parse_ts(member.read(), member.where)
    return LoadedSplit(collection=collection, name=_set_name(member.name), origin=member.where)


def _table(path: Path, options: TableOptions) -> LoadedSplit:
    collection, roles = read_table(path, options)
    return LoadedSplit(
        collection=collection, name=_set_name(path.name), origin=str(path), table=roles.as_dict()
    )


def _table_beside(train: Path, test: Path, options: TableOptions) -> LoadedSplit:
    """The test table, its columns understood as those of the training table and in their order."""
    trained = table_roles(train, options)
    options = TableOptions(**trained.as_dict())
    count = len(table_roles(test, options).channels)
    if count != len(trained.channels):
        raise _channels_differ(str(test), count, str(train), len(trained.channels))
    collection, roles = read_table(test, options, trained.channels)
    return LoadedSplit(
        collection=collection, name=_set_name(test.name), origin=str(test), table=roles.as_dict()
    )


def _set_name(file: str) -> str:
    stem = Path(file).stem
    match = _SPLIT_NAME.fullmatch(stem)
    return match[1] if match else stem


def _check_channels(train: Member, test: LoadedSplit) -> None:
    """Refuses a test split with another number of channels than TRAIN's first case."""
    from tsattn.data.ts_cases import read_cases
    from tsattn.data.ts_header import read_header, text_lines

    data = train.read().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    header = read_header(data, train.where)
    _, end, _ = next(text_lines(data, header.end, header.lines + 1), (0, len(data), b""))
    channels = read_cases(data[:end], header, train.where)[0].series.count(b":") + 1
    if channels != len(test.collection.channels):
        raise _channels_differ(test.origin, len(test.collection.channels), train.where, channels)


def _channels_differ(test: str, found: int, train: str, expected: int) -> InputError:
    return InputError(
        f"{test}: {found} channels, {train} has {expected}. Both splits need the same channels."
    )


def _check_facts(loaded: LoadedSplit, entry: DatasetEntry, split: Split) -> None:
    """Holds what was read against what the registry knows of the set."""
    cases = loaded.collection
    expected = {
        "cases": (len(cases), entry.train if split == "train" else entry.test),
        "channels": (len(cases.channels), entry.channels),
        "classes": (len(cases.classes), entry.classes),
    }
    for what, (found, known) in expected.items():
        if known is not None and found != known:
            raise InputError(
                f"{loaded.origin}: {found} {what} where the registry has {known} for {entry.name}. "
                "The file is not whole or not this set: get it again from the archive."
            )


def _no_labels(origin: str, table: Path | None) -> InputError:
    if table is None:
        return InputError(
            f"{origin}: its cases have no labels (@classLabel false), so there is no class to learn."
        )
    columns = listed(name for name in read_head(table).names if name)
    return InputError(f"{origin}: no column holds the labels. Type --label COLUMN, one of: {columns}.")


def _say_if_also_a_name(source: str) -> None:
    if source.lower() in (name.lower() for name in load_registry()):
        logger.warning(
            "%s: taken from the file or folder here, not as the data set of that name. "
            "To have the data set, type the command in another folder.",
            source,
        )


def _say_unused(options: TableOptions, path: Path) -> None:
    used = [f"--{name} {value}" for name, value in vars(options).items() if value is not None]
    if used:
        logger.warning("%s is no table: %s is not used.", path, ", ".join(used))


def _unknown_form(path: Path) -> InputError:
    form = f"the form {path.suffix!r}" if path.suffix else "a file without an ending"
    return InputError(
        f"{path}: {form} is not known. Type a .csv file, a .ts file, "
        "or a folder or zip with NAME_TRAIN.ts and NAME_TEST.ts."
    )

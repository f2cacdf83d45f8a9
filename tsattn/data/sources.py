"""What a user types as SOURCE becomes the cases of one split.

A SOURCE is a path, or the name of a registered data set where no such path exists:

    NAME                    a set of datasets.yaml or of the user's own registry; those embedded in aeon
                            are there without network, others of the archives are fetched into the cache
    folder, .zip            with NAME_TRAIN.ts and NAME_TEST.ts, or the same in another form
    folder                  of files, its sub-folders train and test the splits if they are there (folders.py)
    'FOLDER/*.csv'          the files that the pattern fits, as one
    X_TRAIN.ts, X_TRAIN.csv "train" is the file, "test" the file X_TEST beside it
    X_TEST.ts, X_TEST.csv   "test" is the file; it is refused for "train"
    .npz                    with both splits or one
    any other file          the file is the data for either split (`LoadedSplit.undivided` says so)
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tsattn.data.archives import Member, has_pair, inner_pair, pair_in
from tsattn.data.cache import Parsed, channels_kept, through_cache
from tsattn.data.collection import Collection
from tsattn.data.columnless import say_unused, say_unused_of_files
from tsattn.data.columns import TableOptions
from tsattn.data.csvtext import listed
from tsattn.data.facts import check_facts
from tsattn.data.filelabels import no_labels_of_files
from tsattn.data.folders import FileSet, first_of, folder_files, glob_files, is_glob, read_set, split_folder
from tsattn.data.formats import (
    SERIES,
    channels_in,
    holds_splits,
    is_read,
    is_series,
    parse_series,
    unknown_form,
)
from tsattn.data.heads import ending, open_head
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
    elif is_glob(source):
        loaded = _from_files(glob_files(source), options)
    elif looks_like_a_path(source):
        raise InputError(f"{source}: no such file or folder.")
    else:
        entry = find_entry(source, registry)
        loaded = _from_registry(entry, split, options)
        check_facts(loaded.collection, loaded.origin, entry, split)
    collection = loaded.collection
    if collection.labels is None and collection.timepoint_labels is None:
        raise _no_labels(loaded.origin, path)
    if split == "train" and len(found := sorted(set(collection.labels or collection.classes))) < 2:
        raise InputError(
            f"{loaded.origin}: every case has the label {found[0]!r}. Training needs at least two classes."
        )
    return loaded


def load_file(path: Path, options: TableOptions) -> LoadedSplit:
    """All cases of one file, whatever split it is called; labels as far as it has them.

    InputError if it is not there, is of no known form or cannot be read, and for a group without columns.
    """
    if not is_read(path):
        raise unknown_form(path)
    if not is_series(path):
        return _table(path, options)
    say_unused(options, path)
    return _series(Member(path))


def _from_registry(entry: DatasetEntry, split: Split, options: TableOptions) -> LoadedSplit:
    say_unused(options, entry.name)
    folder = embedded_folder(entry.name)
    if folder is not None:
        loaded = _from_pair(folder, split, TableOptions())
        return replace(loaded, origin=f"{entry.name}_{split.upper()}.ts (embedded in aeon)")
    return _from_pair(fetched_folder(entry), split, TableOptions())


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
        return _from_place(path, split, options)
    return load_file(path, options)


def _test_beside(train: Path, test: Path, options: TableOptions) -> LoadedSplit:
    if all(path.is_file() and is_read(path) and not is_series(path) for path in (train, test)):
        return _table_beside(train, test, options)
    if is_series(test) and not is_series(train):
        options = replace(options, group=None)  # the column is TRAIN's, and no test case is torn away
    return _whole(test, "test", options)


def _from_path(path: Path, split: Split, options: TableOptions) -> LoadedSplit:
    if path.is_dir() or path.suffix.lower() == ".zip":
        return _from_place(path, split, options)
    if not is_read(path):
        raise unknown_form(path)
    if holds_splits(path):
        say_unused(options, path)
        return _series(Member(path), split)
    file = _file_of(path, split)
    if not is_series(path):
        loaded = _table(file, options) if file == path else _table_beside(path, file, options)
    else:
        say_unused(options, path)
        loaded = _series(Member(file))
        if file != path:
            _check_channels(Member(path), loaded)
    return replace(loaded, undivided=_SPLIT_NAME.fullmatch(_stem(path.name)) is None)


def _from_place(place: Path, split: Split, options: TableOptions) -> LoadedSplit:
    """A folder or zip: a pair of files, or a folder of files."""
    if not place.is_dir() or has_pair(place) or inner_pair(place) is not None:
        return _from_pair(place, split, options)
    part = split_folder(place, split, say=split == "train")
    files = folder_files(part or place, options)
    if files is None:
        return _from_pair(place, split, options)  # which says what is missing
    if part is None or split == "train":
        return replace(_from_files(files, options), name=place.resolve().name, undivided=part is None)
    channels = None
    if (trained := folder_files(split_folder(place, "train") or place, options)) is not None:
        options, channels = first_of(trained, options)
    loaded = _from_files(files, options, channels)
    return replace(loaded, name=place.resolve().name, undivided=False)


def _from_files(
    files: FileSet, options: TableOptions, channels: tuple[str, ...] | None = None
) -> LoadedSplit:
    read = read_set(files, options, channels)
    return LoadedSplit(
        collection=read.collection,
        name=files.root.resolve().name,
        origin=f"{files.place} ({len(files.files)} files)",
        table=read.table,
        undivided=True,
    )


def _file_of(path: Path, split: Split) -> Path:
    """The file that holds `split` where the user typed `path`."""
    match = _SPLIT_NAME.fullmatch(_stem(path.name))
    if match is None or match[2].lower() == split:
        return path
    if split == "train":
        raise InputError(f"{path} is the test split by its name. To train, type its TRAIN file.")
    word = "TEST" if match[2].isupper() else "test"
    sibling = path.with_name(f"{match[1]}_{word}{path.name[len(_stem(path.name)) :]}")
    if not sibling.is_file():
        raise InputError(
            f"{path} is the training split by its name, and {sibling} is not there. Type the test file."
        )
    return sibling


def _from_pair(place: Path, split: Split, options: TableOptions) -> LoadedSplit:
    pair = pair_in(place)
    wanted = pair.train if split == "train" else pair.test
    if wanted is None:
        raise InputError(f"{place} holds no {pair.missing(split)}, only the other split.")
    if wanted.inside is not None and ending(Path(wanted.name)) not in SERIES:
        raise InputError(f"{place}: tables are not read inside a zip. Unpack it and type the folder.")
    if wanted.inside is None and not is_series(wanted.place):
        if split == "test" and pair.train is not None:
            return _table_beside(pair.train.place, wanted.place, options)
        return _table(wanted.place, options)
    say_unused(options, place)
    loaded = _series(wanted)
    if split == "test" and pair.train is not None:
        _check_channels(pair.train, loaded)
    return loaded


def _series(member: Member, split: Split | None = None) -> LoadedSplit:
    cases, _ = through_cache(member, {"split": split}, lambda: Parsed(parse_series(member, split), {}))
    return LoadedSplit(collection=cases, name=_set_name(member.name), origin=member.where)


def _table(path: Path, options: TableOptions, channels: tuple[str, ...] | None = None) -> LoadedSplit:
    def read() -> Parsed:
        cases, roles = read_table(path, options, channels)
        return Parsed(cases, roles.for_card())

    say_unused_of_files(options, path)
    cases, table = through_cache(Member(path), {**vars(options), "channels": channels}, read)
    return LoadedSplit(collection=cases, name=_set_name(path.name), origin=str(path), table=table)


def _table_beside(train: Path, test: Path, options: TableOptions) -> LoadedSplit:
    """The test table, its columns understood as those of the training table and in their order."""
    trained = table_roles(train, options)
    options = TableOptions(**trained.for_card(), label_of=options.label_of)
    count = len(table_roles(test, options).channels)
    if count != len(trained.channels):
        raise _channels_differ(str(test), count, str(train), len(trained.channels))
    return _table(test, options, trained.channels)


def _set_name(file: str) -> str:
    stem = _stem(file)
    match = _SPLIT_NAME.fullmatch(stem)
    return match[1] if match else stem


def _stem(file: str) -> str:
    """The name of a file without its ending, that of a compression too."""
    return file[: len(file) - len(ending(Path(file)))]


def _check_channels(train: Member, test: LoadedSplit) -> None:
    """Refuses a test split with another number of channels than TRAIN."""
    if (channels := channels_kept(train) or channels_in(train)) != len(test.collection.channels):
        raise _channels_differ(test.origin, len(test.collection.channels), train.where, channels)


def _channels_differ(test: str, found: int, train: str, expected: int) -> InputError:
    return InputError(
        f"{test}: {found} channels, {train} has {expected}. Both splits need the same channels."
    )


def _no_labels(origin: str, path: Path) -> InputError:
    if path.is_dir() or is_glob(str(path)):
        return no_labels_of_files(origin)
    if not path.is_file() or not is_read(path) or is_series(path):
        why = " (@classLabel false)" if path.suffix.lower() == ".ts" else ""
        return InputError(f"{origin}: its cases have no labels{why}, so there is no class to learn.")
    columns = listed(name for name in open_head(path).names if name)
    return InputError(f"{origin}: no column holds the labels. Type --label COLUMN, one of: {columns}.")


def _say_if_also_a_name(source: str) -> None:
    if source.lower() in (name.lower() for name in load_registry()):
        logger.warning(
            "%s: taken from the file or folder here, not as the data set of that name. "
            "To have the data set, type the command in another folder.",
            source,
        )

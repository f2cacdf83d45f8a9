"""A pair NAME_TRAIN.ts and NAME_TEST.ts in a folder or in a zip, read from where it lies.

The pair may be of any form that tsattn reads; archives often hold the same set as .ts, .arff and .txt,
and then the .ts files are it.
"""

from __future__ import annotations

import errno
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tsattn.errors import InputError

try:
    from lzma import LZMAError
except ImportError:  # some Pythons are built without it
    LZMAError = zlib.error  # type: ignore[misc, assignment]

ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, LZMAError, struct.error, EOFError, ValueError)
"""What Python raises for a damaged zip; ValueError for names that are no text. A method of packing or a
version that it does not know is NotImplementedError, and mostly damage too."""
NO_SUCH_PLACE = errno.EINVAL
"""The errno where a damaged zip tells of a member that begins before the file."""
_SPLIT_FILE = re.compile(r"(.+)_(TRAIN|TEST)(\.[a-z]+(?:\.gz|\.zst)?)", re.IGNORECASE)


@dataclass(frozen=True)
class Member:
    """A file that lies in a folder, or inside the zip `place` under the name `inside`."""

    place: Path
    inside: str | None = None

    @property
    def where(self) -> str:
        """How messages call it."""
        return str(self.place) if self.inside is None else f"{self.place}:{self.inside}"

    @property
    def name(self) -> str:
        """The file's own name, without folders."""
        return PurePosixPath(self.inside).name if self.inside is not None else self.place.name

    def beside(self, name: str) -> Member | None:
        """The file called `name` in the same folder, also inside a zip; None if it is not there."""
        if self.inside is None:
            path = self.place.with_name(name)
            return Member(path) if path.is_file() else None
        inside = str(PurePosixPath(self.inside).with_name(name))
        return next((member for member in _members(self.place) if member.inside == inside), None)

    def read(self) -> bytes:
        """Its content. InputError if it cannot be read or the zip is damaged."""
        try:
            if self.inside is None:
                return self.place.read_bytes()
            with zipfile.ZipFile(self.place) as archive:
                return archive.read(self.inside)
        except (*ZIP_DAMAGE, OSError) as error:
            if isinstance(error, OSError) and not (self.inside and error.errno == NO_SUCH_PLACE):
                raise InputError(f"{self.where} cannot be read: {error.strerror or error}.") from None
            raise InputError(
                f"{self.where}: the zip is damaged ({error}). Get it again from its source."
            ) from None
        except (RuntimeError, NotImplementedError) as error:
            raise InputError(
                f"{self.where} cannot be unpacked: {error}. Unpack it and type the folder."
            ) from None


@dataclass(frozen=True)
class Pair:
    """The two splits of the data set `name`; None for one that is not there."""

    name: str
    train: Member | None
    test: Member | None

    def missing(self, split: str) -> str:
        """What the file of the split that is not there would be called."""
        other = self.train or self.test
        assert other is not None
        _, _, form = other.name.removeprefix(self.name).partition(".")
        return f"{self.name}_{split.upper()}.{form}"


def has_pair(place: Path) -> bool:
    """Whether the folder or zip holds one or both files of a pair. InputError if it cannot be read."""
    return bool(_pairs(place))


def pair_in(place: Path) -> Pair:
    """The pair in the folder or zip `place`; if there are several, the one called like `place`.

    InputError if there is none, or several and none is called like `place`.
    """
    found = _pairs(place)
    if not found:
        raise InputError(f"{place}: no NAME_TRAIN.ts and NAME_TEST.ts in it.{_hint(place)}")
    own = place.resolve().name if place.is_dir() else place.stem
    if len(found) > 1 and own not in found:
        file = next(iter(found[min(found)].values())).name
        raise InputError(
            f"{place} holds several data sets: {', '.join(sorted(found))}. "
            f"{'Type' if place.is_dir() else 'Unpack it and type'} the file {file} or another."
        )
    name = own if own in found else next(iter(found))
    return Pair(name, found[name].get("train"), found[name].get("test"))


def _pairs(place: Path) -> dict[str, dict[str, Member]]:
    """Name of a set → split → file, in the first form of which there is any."""
    from tsattn.data.formats import READ
    from tsattn.data.npz import labels_name

    forms: dict[str, dict[str, dict[str, Member]]] = {}
    for member in _members(place):
        match = _SPLIT_FILE.fullmatch(member.name)
        if match is None or (match[3].lower() == ".npy" and labels_name(member.name) is None):
            continue
        forms.setdefault(match[3].lower(), {}).setdefault(match[1], {})[match[2].lower()] = member
    return next((forms[form] for form in READ if form in forms), {})


def _members(place: Path) -> list[Member]:
    try:
        if place.is_dir():
            return [Member(file) for file in sorted(place.iterdir()) if file.is_file()]
        with zipfile.ZipFile(place) as archive:
            names = sorted(archive.namelist())
    except (*ZIP_DAMAGE, NotImplementedError):
        raise InputError(
            f"{place} is no zip file, or only a part of one. Get it again from its source."
        ) from None
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}.") from None
    # Some systems pack a shadow ._NAME of every file.
    return [Member(place, name) for name in names if not PurePosixPath(name).name.startswith(".")]


def _hint(place: Path) -> str:
    """What else of use lies in the folder."""
    if not place.is_dir():
        return " Type a zip with these two files."
    inner = inner_pair(place)
    return f" Did you mean {inner}?" if inner is not None else ""


def inner_pair(folder: Path) -> Path | None:
    """The first sub-folder that holds both files of a pair."""
    for sub in sorted(path for path in folder.iterdir() if path.is_dir()):
        if any({"train", "test"} <= splits.keys() for splits in _pairs(sub).values()):
            return sub
    return None

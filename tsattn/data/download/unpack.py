"""The two files of a data set out of a zip from elsewhere, which is trusted in nothing."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
from pathlib import Path

from tsattn.data.archives import NO_SUCH_PLACE, ZIP_DAMAGE
from tsattn.data.download.faults import Damaged, Fault
from tsattn.errors import InputError

# Text of numbers packs to a third or a tenth of its size; a thousandth is the least that deflate can do.
_RATIO, _ALWAYS = 200, 100 << 20
_OUTSIDE = re.compile(r"(^|[/\\])\.\.([/\\]|$)|^[/\\]|^[A-Za-z]:")


def unpack(packed: Path, name: str, folder: Path) -> tuple[Path, Path]:
    """NAME_TRAIN.ts and NAME_TEST.ts from wherever they lie in the zip `packed`, written into `folder`.

    Damaged if the zip is cut short or corrupt; Fault if it does not hold the files, or is no zip that one
    would want to unpack: members that leave the folder, links, a file that swells beyond all measure.
    """
    try:
        with zipfile.ZipFile(packed) as archive:
            members = archive.infolist()
            outside = next((one.filename for one in members if _OUTSIDE.search(one.filename)), None)
            if outside is not None:
                raise Fault(
                    f"sent a zip with a file that leaves its folder ({outside!r}); nothing was unpacked"
                )
            train, test = (_member(members, f"{name}_{split}.ts") for split in ("TRAIN", "TEST"))
            return _extract(archive, train, folder), _extract(archive, test, folder)
    except zipfile.BadZipFile as error:
        raise Damaged(f"sent a zip that is damaged or cut short ({error})") from None
    except ZIP_DAMAGE as error:
        raise Damaged(f"sent a zip that is damaged ({str(error) or 'it ends too early'})") from None
    except OSError as error:
        if error.errno != NO_SUCH_PLACE:
            raise
        raise Damaged("sent a zip that is damaged") from None
    except (RuntimeError, NotImplementedError) as error:
        raise Fault(f"sent a zip that cannot be unpacked ({error})") from None


def _member(members: list[zipfile.ZipInfo], file: str) -> zipfile.ZipInfo:
    """The member called `file` that lies least deep."""
    called = [one for one in members if re.split(r"[/\\]", one.filename)[-1].lower() == file.lower()]
    if not called:
        held = ", ".join(one.filename for one in members[:4]) or "nothing"
        raise Fault(f"sent a zip without {file} (it holds {held}{', ...' if len(members) > 4 else ''})")
    found = min(called, key=lambda one: len(re.split(r"[/\\]", one.filename)))
    if stat.S_ISLNK(found.external_attr >> 16):
        raise Fault(f"sent a zip in which {found.filename} is a link; nothing was unpacked")
    if found.file_size > max(_ALWAYS, _RATIO * found.compress_size):
        raise Fault(
            f"sent a zip in which {found.filename} swells from {found.compress_size} to {found.file_size} "
            "bytes; nothing was unpacked"
        )
    return found


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> Path:
    """Writes a member under its own name without folders; zipfile checks its length and CRC."""
    target = folder / re.split(r"[/\\]", member.filename)[-1]
    free = shutil.disk_usage(folder).free
    if member.file_size > free:
        raise InputError(
            f"{folder}: {member.file_size / 1e6:,.0f} MB are needed to unpack and {free / 1e6:,.0f} MB are "
            "free. Make room, or set TSATTN_HOME to a folder on another disk."
        )
    with archive.open(member) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    return target

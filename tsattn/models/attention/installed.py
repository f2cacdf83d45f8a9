"""Attention of installed software: entry points in the group `tsattn.attention`, loaded when asked for."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, entry_points

from tsattn.config import Code
from tsattn.errors import InputError
from tsattn.models.attention.foreign import Failure, attempt, watch_for
from tsattn.models.attention.registry import Origin, parts, registering_from

logger = logging.getLogger(__name__)

GROUP = "tsattn.attention"
_tried: set[tuple[str, str]] = set()


def load_installed(name: str | None = None) -> None:
    """Imports what entry points name, each once a process; a broken one is a remark.

    name: of a part; the entry point called so is imported first, the others only if it does not
    register the part. None imports all.
    """
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name != name):
        if any(part.name == name for part in parts()):
            return
        if (point.name, point.value) not in _tried:
            _tried.add((point.name, point.value))
            _load(point)


def find_installed(code: Code, where: str) -> None:
    """Makes sure that the part a run needs is there. InputError naming `where` and what to install."""
    load_installed(code.part)
    found = next((part.origin for part in parts() if part.name == code.part), None)
    if found is None or found.distribution != code.distribution:
        wanted = f"{code.distribution}=={code.version}" if code.version else code.distribution
        raise InputError(
            f"{where}: its attention '{code.part}' comes from the distribution {code.distribution} "
            f"{code.version}, which is not installed here or cannot be used. Install {wanted}."
        )
    if found.version != code.version:
        logger.warning(
            "%s: trained with %s %s, %s is installed; predictions may differ.",
            where,
            code.distribution,
            code.version,
            found.version,
        )


def _load(point: EntryPoint) -> None:
    distribution = point.dist
    origin = Origin(
        distribution=point.value if distribution is None else distribution.name,
        version="" if distribution is None else distribution.version,
    )
    watch_for(point.module.partition(".")[0])

    def load() -> None:
        with registering_from(origin):
            point.load()

    failure = attempt(load)
    if isinstance(failure, Failure):
        logger.warning("Attention '%s' of %s cannot be used: %s.", point.name, origin, failure.says)

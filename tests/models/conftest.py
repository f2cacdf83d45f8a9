"""Every spec that the registry can spell, so that registering a part is testing it."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch

from tsattn.errors import InputError
from tsattn.models.attention import parse, parts


def spelled(most_wrappers: int) -> list[str]:
    """Every core with every ordered choice of up to `most_wrappers` wrappers, refused ones included."""
    wrappers = [part.name for part in parts("wrapper")]
    return [
        "+".join((core.name, *chosen))
        for core in parts("core")
        for count in range(most_wrappers + 1)
        for chosen in permutations(wrappers, count)
    ]


def is_refused(spec: str) -> bool:
    try:
        parse(spec)
    except InputError:
        return True
    return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = {
        name
        for mark in metafunc.definition.iter_markers("parametrize")
        for name in str(mark.args[0]).split(",")
    }
    if "spec" in metafunc.fixturenames and "spec" not in own:
        metafunc.parametrize("spec", [spec for spec in spelled(3) if not is_refused(spec)])
    if "refused" in metafunc.fixturenames:
        metafunc.parametrize("refused", [spec for spec in spelled(3) if is_refused(spec)])


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    torch.manual_seed(0)

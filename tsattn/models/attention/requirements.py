"""What a class has to be to stand in a spec, told where it is written and not in the middle of a training."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tsattn.errors import InputError
from tsattn.models.attention.contract import Mechanism

FORWARD = ("self", "q", "k", "v", "observed")


class NotRegistrable(ValueError):
    """A class that cannot be an attention part; the message says why."""


def check_class(cls: Any, name: str, arguments: Sequence[str]) -> None:
    """NotRegistrable where a class cannot be an attention whose constructor takes (self, *arguments)."""
    if not (isinstance(cls, type) and issubclass(cls, Mechanism)):
        raise NotRegistrable(f"'{name}' has to be a class derived from Mechanism")
    if cls.forward is Mechanism.forward:
        raise NotRegistrable(f"{cls.__name__} has no forward(self, q, k, v, observed)")
    wanted = f"__init__(self, {', '.join(arguments)})"
    if not any("__init__" in vars(base) for base in cls.__mro__[: cls.__mro__.index(Mechanism)]):
        raise NotRegistrable(f"{cls.__name__} has no {wanted}")
    for call, given, written in (
        (cls, arguments, wanted),
        (cls.forward, FORWARD, f"forward({', '.join(FORWARD)})"),
    ):
        try:
            inspect.signature(call).bind(*given)
        except TypeError as error:
            raise NotRegistrable(f"{cls.__name__} needs {written}: {error}") from None


def refuse_wrong_outputs(mechanism: Mechanism, name: str) -> None:
    """From now on an output of another shape or type than asked for is an InputError that begins with `name`.

    Elsewhere it would only be met by what uses it, and look like a bug there.
    """
    if not hasattr(mechanism, "_forward_hooks"):
        raise InputError(f"{name} has to call super().__init__() before anything else.")

    def judge(_: nn.Module, given: tuple[Tensor, ...], output: object) -> None:
        if torch.compiler.is_compiling() or len(given) < 3:
            return
        q, v = given[0], given[2]
        wanted = (*q.shape[:3], v.shape[3])
        # Under autocast what uses the output takes any type.
        any_type = torch.is_autocast_enabled(v.device.type)
        if not isinstance(output, Tensor):
            found = type(output).__name__
        elif output.shape != wanted or not (any_type or output.dtype == v.dtype):
            found = f"{tuple(output.shape)} {output.dtype}"
        else:
            return
        raise InputError(f"{name} gives {found}, expected {tuple(wanted)} {v.dtype}.")

    mechanism.register_forward_hook(judge)

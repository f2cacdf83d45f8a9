"""The laws that hold for every attention, as measurements: how far a mechanism is from obeying each.

The tests hold what tsattn brings to them, `tsattn attention check` what anyone else brings. A
measurement takes a mechanism built for HEADS and gives the largest difference it found: NaN or
infinity where something is not finite or has another shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from tsattn.errors import InputError
from tsattn.models.attention.contract import Heads, Mechanism
from tsattn.models.attention.foreign import Failure, attempt
from tsattn.models.attention.registry import build, parse

T = TypeVar("T")
HEADS = Heads(count=8, dim=4)
LENGTH = 71  # longer than two default windows of `local`, and a multiple of no scale of `sh`
TOLERANCE = 1e-5
CLAIM = "ignores_key_shift, as claimed"
BEYOND = 45  # timepoints of padding
FAR = 50.0  # what stands in gaps is that much larger than what stands elsewhere


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One law and one spec. difference: the largest found, at most `allowed` where the law is held.

    Both are None for a law that is no difference; note: what is wrong where that is no number.
    """

    spec: str
    law: str
    held: bool
    difference: float | None = None
    allowed: float | None = None
    note: str = ""


def examine(spec: str) -> Iterator[Finding]:
    """Measures every law on a spec that `parse` accepts, in evaluation mode, the same way every time."""
    claims = attempt(lambda: build(spec, HEADS).ignores_key_shift)
    for law, measure in LAWS.items():
        if law == CLAIM and claims is not True:
            continue
        yield judge(spec, law, partial(_measured, measure, spec), TOLERANCE)
    for dtype in (torch.float32, torch.bfloat16):
        for masked in (False, True):
            name = f"shape, values, gradients: {str(dtype).removeprefix('torch.')}"
            complain = partial(complaint, dtype=dtype, masked=masked)
            found = attempt(partial(_measured, complain, spec))
            note = found.says if isinstance(found, Failure) else found
            yield Finding(spec=spec, law=name + (" with gaps" if masked else ""), held=not note, note=note)


def judge(spec: str, law: str, measure: Callable[[], float], allowed: float) -> Finding:
    """Holds a measurement to what is allowed; what it raises is a law broken too."""
    found = attempt(measure)
    if isinstance(found, Failure):
        return Finding(spec=spec, law=law, held=False, allowed=allowed, note=found.says)
    if not math.isfinite(found):
        note = "values that are not finite, or another shape"
        return Finding(spec=spec, law=law, held=False, allowed=allowed, note=note)
    return Finding(spec=spec, law=law, held=found <= allowed, difference=found, allowed=allowed)


def specs_around(spec: str) -> tuple[str, ...]:
    """The spec and, where it is a single part, what that is joined with most: bn, sh, another core."""
    parsed = parse(spec)
    wrapping = [part for part, _ in parsed.parts if part.kind == "wrapper"]
    if len(wrapping) == len(parsed.parts) - 1 == 0:
        others = [f"{spec}+bn", f"{spec}+sh"]
    elif len(wrapping) == 1 and "+" not in spec:
        others = [f"linear+{spec}", f"{spec}+bn", f"{spec}+sh"]
    else:
        others = []
    return (spec, *filter(_makes_sense, others))


def moved(mechanism: Mechanism) -> Mechanism:
    """The mechanism with every parameter moved away from its gentle first value."""
    with torch.no_grad():
        for parameter in mechanism.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return mechanism


def tensors(batch: int, length: int = LENGTH) -> tuple[Tensor, Tensor, Tensor]:
    """Random q, k and v for HEADS."""
    q, k, v = torch.randn(3, batch, HEADS.count, length, HEADS.dim).unbind(0)
    return q, k, v


def gaps(batch: int, length: int = LENGTH) -> Tensor:
    """A mask with scattered gaps, one long gap, and at least one observed timepoint in every case."""
    observed = torch.rand(batch, length) > 0.3
    observed[0, length // 4 : length // 2] = False
    observed[:, 0] = True
    return observed


def at_observed(x: Tensor, observed: Tensor) -> Tensor:
    """(B, H, L, D) with zero where nothing is observed: what stands there is nobody's business if finite."""
    return x * observed[:, None, :, None]


def content_of_gaps(mechanism: Mechanism) -> float:
    """What stands in timepoints that are not observed changes nothing."""
    (q, k, v), observed = tensors(3), gaps(3)
    other = [torch.where(observed[:, None, :, None], x, FAR * torch.randn_like(x)) for x in (q, k, v)]
    return _apart(
        at_observed(mechanism(q, k, v, observed), observed),
        at_observed(mechanism(*other, observed), observed),
    )


def amount_of_padding(mechanism: Mechanism) -> float:
    """Timepoints that are not observed, added at the end, change nothing."""
    (q, k, v), observed = tensors(3), gaps(3)
    padded = [torch.cat([x, torch.randn(3, HEADS.count, BEYOND, HEADS.dim)], dim=2) for x in (q, k, v)]
    mask = torch.cat([observed, torch.zeros(3, BEYOND, dtype=torch.bool)], dim=1)
    return _apart(
        at_observed(mechanism(q, k, v, observed), observed),
        at_observed(mechanism(*padded, mask)[:, :, :LENGTH], observed),
    )


def batch_or_alone(mechanism: Mechanism) -> float:
    """A case in a batch with longer ones comes out as it does alone."""
    (q, k, v), lengths = tensors(4), [LENGTH, 40, 9, 1]
    observed = torch.arange(LENGTH)[None, :] < torch.tensor(lengths)[:, None]
    together = mechanism(q, k, v, observed)
    alone = [
        mechanism(*(x[case : case + 1, :, :length] for x in (q, k, v)), None)
        for case, length in enumerate(lengths)
    ]
    return max(
        (_apart(together[case : case + 1, :, : lengths[case]], one) for case, one in enumerate(alone)),
        key=lambda difference: math.inf if math.isnan(difference) else difference,
    )


def all_observed(mechanism: Mechanism) -> float:
    """A mask that is True everywhere equals no mask."""
    q, k, v = tensors(2)
    everything = torch.ones(2, LENGTH, dtype=torch.bool)
    return _apart(mechanism(q, k, v, everything), mechanism(q, k, v, None))


def weights_times_values(mechanism: Mechanism) -> float:
    """What comes out is `weights` times the values, so that what a head looks at can be told."""
    (q, k, v), observed = tensors(2), gaps(2)
    mixed = mechanism.weights(q, k, observed) @ v
    return _apart(at_observed(mechanism(q, k, v, observed), observed), at_observed(mixed, observed))


def constant_keys(mechanism: Mechanism) -> float:
    """Keys without any variance and queries far from them give finite values: 0 if so, NaN if not."""
    q, _, v = tensors(2)
    mixed = mechanism(30 * q, torch.full_like(v, 3.0), v, gaps(2))
    return 0.0 if bool(mixed.isfinite().all()) else math.nan


def claim_of_shift(mechanism: Mechanism) -> float:
    """A vector added to all keys changes nothing, and a factor of the keys does what it does to the queries.

    To be held by what claims it with `ignores_key_shift`.
    """
    (q, k, v), observed = tensors(2), gaps(2)
    vector, factor = torch.randn(1, HEADS.count, 1, HEADS.dim), 0.5 + torch.rand(1, HEADS.count, 1, HEADS.dim)
    expected = at_observed(mechanism(factor * q, k, v, observed), observed)
    return _apart(expected, at_observed(mechanism(q, factor * k + vector, v, observed), observed))


def complaint(mechanism: Mechanism, dtype: torch.dtype, masked: bool, every_input: bool = False) -> str:
    """What is wrong with shape, type, finiteness or gradients; '' if nothing.

    Every parameter and v have to get a gradient; q and k too with every_input, for mechanisms that use them.
    """
    mechanism = mechanism.to(dtype)
    q, k, v = (x.to(dtype).requires_grad_() for x in tensors(2))
    mixed = mechanism(q, k, v, gaps(2) if masked else None)
    if mixed.shape != q.shape or mixed.dtype != dtype:
        return f"gives {tuple(mixed.shape)} {mixed.dtype} for {tuple(q.shape)} {dtype}"
    if not mixed.isfinite().all():
        return "values that are not finite"
    mixed.square().sum().backward()
    for name, parameter in [("q", q), ("k", k), ("v", v), *mechanism.named_parameters()]:
        if parameter.grad is None or parameter.grad.abs().sum() == 0:
            if every_input or name not in ("q", "k"):
                return f"{name} gets no gradient"
        elif not parameter.grad.isfinite().all():
            return f"the gradient of {name} is not finite"
    return ""


LAWS: dict[str, Callable[[Mechanism], float]] = {
    "content of padding and gaps": content_of_gaps,
    "amount of padding": amount_of_padding,
    "a case in a batch as alone": batch_or_alone,
    "all observed as no mask": all_observed,
    "weights times values": weights_times_values,
    "constant keys stay finite": constant_keys,
    CLAIM: claim_of_shift,
}


def _measured(measure: Callable[[Mechanism], T], spec: str) -> T:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return measure(moved(build(spec, HEADS)).eval())


def _apart(expected: Tensor, found: Tensor) -> float:
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return math.inf
    return float((expected - found).detach().abs().max())


def _makes_sense(spec: str) -> bool:
    try:
        parse(spec)
    except InputError:
        return False
    return True

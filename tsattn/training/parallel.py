"""One process that trains alone, or several that train one model together on shares of every batch.

torchrun starts the processes. Each draws the same batch and takes its share; gradients are summed, so that
all take the same step. The first of them alone writes and speaks.

One sum of our one tensor of all gradients is what torch's DistributedDataParallel does with one bucket, and
is done here without it: it would put buckets of its own in that tensor's place; it averages over processes,
which is wrong where shares of a batch differ in size, while sums over cases need no correction; and it waits
for a backward pass from a process that has no case. What it adds, summing while the backward pass still runs,
pays where gradients take hundreds of megabytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from tsattn.errors import CheckFailed, InputError, Interrupted, TsattnError

if TYPE_CHECKING:  # a command asks for its company before torch is imported
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

Found = TypeVar("Found")

BETWEEN_QUESTIONS = 8
"""Steps from one question whether to stop or save to the next. A round on the host costs some 0.1 ms."""
LONGEST = 4096
"""Bytes of a message that processes tell each other."""


KINDS = {kind.exit_code: kind for kind in (InputError, CheckFailed, Interrupted)}


class ProcessLost(CheckFailed):
    """Another process of a training ended, and this one cannot go on without it."""


class Alone:
    """One process: all is its own, and there is nobody to wait for."""

    command = "tsattn train"
    """What is typed to train, or to go on, in the same company."""
    size = 1
    leads = True
    """Whether it is the one process that writes and speaks."""

    def device(self, device: torch.device) -> torch.device:
        """The device of this process where the run says `device`."""
        return device

    def share(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's part of the cases of a step, maybe none."""
        return chosen

    def every(self, items: Iterable[Found]) -> Iterable[Found]:
        """This process's part of items that are the same in all processes."""
        return items

    def add_up(self, tensor: Tensor) -> Tensor:
        """`tensor`, in place, as the sum over all processes, the same in each."""
        return tensor

    def begin_alike(self, tensors: Iterable[Tensor], seed: int) -> None:
        """Gives all processes the first one's `tensors`, and each its own random numbers from now on."""

    def gather(self, own: Tensor) -> Tensor:
        """(processes, …): what each of them has."""
        return own[None]

    def own(self, gathered: Tensor) -> Tensor:
        """This process's part of what `gather` gave. InputError if that was for another number of them."""
        return _of_number(gathered, 1)[0]

    def any(self, *asked: bool) -> tuple[bool, ...]:
        """Each is true where it is in any process."""
        return asked

    def any_now_and_then(self, steps: int, *asked: bool) -> tuple[bool, ...]:
        """As `any`, but may answer no until some steps later; called after each. steps: made so far."""
        return asked

    @contextmanager
    def alike(self) -> Iterator[None]:
        """Around what every process does for itself: where one fails all do, with its message."""
        yield

    def leave(self) -> None:
        """After the last that is done together."""


class Together:
    """One of several processes, which all call the same methods in the same order. See `Alone`.

    Each method but `share` and `every` waits for the others, and raises ProcessLost where one has ended.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        import torch
        from torch import distributed

        self.rank, self.size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        self.leads = self.rank == 0
        self._place, here = int(environment["LOCAL_RANK"]), int(environment["LOCAL_WORLD_SIZE"])
        nodes = f"--nnodes {self.size // here} … " if here < self.size else ""
        self.command = f"torchrun {nodes}--nproc-per-node {here} -m tsattn train"
        self._torch, self._all = torch, distributed
        with self._waiting():
            distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")

    def device(self, device: torch.device) -> torch.device:
        """The GPU of this process's number on this machine. CheckFailed where there is none."""
        if device.type == "cpu":
            return device
        count = self._torch.cuda.device_count()
        if device.type != "cuda" or self._place >= count:
            raise CheckFailed(
                f"--device {device.type}: process {self._place + 1} of this machine has none of its own. "
                f"Start as many as there are GPUs ({count}) with --nproc-per-node, or type --device cpu."
            )
        own = self._torch.device("cuda", self._place)
        self._torch.cuda.set_device(own)
        return own

    def share(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Contiguous, and as large as that of the others, give or take a case."""
        return np.array_split(chosen, self.size)[self.rank]

    def every(self, items: Iterable[Found]) -> Iterable[Found]:
        """Every size-th of them."""
        return (item for place, item in enumerate(items) if place % self.size == self.rank)

    def add_up(self, tensor: Tensor) -> Tensor:
        """In one operation, on the device; the host goes on where that is a GPU."""
        with self._waiting():
            self._all.all_reduce(tensor)
        return tensor

    def begin_alike(self, tensors: Iterable[Tensor], seed: int) -> None:
        """The first process keeps its random numbers; the others' follow from the seed and their place."""
        with self._waiting():
            for tensor in tensors:
                self._all.broadcast(tensor, src=0)
        if not self.leads:
            own = np.random.SeedSequence([seed, self.rank]).generate_state(1, np.uint32)
            self._torch.manual_seed(int(own[0]))

    def gather(self, own: Tensor) -> Tensor:
        """In the order of the processes."""
        found = [self._torch.empty_like(own) for _ in range(self.size)]
        with self._waiting():
            self._all.all_gather(found, own)
        return self._torch.stack(found)

    def own(self, gathered: Tensor) -> Tensor:
        """At this process's place."""
        # Copied, because torch.set_rng_state reads a view from where its storage begins.
        return _of_number(gathered, self.size)[self.rank].clone()

    def any(self, *asked: bool) -> tuple[bool, ...]:
        """On the host, so that no device is waited for."""
        flags = self._torch.tensor(asked, dtype=self._torch.uint8)
        with self._waiting():
            self._all.all_reduce(flags, op=self._all.ReduceOp.MAX)
        return tuple(map(bool, flags.tolist()))

    def any_now_and_then(self, steps: int, *asked: bool) -> tuple[bool, ...]:
        """Asks after every eighth step.

        A flag that travels with the gradients would cost nothing on a CPU, but to read it would make the host
        wait for a GPU at every step.
        """
        return self.any(*asked) if steps % BETWEEN_QUESTIONS == 0 else (False,) * len(asked)

    @contextmanager
    def alike(self) -> Iterator[None]:
        """The message is that of the first process that fails, or of this one where it fails itself."""
        failure: TsattnError | None = None
        try:
            yield
        except TsattnError as error:
            failure = error
        found = self.gather(self._torch.from_numpy(_as_bytes(failure)))
        if failure is not None:
            raise failure
        for place, (code, *letters) in enumerate(found.tolist()):
            if code:
                message = bytes(letters).rstrip(b"\0").decode("utf-8", "ignore")
                raise KINDS[code](f"Process {place + 1} of {self.size}: {message}")

    def leave(self) -> None:
        """Not after a failure: then there may be nobody left to take leave of."""
        self._all.destroy_process_group()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Of a process that cannot be reached torch says so in a RuntimeError of many words."""
        try:
            yield
        except RuntimeError as error:
            raise ProcessLost(
                f"another of the {self.size} processes that train it together ended or cannot be reached; "
                "torchrun says which."
            ) from error


Company: TypeAlias = Alone | Together


def find_company(environment: Mapping[str, str] = os.environ) -> Company:
    """The processes that torchrun started this one with. ProcessLost where they cannot be reached."""
    if "TORCHELASTIC_RUN_ID" in environment and int(environment["WORLD_SIZE"]) > 1:
        return Together(environment)
    return Alone()


def _as_bytes(failure: TsattnError | None) -> NDArray[np.uint8]:
    """Exit code and message, in the same number of bytes always; zeros for no failure."""
    found = np.zeros(LONGEST, np.uint8)
    if failure is not None:
        content = bytes([failure.exit_code]) + str(failure).encode()
        found[: len(content)] = list(content[:LONGEST])
    return found


def _of_number(gathered: Tensor, size: int) -> Tensor:
    found = len(gathered)
    if found != size:
        raise InputError(
            f"This training was begun with {found} process{'es' if found > 1 else ''} and can go on only so, "
            f"not with {size}: random numbers and sums are kept for each. "
            + (f"Start {found} with torchrun." if found > 1 else "Leave torchrun away.")
        )
    return gathered

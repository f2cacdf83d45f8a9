"""What kind of model file a user wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tsattn.errors import InputError
from tsattn.export.opsets import DEFAULT_OPSET, check_opset

Dtype = Literal["fp32", "fp16", "int8"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What kind of file is wanted.

    data: the source whose series are compared and measured; the run's own where None.
    calibrate: the source that tells int8 the ranges of values, and a temperature where the run held no case
        out. max_drop: percentage points of accuracy that a smaller type may cost.
    temperature: whether one is fitted. unknown_below: see `ModelCard`.
    """

    dtype: Dtype = "fp32"
    opset: int = DEFAULT_OPSET
    data: str | None = None
    calibrate: str | None = None
    max_drop: float = 0.5
    temperature: bool = False
    unknown_below: float = 0.0

    def __post_init__(self) -> None:
        check_opset(self.opset)
        if self.calibrate is not None and self.dtype != "int8" and not self.temperature:
            raise InputError(
                f"--calibrate {self.calibrate}: what is calibrated are ranges for --dtype int8 and "
                "--temperature. Type one of them too, or leave --calibrate away."
            )
        if not 0 <= self.unknown_below < 1:
            raise InputError(f"--unknown-below {self.unknown_below:g}: a probability below 1 was expected.")

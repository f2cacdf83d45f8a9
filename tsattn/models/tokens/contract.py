"""The contract of token stages: how a standardised series becomes the tokens that attention works on.

A stage maps x (B, C, T), zero where not observed, and `observed` (B, T), True where at least one
channel has a value, or None where every timepoint is, to tokens (B, N, width) and `observed`
(B, N) of the tokens or None. The content and amount of what is not observed never reach an
observed token: it is zero before every convolution, as what lies outside the series is.
"""

from __future__ import annotations

from torch import Tensor, nn


class TokenStage(nn.Module):
    """Base of all token stages; the module's docstring is the contract of `forward`."""

    stride: int = 1
    """Timepoints from the start of a token to that of the next; the first token starts at the first."""

    def forward(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(B, N, width) and (B, N) or None, from (B, C, T) and (B, T) or None."""
        raise TypeError(f"{type(self).__name__} has no forward")

"""Wrappers that change queries, keys or values at full length. Letters as in contract.py."""

from __future__ import annotations

from torch import Tensor, nn

from tsattn.models.attention.contract import BuildInner, Heads, Mechanism
from tsattn.models.attention.registry import wrapper


@wrapper(
    "conv",
    summary="depthwise convolution over time on queries and keys (default kernel 3)",
    cost="unchanged",
    source="convolution in the primal, Nguyen et al. 2023",
    option="kernel",
    needs_all_keys=True,
)
class Convolved(Mechanism):
    """inner(conv(q), conv(k), v): a depthwise convolution over time, at first the identity.

    What is not observed enters the convolution as zero, as does what lies outside the series.
    """

    def __init__(self, heads: Heads, inner: BuildInner, option: str | None = None) -> None:
        super().__init__()
        kernel = 3 if option is None else int(option) if option.isdecimal() else 0
        if kernel % 2 == 0:
            raise ValueError(f"the kernel must be an odd number of timepoints, not '{option}'")
        self.inner = inner(heads)
        features = heads.count * heads.dim
        self.q_conv = nn.Conv1d(features, features, kernel, padding=kernel // 2, groups=features)
        self.k_conv = nn.Conv1d(features, features, kernel, padding=kernel // 2, groups=features)
        for conv in (self.q_conv, self.k_conv):
            nn.init.dirac_(conv.weight, groups=features)
            nn.init.zeros_(conv.bias)  # type: ignore[arg-type]

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        if observed is not None:
            seen = observed[:, None, :, None]
            q, k = q * seen, k * seen
        return self.inner(_over_time(self.q_conv, q), _over_time(self.k_conv, k), v, observed)


@wrapper(
    "twice",
    summary="applies what it wraps once more and takes (2A − A²) v, which keeps finer detail",
    cost="times 2",
    source="Abdullaev, Nguyen 2025 (twicing attention)",
    needs_all_keys=True,
)
class Twice(Mechanism):
    """2 A v − A (A v), A being what is wrapped; queries and keys have to be the same timepoints."""

    def __init__(self, heads: Heads, inner: BuildInner) -> None:
        super().__init__()
        self.inner = inner(heads)
        self.ignores_key_shift = self.inner.ignores_key_shift

    def forward(self, q: Tensor, k: Tensor, v: Tensor, observed: Tensor | None) -> Tensor:
        once = self.inner(q, k, v, observed)
        return 2 * once - self.inner(q, k, once, observed)


def _over_time(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """Applies a convolution over all heads' features to (B, H, S, D)."""
    batch, heads, length, dim = x.shape
    features = x.transpose(2, 3).reshape(batch, heads * dim, length)
    return conv(features).reshape(batch, heads, dim, length).transpose(2, 3)

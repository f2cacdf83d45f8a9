"""Attention chosen by a word: one contract, few mechanisms, many combinations.

Importing this package registers every mechanism that tsattn brings.
"""

from tsattn.models.attention import batch_normalised, cores, scaled, sparse, wrappers
from tsattn.models.attention.contract import Heads, Mechanism
from tsattn.models.attention.registry import Spec, build, parse, parts

__all__ = [
    "Heads",
    "Mechanism",
    "Spec",
    "batch_normalised",
    "build",
    "cores",
    "parse",
    "parts",
    "scaled",
    "sparse",
    "wrappers",
]

"""Functions of pyarrow.compute without the cost of importing it.

That module writes a documented wrapper for each of its three hundred functions while it is imported, which
takes longer than to read most files. What the wrappers call is public there and stands in pyarrow._compute.
"""

from __future__ import annotations

from typing import Any

try:
    from pyarrow._compute import CastOptions, call_function
except ImportError:  # should it move: the same two, at their price
    from pyarrow.compute import CastOptions, call_function


def cast(cells: Any, kind: Any) -> Any:
    """The Arrow array as another type. pyarrow.ArrowInvalid for a cell that cannot be exactly that."""
    return call_function("cast", [cells], CastOptions(kind))


def call(function: str, *arrays: Any) -> Any:
    """Any other function of pyarrow.compute that takes no options, by its name."""
    return call_function(function, list(arrays))

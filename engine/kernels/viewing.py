"""Arrays in another shape, where that takes no copy."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


def viewed(a: Array, shape: tuple[int, ...]) -> Array | None:
    """A view of a in another shape, one length of which may be -1; None if it does not lie in memory so."""
    try:
        return a.reshape(shape, copy=False)
    except ValueError:
        return None

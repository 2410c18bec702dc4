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


def flat_view(block: Array, width: int) -> Array | None:
    """(n, g, c, *T) as (n, g, c, T) if that is a view that BLAS can take as it is."""
    if block.flags.c_contiguous:
        # Most are, and to try takes twice as long.
        return block.reshape(*block.shape[:3], width)
    flat = viewed(block, (*block.shape[:3], width))
    if flat is None:
        return None
    return flat if flat.itemsize in flat.strides[2:] or width == 1 else None

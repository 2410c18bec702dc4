"""Scratch whose planes do not share the lines of the first-level cache.

Where planes lie a multiple of 1 KiB apart, as those of maps of 32×32 numbers do, the same place of
each of them has one of four of the cache's sets, or the same one. Whatever goes through many planes
place by place then loses each line before it has come to the line's next number. An odd number of
lines from plane to plane spreads them over all sets.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import LINE

Array = NDArray[Any]

READ = 1 << 10
"""Bytes, of a multiple of which planes are that are slow to read place by place."""

WRITTEN = 1 << 11
"""Bytes, of a multiple of which planes are that are slow to write place by place."""


def spaced(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    shared: int,
    take: Callable[[tuple[int, ...], np.dtype[Any]], Array],
    planes: int = 1,
) -> Array:
    """An array of `shape`, whose first `planes` axes count planes, out of what `take` gives.

    Each plane is consecutive. Those of a multiple of `shared` bytes, READ or WRITTEN, lie at most an eighth
    further apart than they are long, all others close together.
    """
    size = prod(shape[planes:])
    apart = pitch(size, dtype.itemsize, shared)
    if apart == size:
        return take(shape, dtype)
    return take((*shape[:planes], apart), dtype)[..., :size].reshape(shape, copy=False)


def pitch(size: int, itemsize: int, shared: int) -> int:
    """Numbers from one such plane of `size` numbers to the next."""
    return size if not size or size * itemsize % shared else size + LINE // itemsize

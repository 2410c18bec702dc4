"""Numbers placed in planes by flat positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def scatter_indices(indices: Array, dy: Array, dx: Array) -> None:
    """Add dy (n, c, *P) to the positions `indices` of the planes dx (n, c, *S); -1 adds nothing."""
    where, kept = linear(indices, dx)
    np.add.at(flat(dx), where, dy if kept is None else dy[kept])


def linear(indices: Array, planes: Array) -> tuple[Array, Array | None]:
    """Flat positions in the memory of `planes` (n, c, *S) for indices (n, c, *P) into each plane.

    Indices of -1 are left out; then the second value is the mask of those kept. `planes` must have
    its spatial axes adjacent in memory, as both layouts have.
    """
    n, c, s = (stride // planes.itemsize for stride in (*planes.strides[:2], planes.strides[-1]))
    tail = (1,) * (indices.ndim - 2)
    samples = np.arange(planes.shape[0]).reshape(-1, 1, *tail) * n
    channels = np.arange(planes.shape[1]).reshape(1, -1, *tail) * c
    where = indices * s + (samples + channels)
    if indices.size == 0 or indices.min() >= 0:
        return where, None
    kept = indices >= 0
    return where[kept], kept


def flat(planes: Array) -> Array:
    """All memory from the first to the last element of `planes`, as one axis."""
    span = sum(
        (size - 1) * stride for size, stride in zip(planes.shape, planes.strides, strict=True)
    )
    size = span // planes.itemsize + 1 if planes.size else 0
    return np.lib.stride_tricks.as_strided(planes, (size,), (planes.itemsize,))

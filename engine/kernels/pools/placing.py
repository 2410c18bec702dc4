"""Numbers placed in planes by flat positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena

Array = NDArray[Any]


def scatter_indices(indices: Array, dy: Array, dx: Array, arena: Arena | None = None) -> None:
    """Add dy (n, c, *P) to the positions `indices` of the planes dx (n, c, *S); -1 adds nothing.

    `arena` has room for as many positions, where some of this thread's scratch is free.
    """
    where, kept = linear(indices, dx, arena)
    values = in_order(dy, dx)
    # Along one axis, and in memory's order, NumPy adds five times as fast.
    np.add.at(flat(dx), where, values if kept is None else values[kept])


def last(planes: Array) -> bool:
    """Whether the channels of planes (n, c, *S) come last in memory."""
    return planes.strides[1] < planes.strides[-1]


def in_order(a: Array, planes: Array) -> Array:
    """`a` (n, c, *P) as one axis, in the memory order of the planes: a copy where it lies in another."""
    return (np.moveaxis(a, 1, -1) if last(planes) else a).reshape(-1)


def out_of_order(a: Array, shape: tuple[int, ...], planes: Array) -> Array:
    """The view (n, c, p) of what `in_order` made of numbers of that shape."""
    n, c, positions = shape
    return np.moveaxis(a.reshape(n, positions, c), -1, 1) if last(planes) else a.reshape(shape)


def linear(indices: Array, planes: Array, arena: Arena | None = None) -> tuple[Array, Array | None]:
    """Flat positions in the memory of `planes` (n, c, *S) for indices (n, c, *P) into each plane.

    They are one axis, `in_order`. Indices of -1 are left out; then the second value is the mask of those
    kept. `planes` must have its spatial axes adjacent in memory, as both layouts have. With an `arena`,
    positions lie there.
    """
    n, c, s = (stride // planes.itemsize for stride in (*planes.strides[:2], planes.strides[-1]))
    tail = (1,) * (indices.ndim - 2)
    samples = np.arange(planes.shape[0]).reshape(-1, 1, *tail) * n
    channels = np.arange(planes.shape[1]).reshape(1, -1, *tail) * c
    room = _room(indices, planes, arena)
    if s == 1:
        np.add(indices, samples + channels, out=room)
    else:
        np.multiply(indices, s, out=room)
        room += samples + channels
    where = in_order(room, planes)
    if indices.size == 0 or indices.min() >= 0:
        return where, None
    kept = in_order(indices >= 0, planes)
    return where[kept], kept


def _room(indices: Array, planes: Array, arena: Arena | None) -> Array:
    """An array (n, c, *P) in the memory order of the planes."""
    n, c, *positions = indices.shape
    shape = (n, *positions, c) if last(planes) else indices.shape
    whole = np.empty(shape, np.int64) if arena is None else arena.take(shape, np.dtype(np.int64))
    return np.moveaxis(whole, -1, 1) if last(planes) else whole


def flat(planes: Array) -> Array:
    """All memory from the first to the last element of `planes`, as one axis."""
    span = sum(
        (size - 1) * stride for size, stride in zip(planes.shape, planes.strides, strict=True)
    )
    size = span // planes.itemsize + 1 if planes.size else 0
    return np.lib.stride_tricks.as_strided(planes, (size,), (planes.itemsize,))

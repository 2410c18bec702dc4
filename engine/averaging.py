"""Sums over windows divided by a count, and the adjoint: what both average pools run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from engine.geometry import Tile
from engine.kernels.pooling import for_each_plane, slices, spread, tile_sum
from engine.layouts import channels_first
from engine.pool import Geometry

Array = NDArray[Any]
Divisor = Callable[[Tile], Array]


def average(geometry: Geometry, divisor: Divisor, x: Array, y: Array) -> None:
    """Write y, the sums over windows of x divided tile by tile; both in their own layout."""
    pooling = geometry.pooling
    x, y = (channels_first(a, geometry.channels_last) for a in (x, y))

    def planes(n: slice, c: slice) -> None:
        for tile in pooling.tiles():
            sums = tile_sum(pooling, x[n, c], tile)
            y[(n, c, *slices(tile))] = sums / divisor(tile).astype(y.dtype)

    for_each_plane(pooling, x.shape[0], planes)


def average_backward(geometry: Geometry, divisor: Divisor, dy: Array, dx: Array) -> None:
    """Write dx, the adjoint of `average`."""
    pooling = geometry.pooling
    dy, dx = (channels_first(a, geometry.channels_last) for a in (dy, dx))

    def planes(n: slice, c: slice) -> None:
        dx[n, c] = 0
        for tile in pooling.tiles():
            g = dy[(n, c, *slices(tile))] / divisor(tile).astype(dx.dtype)
            spread(pooling, g, tile, dx[n, c])

    for_each_plane(pooling, dx.shape[0], planes)

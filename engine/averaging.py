"""Sums over windows divided by a count, and the adjoint: what both average pools run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Tile
from engine.kernels.nan import settle
from engine.kernels.plane_sums import mirrored, spread, tile_sum
from engine.kernels.pooling import Planes, blocks, for_each_block, for_each_plane, slices
from engine.kernels.windows import whole
from engine.layouts import channels_first
from engine.pool import Geometry

Array = NDArray[Any]
Divisor = Callable[[Tile], Array]


def average(geometry: Geometry, divisor: Divisor, x: Array, y: Array) -> None:
    """Write y, the sums over windows of x divided tile by tile; both in their own layout."""
    pooling = geometry.pooling
    x, y = (channels_first(a, geometry.channels_last) for a in (x, y))

    cut, blocked = blocks(pooling, x.shape[0], x.itemsize)
    tiles = [(tile, divisor(tile).astype(y.dtype)) for tile in cut]

    def block(planes: Planes, part: tuple[Tile, Array]) -> None:
        tile, count = part
        sums = tile_sum(pooling, x[planes], tile)
        target = y[(*planes, *slices(tile))]
        np.divide(sums, count, out=target)
        settle(target)

    for_each_block(pooling, x.shape[0], product(blocked, tiles), block)


def average_backward(geometry: Geometry, divisor: Divisor, dy: Array, dx: Array) -> None:
    """Write dx, the adjoint of `average`."""
    pooling = geometry.pooling
    dy, dx = (channels_first(a, geometry.channels_last) for a in (dy, dx))

    mirror = mirrored(pooling)
    if mirror is not None:
        cut, blocked = blocks(mirror, dx.shape[0], dx.itemsize)
        # A part of a plane would need quotients from around it.
        if len(cut) == 1:
            counts = divisor(tuple((0, axis.out) for axis in pooling.axes)).astype(dx.dtype)

            def summed(n: slice, c: slice) -> None:
                target = dx[n, c]
                target[...] = tile_sum(mirror, dy[n, c] / counts, cut[0])
                settle(target)

            for_each_block(pooling, dx.shape[0], blocked, summed)
            return
    tiles = [(tile, divisor(tile).astype(dx.dtype)) for tile in pooling.tiles()]
    copied = all(map(whole, pooling.axes))

    def planes(n: slice, c: slice) -> None:
        for tile, count in tiles:
            g = dy[(n, c, *slices(tile))] / count
            if copied:
                settle(g)
            spread(pooling, g, tile, dx[n, c])
        if not copied:
            settle(dx[n, c])

    for_each_plane(pooling, dx.shape[0], planes)

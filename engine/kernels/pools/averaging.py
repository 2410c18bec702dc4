"""Sums over the windows of planes, each divided by a number that no input tells, and the adjoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Tile, as_slices
from engine.kernels.nan import settle
from engine.kernels.pools.fitting import blocks
from engine.kernels.pools.plane_sums import mirrored, plane_sum, tile_sum
from engine.kernels.pools.pooling import (
    BLOCK,
    Planes,
    Pooling,
    for_each_block,
    for_each_plane,
)
from engine.kernels.pools.spreading import tile_sum_adjoint
from engine.kernels.pools.windows import even_size
from engine.threads import check_stop

Array = NDArray[Any]

Divisor = Callable[[Tile], Array]
"""What the sums of a tile are divided by, broadcast to (*T)."""

FEW = 32
"""Counts that are rather divided by than compared."""


def write_averages(p: Pooling, divisor: Divisor, x: Array, y: Array) -> None:
    """Write y (N, C, *P), the sums over windows of x (N, C, *S) divided tile by tile."""
    if p.is_global:
        # Nothing is cut but planes from planes; to plan tiles takes as long as a small map.

        def plane(n: slice, c: slice) -> None:
            y[n, c] = plane_sum(x[n, c], p.channels_last)

        for_each_block(p, len(x), p.plane_blocks(len(x), together=True), plane)
        y /= divisor(((0, 1),) * len(p.axes)).astype(y.dtype)
        settle(y)
        return

    cut, blocked = blocks(p, x.shape[0], x.itemsize)
    divisors = _divisors(divisor, cut, y.dtype)

    def block(tile: Tile, planes: Planes) -> None:
        count = divisors(tile)
        sums = tile_sum(p, x[planes], tile)
        target = y[(*planes, *as_slices(tile))]
        np.divide(sums, count, out=target)
        settle(target)

    # Tile by tile: few of a large plane's divisors are kept.
    for_each_block(p, x.shape[0], product(cut, blocked), block)


def write_averages_adjoint(p: Pooling, divisor: Divisor, dy: Array, dx: Array) -> None:
    """Write dx (N, C, *S), the adjoint of `write_averages`, from dy (N, C, *P)."""
    mirror = mirrored(p)
    if mirror is not None:
        cut, blocked = blocks(mirror, dx.shape[0], dx.itemsize)
        # A part of a plane would need quotients from around it.
        if len(cut) == 1:
            counts = divisor(tuple((0, axis.out) for axis in p.axes)).astype(dx.dtype)

            def summed(n: slice, c: slice) -> None:
                target = dx[n, c]
                target[...] = tile_sum(mirror, dy[n, c] / counts, cut[0])
                settle(target)

            for_each_block(p, dx.shape[0], blocked, summed)
            return
    apart = all(map(even_size, p.axes))
    tiles = list(p.tiles(copied=not apart))
    divisors = _divisors(divisor, tiles, dx.dtype)

    def planes(n: slice, c: slice) -> None:
        for tile in tiles:
            check_stop()
            g = dy[(n, c, *as_slices(tile))] / divisors(tile)
            if apart:
                settle(g)
            tile_sum_adjoint(p, g, tile, dx[n, c])
        if not apart:
            settle(dx[n, c])

    # Where tiles are several, each has numbers of its own for all inputs of its windows.
    joined = p.joined if len(tiles) == 1 else 1
    for_each_plane(p, dx.shape[0], planes, joined, copied=not apart)


def members(counts: Iterable[Array]) -> Array:
    """The members of each window of a tile, from those along each axis: broadcast to (*T).

    Along an axis of many equal counts there is one.
    """
    total = np.ones((), np.int64)
    for count in counts:
        total = total[..., None] * (
            count[:1] if len(count) > FEW and (count == count[0]).all() else count
        )
    return total


def _divisors(divisor: Divisor, tiles: Sequence[Tile], dtype: np.dtype[Any]) -> Divisor:
    """Divisors as numbers of a dtype, those of as many tiles kept as have a block of them at most."""
    if len(tiles) == 1:
        only = divisor(tiles[0]).astype(dtype)
        return lambda _: only
    largest = max(prod(hi - lo for lo, hi in tile) for tile in tiles)

    @lru_cache(maxsize=max(1, BLOCK // largest))
    def made(tile: Tile) -> Array:
        return divisor(tile).astype(dtype)

    return made

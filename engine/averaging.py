"""Sums over windows divided by a count, and the adjoint: what both average pools are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Tile
from engine.kernels.nan import settle
from engine.kernels.pools.fitting import blocks
from engine.kernels.pools.plane_sums import mirrored, plane_sum, spread, tile_sum
from engine.kernels.pools.pooling import (
    BLOCK,
    Planes,
    for_each_block,
    for_each_plane,
    slices,
)
from engine.kernels.pools.windows import even_size
from engine.layouts import channels_first
from engine.plans import Plan
from engine.pool import Geometry, Pool
from engine.threads import check_stop

Array = NDArray[Any]
Divisor = Callable[[Tile], Array]

FEW = 32
"""Counts that are rather divided by than compared."""


class Averaging(Pool):
    """A pool whose outputs are sums over windows, each divided by a number that no input tells."""

    @abstractmethod
    def divisor(self, plan: Plan, tile: Tile) -> Array:
        """What the sums of a tile are divided by, broadcast to (*T)."""

    def settles(self, plan: Plan, name: str) -> bool:  # noqa: ARG002
        return True

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        average(plan.geometry, partial(self.divisor, plan), given["x"], out["y"])

    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        average_backward(plan.geometry, partial(self.divisor, plan), given["dy"], dx)


def average(geometry: Geometry, divisor: Divisor, x: Array, y: Array) -> None:
    """Write y, the sums over windows of x divided tile by tile; both in their own layout."""
    pooling = geometry.pooling
    x, y = (channels_first(a, geometry.channels_last) for a in (x, y))
    if pooling.is_global:
        # Nothing is cut but planes from planes; to plan tiles takes as long as a small map.

        def plane(n: slice, c: slice) -> None:
            y[n, c] = plane_sum(x[n, c], geometry.channels_last)

        for_each_block(pooling, len(x), pooling.plane_blocks(len(x), together=True), plane)
        y /= divisor(((0, 1),) * len(pooling.axes)).astype(y.dtype)
        settle(y)
        return

    cut, blocked = blocks(pooling, x.shape[0], x.itemsize)
    divisors = _divisors(divisor, cut, y.dtype)

    def block(tile: Tile, planes: Planes) -> None:
        count = divisors(tile)
        sums = tile_sum(pooling, x[planes], tile)
        target = y[(*planes, *slices(tile))]
        np.divide(sums, count, out=target)
        settle(target)

    # Tile by tile: few of a large plane's divisors are kept.
    for_each_block(pooling, x.shape[0], product(cut, blocked), block)


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
    apart = all(map(even_size, pooling.axes))
    tiles = list(pooling.tiles(copied=not apart))
    divisors = _divisors(divisor, tiles, dx.dtype)

    def planes(n: slice, c: slice) -> None:
        for tile in tiles:
            check_stop()
            g = dy[(n, c, *slices(tile))] / divisors(tile)
            if apart:
                settle(g)
            spread(pooling, g, tile, dx[n, c])
        if not apart:
            settle(dx[n, c])

    # Where tiles are several, each has numbers of its own for all inputs of its windows.
    joined = pooling.joined if len(tiles) == 1 else 1
    for_each_plane(pooling, dx.shape[0], planes, joined, copied=not apart)


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

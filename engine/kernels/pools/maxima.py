"""Maxima over the windows of planes, where they stand, and the way of their gradient back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena
from engine.geometry import Axis, Tile, Windows, as_slices
from engine.kernels.nan import settle
from engine.kernels.patches import inside, within
from engine.kernels.pools import ahead, argmaxima, handing, seeking, squares, tracing
from engine.kernels.pools.fitting import argmax_blocks, blocks, winner_blocks
from engine.kernels.pools.placing import scatter_indices
from engine.kernels.pools.pooling import (
    RUN_BLOCKS,
    Blocks,
    Planes,
    Pooling,
    canonical,
    clear,
    for_each_block,
    for_each_plane,
    reduced_along,
    stored,
)
from engine.kernels.pools.windows import taps_between, window_argmax, window_max
from engine.kernels.pools.winners import reduced
from engine.threads import check_stop

Array = NDArray[Any]

LEAST_PLANE = 48
"""Numbers of a plane from which its maximum is found in one pass: NumPy begins anew for each plane."""


def write_maxima(
    p: Pooling,
    x: Array,
    y: Array,
    indices: Array | None,
    *,
    positions: bool,
    zeros: bool = False,
) -> None:
    """Write the maxima y (N, C, *P) of the planes x (N, C, *S), and where they stand to `indices`.

    Where a maximum is 0 and stands at zeros of both signs, looking for `positions` may find another of them
    than maxima alone. So the sign of a zero in y may change with `positions`, but never with whether
    `indices` are wanted at this time. With `zeros`, padding holds 0 and takes part in the maximum.
    """
    tiles, cut = (argmax_blocks if positions else blocks)(p, x.shape[0], x.itemsize)

    def block(planes: Planes, tile: Tile) -> None:
        place = (*planes, *as_slices(tile))
        found = None
        if positions:
            y[place], found = tile_argmax(p, x[planes], tile)
        else:
            tile_max(p, x[planes], tile, y[place])
        if zeros:
            admit_zeros(p, tile, y[place], found)
        settle(y[place])
        if indices is not None:
            indices[place] = found

    for_each_block(p, x.shape[0], product(cut, tiles), block)


def write_routed(p: Pooling, x: Array, dy: Array, dx: Array) -> None:
    """Write to dx (N, C, *S) the gradient dy of the maxima of x, the first of equal ones."""
    router = Router(p)
    tiles, cut = router.blocks(dx.shape[0], dx.itemsize)

    def block(planes: Planes, part: Sequence[Tile]) -> None:
        for tile in part:
            check_stop()
            router.route(x[planes], dy[planes], tile, dx[planes])
        # Of finite numbers no sum is NaN.
        if router.placing and not np.isfinite(dy[planes].sum()):
            settle(dx[planes])

    parts = [[tile] for tile in tiles] if router.apart else [tiles]
    for_each_block(p, dx.shape[0], product(cut, parts), block)


def write_contested(
    p: Pooling, x: Array, dy: Array, dx: Array, *, zeros: bool, shared: bool
) -> None:
    """Write to dx (N, C, *S) the gradient dy of the maxima of x, to one of equal ones or to each.

    Where maxima are `shared`, each of several equal ones gets all of it, else the first. With `zeros`,
    padding holds 0 and takes part in the maximum; what it wins goes nowhere.
    """
    tiles, cut = argmax_blocks(p, dx.shape[0], dx.itemsize)

    def planes(n: slice, c: slice) -> None:
        dx[n, c] = 0
        for tile in tiles:
            check_stop()
            upstream = dy[(n, c, *as_slices(tile))]
            if shared:
                add_to_ties(p, x[n, c], upstream, tile, dx[n, c], zeros)
            else:
                best, found = tile_argmax(p, x[n, c], tile)
                if zeros:
                    admit_zeros(p, tile, best, found)
                scatter_indices(found, upstream, dx[n, c])
        settle(dx[n, c])

    for_each_block(p, dx.shape[0], cut, planes)


def write_scattered(p: Pooling, indices: Array, dy: Array, dx: Array) -> None:
    """Write to dx (N, C, *S) the gradient dy of maxima whose positions are known."""
    tiles = [as_slices(tile) for tile in p.tiles()]

    def planes(n: slice, c: slice) -> None:
        dx[n, c] = 0
        for tile in tiles:
            check_stop()
            scatter_indices(indices[n, c, *tile], dy[n, c, *tile], dx[n, c], Arena())
        if not np.isfinite(dy[n, c].sum()):
            settle(dx[n, c])

    for_each_plane(p, dx.shape[0], planes)


def tile_max(p: Pooling, x: Array, tile: Tile, y: Array) -> None:
    """Write the maxima y (n, c, *T) of a tile of the planes x (n, c, *S)."""
    if axes := p.overlapping_axes:
        best = reduced(np.maximum, -np.inf, stored(p, x), axes, tile)
        np.copyto(y, canonical(p, best))
        return
    if p.is_global and not p.channels_last and p.stage_values >= LEAST_PLANE:
        np.maximum.reduce(
            x.reshape(*x.shape[:2], -1), axis=2, out=y.reshape(y.shape[:2], copy=False)
        )
        return
    if p.tapped_axes and len(p.axes) > 1 and ahead.pays(stored(p, x)):
        ahead.read(x[within(as_slices(p.read(tile)))])
    reduced_along(window_max, p, x, tile, out=y)


def tile_argmax(p: Pooling, x: Array, tile: Tile) -> tuple[Array, Array]:
    """Maxima of a tile and their flat row-major positions in the plane; -1 for an empty window.

    Among equal maxima the first in row-major order; among NaNs too.
    """
    if argmaxima.suits(p):
        return argmaxima.argmaxima(p, x, tile)
    if axes := tracing.suits(p) or p.tapped_axes:
        return tracing.traced(p, axes, x, tile)
    if seeking.suits(p, tile):
        values, positions = seeking.sought(p, x, tile)
    else:
        values, positions = _along(p, x, tile)
    for axis, (windows, (lo, hi)) in enumerate(zip(p.axes, tile, strict=True)):
        positions[(slice(None),) * (2 + axis) + (_empty(windows, lo, hi),)] = -1
    return values, positions


def _along(p: Pooling, x: Array, tile: Tile) -> tuple[Array, Array]:
    """Maxima and positions of a tile, all windows along an axis at once; any for windows without inputs."""
    read = p.read(tile)
    values = x[within(as_slices(read))]
    positions: Array = np.zeros((), np.int64)
    step = 1
    for axis in reversed(range(len(p.axes))):
        lo, hi = read[axis]
        place = np.arange(lo, hi) * step
        positions = positions + place.reshape(-1, *(1,) * (len(p.axes) - 1 - axis))
        windows, span = p.axes[axis], tile[axis]
        values, positions = window_argmax(values, positions, 2 + axis, windows, span, lo)
        step *= windows.size
    return values, positions


def _empty(windows: Windows, lo: int, hi: int) -> Array:
    """The outputs, counted from lo, whose windows hold no input."""
    if not isinstance(windows, Axis):
        return np.zeros(0, np.int64)
    return np.flatnonzero(taps_between(windows, lo, hi, 0, windows.size) == 0)


class Router:
    """Hands the gradient of maxima to the inputs that won them.

    What the pooling fixes is worked out once for a call. Tiles that are `apart` write to inputs of their
    own only; others are to come in their order. It is `placing` where positions of maxima are worked out.
    """

    def __init__(self, p: Pooling) -> None:
        self._pooling = p
        self._handed = None if tracing.suits(p) else p.tapped_axes
        self.placing = self._handed is None
        self.apart = p.channel_run_axes is not None and not self.placing
        self._square = None if self.placing else _square(p)
        self._squares: dict[Tile, squares.Part] = {}
        self._parts: dict[tuple[Tile, int], handing.Part] = {}

    def blocks(self, samples: int, itemsize: int) -> Blocks:
        """Blocks for `route`."""
        p = self._pooling
        if self._square:
            cut = p.tiles(RUN_BLOCKS if p.channels_last else 1, copied=True)
            return list(cut), list(p.plane_blocks(samples, copied=True))
        if self.placing:
            return argmax_blocks(p, samples, itemsize)
        return winner_blocks(p, samples, itemsize, handing.room)

    def route(self, x: Array, dy: Array, tile: Tile, dx: Array) -> None:
        """Write the gradient dy (n, c, *P) of all maxima to those inputs of dx (n, c, *S) that a tile owns.

        The first input that equals a maximum gets it.
        """
        p = self._pooling
        if self._handed is None:
            clear(p, tile, dx)
            scatter_indices(tile_argmax(p, x, tile)[1], dy[within(as_slices(tile))], dx)
            return
        x, dy, dx = stored(p, x), stored(p, dy), stored(p, dx)
        if self._square:
            if tile not in self._squares:
                self._squares[tile] = squares.part_of(self._square, tile)
            if squares.hand(x, dy, self._squares[tile], dx):
                return
        key = tile, x.shape[-1]
        if key not in self._parts:
            self._parts[key] = handing.part_of(self._handed, *key)
        handing.hand(x, dy, self._parts[key], dx)


def _square(p: Pooling) -> tuple[Axis, ...] | None:
    """The axes, if windows are two by two, and numbers of a row or all channels are a long run."""
    axes = p.channel_run_axes if p.channels_last else p.tapped_axes
    return axes if axes and squares.suits(axes) else None


def add_to_ties(
    p: Pooling, x: Array, dy: Array, tile: Tile, dx: Array, zeros: bool = False
) -> None:
    """Add the gradient dy (n, c, *T) of a tile's maxima to every input that equals its maximum.

    With `zeros`, padding holds 0 and takes part in the maximum.
    """
    axes = p.fixed_axes
    best = np.empty_like(x, shape=dy.shape)
    tile_max(p, x, tile, best)
    if zeros:
        admit_zeros(p, tile, best)
    nan = np.isnan(best)
    for tap in np.ndindex(*(axis.kernel for axis in axes)):
        check_stop()
        found = [inside(a, t, lo, hi) for a, t, (lo, hi) in zip(axes, tap, tile, strict=True)]
        to = within(slice(s - lo, e - lo) for (s, e, _), (lo, _) in zip(found, tile, strict=True))
        of = within(i for _, _, i in found)
        hit = (x[of] == best[to]) | (np.isnan(x[of]) & nan[to])
        dx[of] += np.where(hit, dy[to], 0)


def admit_zeros(p: Pooling, tile: Tile, best: Array, found: Array | None = None) -> None:
    """Let padding of zeros take part in a tile's maxima, in place.

    Where a zero of the padding wins, the maximum is 0 and its position -1. It wins over smaller
    values, and over an input of 0 where it comes first in row-major order of the window.
    """
    never = np.iinfo(np.int64).max
    first: Array = np.full((), never)
    place: Array | int = 0
    later = plane = 1
    for i, (axis, (lo, hi)) in reversed(list(enumerate(zip(p.fixed_axes, tile, strict=True)))):
        tail = (1,) * (len(tile) - 1 - i)
        start = np.arange(lo, hi) * axis.stride - axis.low
        beyond = np.maximum(-(-(axis.size - start) // axis.dilation), 0)
        # Taps below the input come first; those above it count while they are padding.
        above = (beyond < axis.kernel) & (start + beyond * axis.dilation < axis.size + axis.high)
        tap = np.where(start < 0, 0, np.where(above, beyond * later, never))
        first = np.minimum(tap.reshape(-1, *tail), first)
        if found is not None:
            offset = found // plane % axis.size - start.reshape(-1, *tail)
            place = place + offset // axis.dilation * later
        later, plane = later * axis.kernel, plane * axis.size
    wins = (first < never) & (best < 0)
    if found is not None:
        found[wins | ((best == 0) & (found >= 0) & (first < place))] = -1
    best[wins] = 0

"""Sums over planes and over their windows, and the adjoint of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.geometry import Axis, Tile, as_slices
from engine.kernels.patches import within
from engine.kernels.pools.pooling import (
    Pooling,
    canonical,
    clear,
    reduced_along,
    stored,
)
from engine.kernels.pools.reducing import RUN_STEP
from engine.kernels.pools.windows import even_size, short, window_sum, window_sum_adjoint
from engine.kernels.pools.winners import reduced
from engine.kernels.row_sums import sums_over_rows

Array = NDArray[Any]

REPEATED = 4
"""Inputs of windows that are alike, below which NumPy repeats numbers sooner than it broadcasts them."""

REPEATED_IN_ROW = 7
"""Inputs of such windows across, below which one copy for each, to places that far apart, is sooner still."""

RUN = 32
"""Channels of a position, where they come last, from which they are copied well at a time."""

PLANE_PART = 1 << 10
"""Numbers of a plane that are added up before their sum is added to others: so few that a block has
more than 500 sums, since below that NumPy's products keep the interpreter's lock from other threads.
"""

LEAST = 4
"""Numbers of a row in a window from which rows are added up first, in vectors; fewer are added in vectors
along a row too."""

SHORT = 256
"""Numbers below which they are rather rows of a product: a call of BLAS for each takes as long."""


def tile_sum(
    p: Pooling, x: Array, tile: Tile, prepare: Callable[[Array], Array] | None = None
) -> Array:
    """Sums (n, c, *T) over windows of `prepare` applied to the planes x (n, c, *S).

    They may lie in the scratch. `prepare` leaves 0 as it is.
    """
    if p.is_global:
        return plane_sum(x if prepare is None else prepare(x), p.channels_last)
    if axes := p.overlapping_axes:
        return canonical(p, reduced(np.add, 0, stored(p, x), axes, tile, prepare))
    rows = even_size(p.axes[-1]) >= LEAST
    step = partial(window_sum, last=p.channels_last)
    return reduced_along(step, p, x, tile, prepare, in_order=rows)


def plane_sum(values: Array, channels_last: bool) -> Array:
    """The sum of each plane (n, c, *S), as (n, c, 1, ...).

    Strides would not do for `channels_last`: that of an axis of one number may depend on how many samples
    there are.
    """
    n, c, *sizes = values.shape
    alone = (1,) * len(sizes)
    if channels_last and c > 1:
        rows = values.transpose(0, *range(2, values.ndim), 1).reshape(n, prod(sizes), c)
        return sums_over_rows(rows).reshape(n, c, *alone)
    # Products with one: BLAS adds four vectors at a time, where NumPy waits for every addition.
    planes = values.reshape(*values.shape[:2], -1)
    size = planes.shape[2]
    ones = _ones(size, values.dtype)
    cut = size - size % len(ones)
    parts = planes[..., :cut].reshape(*planes.shape[:2], -1, len(ones))
    if len(ones) < SHORT:
        # One product for each sample, so that no sum depends on the samples beside it.
        rows = parts.reshape(len(parts), -1, len(ones))
        sums = np.add.reduce(np.matmul(rows, ones).reshape(parts.shape[:3]), axis=2)
    else:
        sums = np.add.reduce(np.vecdot(parts, ones), axis=2)
    if cut < size:
        sums += np.vecdot(planes[..., cut:], ones[: size - cut])
    return sums.reshape(n, c, *alone)


@lru_cache(maxsize=256)
def _ones(size: int, dtype: np.dtype[Any]) -> Array:
    """As many ones as a part has numbers: what is left over is another pass over memory, so nothing if
    it can be."""
    fewest = -(-size // PLANE_PART)
    even = (size // parts for parts in range(fewest, 2 * fewest) if size % parts == 0)
    ones = np.ones(next(even, min(size, PLANE_PART)), dtype)
    ones.flags.writeable = False
    return ones


def mirrored(p: Pooling) -> Pooling | None:
    """The windows whose sums over a gradient are the adjoint of sums over those of p; None if none are.

    Windows one apart are read by each input as they read inputs, in the other direction. Only where
    windows share inputs are sums quicker than `tile_sum_adjoint`.
    """
    axes = p.overlapping_axes
    if axes is None or any(axis.stride > 1 for axis in axes):
        return None
    pads = [(axis.extent - 1 - axis.low, axis.extent - 1 - axis.high) for axis in axes]
    if min(map(min, pads)) < 0:
        return None
    turned = (
        Axis(axis.out, axis.kernel, 1, axis.dilation, low, high, axis.size)
        for axis, (low, high) in zip(axes, pads, strict=True)
    )
    return replace(p, axes=tuple(turned))


@lru_cache(maxsize=256)
def _order(p: Pooling) -> tuple[int, ...]:
    """The axes in the order in which gradients are spread along them: the last passes over most numbers.

    So axes of more windows than inputs come first, and those of windows that are alike last, which take no
    call for each. Of others the outer ones come last, if rows of inputs are long runs.
    """
    inner = p.axes[-1].size * (p.channels if p.channels_last else 1)
    outwards = -1 if p.unlike and inner >= RUN_STEP else 1

    def rank(axis: int) -> tuple[bool, bool, int]:
        windows = p.axes[axis]
        return even_size(windows) > 0, windows.out <= windows.size, outwards * axis

    return tuple(sorted(range(len(p.axes)), key=rank))


def tile_sum_adjoint(p: Pooling, g: Array, tile: Tile, dx: Array) -> None:
    """The adjoint of `tile_sum`: inputs in dx (n, c, *S) get the gradient g (n, c, *T) of their windows.

    Windows that divide planes evenly share no input, and what dx held there is written over; what others
    give is added to what the tiles before have left. Tiles come in row-major order, and the first of them
    finds dx undefined.
    """
    target = dx[within(as_slices(p.read(tile)))]
    sizes = [even_size(axis) for axis in p.axes]
    if all(sizes):
        _spread(stored(p, g), sizes, stored(p, target))
        return
    alone = target.shape == dx.shape and all(
        hi - lo == axis.out for axis, (lo, hi) in zip(p.axes, tile, strict=True)
    )
    read = p.read(tile)
    *before, end = _order(p)
    for axis in before:
        g = window_sum_adjoint(g, 2 + axis, p.axes[axis], tile[axis], read[axis])
    # Sums that are made tap by tap pass over results as often, and these lie together by themselves.
    direct = alone and not short(p.axes[end]) and not 0 < sizes[end] < REPEATED
    found = window_sum_adjoint(
        g, 2 + end, p.axes[end], tile[end], read[end], dx if direct else None
    )
    if alone and not direct:
        np.copyto(dx, found)
    elif not alone:
        clear(p, tile, dx)
        target += found


def _spread(g: Array, sizes: Sequence[int], target: Array) -> None:
    """Write each number of g (*B, *T, I) to all inputs of its window in the target (*B, *S, I)."""
    *before, across = sizes
    *lead, count, inner = g.shape
    broken = across > 1 and count > 1 and inner < RUN
    if broken:
        # Rows first: NumPy begins anew for every few numbers of them that lie together.
        g = _in_rows(g, across)
        sizes = (*before, 1)
    axes = len(g.shape) - 1 - len(sizes)
    split = [n for pair in zip(g.shape[axes:-1], sizes, strict=True) for n in pair]
    members = target.reshape(*g.shape[:axes], *split, inner, copy=False)
    members[...] = g[(..., *[i for _ in sizes for i in (slice(None), None)], slice(None))]


def _in_rows(g: Array, size: int) -> Array:
    """Each number of g (*B, W, I) as often as windows have inputs across: (*B, W·size, I)."""
    *lead, count, inner = g.shape
    if inner > 1:
        return np.repeat(g, size, axis=-2)
    rows = arena.part(0, (*lead, count, size), g.dtype)
    if size < REPEATED_IN_ROW:
        for tap in range(size):
            rows[..., tap] = g[..., 0]
    else:
        rows[...] = g
    return rows.reshape(*lead, -1, 1)

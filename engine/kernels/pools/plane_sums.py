"""Sums over planes and over their windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Tile
from engine.kernels.pools.pooling import (
    Pooling,
    canonical,
    reduced_along,
    stored,
)
from engine.kernels.pools.windows import window_sum
from engine.kernels.pools.winners import reduced
from engine.kernels.row_sums import sums_over_rows

Array = NDArray[Any]

PLANE_PART = 1 << 10
"""Numbers of a plane that are added up before their sum is added to others: so few that a block has
more than 500 sums, since below that NumPy's products keep the interpreter's lock from other threads.
"""

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
    step = partial(window_sum, last=p.channels_last)
    return reduced_along(step, p, x, tile, prepare)


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

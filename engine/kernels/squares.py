"""The gradient of maxima of windows of two by two that lie side by side, with channels last.

Both rows of windows are compared where they lie, in long runs, and what is left is compared from each
column to the next one, in one run as well: the comparisons between windows are not looked at. The first
of a window's equal maxima in row-major order is its first in the upper row; so where the maxima of two
columns are equal, the right one wins if it is the upper and the left the lower of its column.

As in `handing`, comparisons leave masks. The gradient's bits times a mask are one side's, and the
exclusive or of both is the other side's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Tile
from engine.kernels.nan import settle
from engine.threads import Arena

Array = NDArray[Any]

Index = tuple[Any, ...]

BOOL = np.dtype(np.bool_)


def suits(axes: Sequence[Axis]) -> bool:
    """True for windows of two by two from the first input on, without gaps or padding."""
    return len(axes) == 2 and all(
        axis.kernel == axis.stride == 2
        and axis.dilation == 1
        and axis.low == 0
        and axis.out * 2 <= axis.size
        for axis in axes
    )


def hand(x: Array, g: Array, axes: Sequence[Axis], tile: Tile, dx: Array) -> bool:
    """Write the gradient of the inputs under a tile, and of those after the last windows, to dx.

    x and dx are (n, H, W, C), g the gradient (n, P, Q, C) of all windows' maxima. The first of a
    window's equal maxima gets it. False if some input is NaN: then nothing is written.
    """
    arena = Arena()
    (top, bottom), (left, right) = ((2 * lo, 2 * hi) for lo, hi in tile)
    rows = [_box((top + row, bottom, 2), (left, right)) for row in range(2)]
    own = _box(
        *(
            (2 * lo, 2 * hi if hi < a.out else a.size)
            for a, (lo, hi) in zip(axes, tile, strict=True)
        )
    )
    shape = x[rows[0]].shape
    best, lower = arena.take(shape, x.dtype), arena.take(shape, BOOL)
    np.maximum(x[rows[0]], x[rows[1]], out=best)
    np.less(x[rows[0]], x[rows[1]], out=lower)
    if np.isnan(np.minimum.reduce(best, axis=None)):
        return False
    bits = np.dtype(f"u{x.itemsize}")
    upstream = g[_box(*tile)]
    won = _right(best, lower, arena)
    # The maxima are not needed any more.
    handed = best.view(bits)
    columns = [handed[..., column::2, :] for column in range(2)]
    np.multiply(upstream.view(bits), won[..., 0::2, :], out=columns[1])
    np.bitwise_xor(upstream.view(bits), columns[1], out=columns[0])
    if own != _box((top, bottom), (left, right)):
        dx[own] = 0
    upper, under = (dx[row].view(bits) for row in rows)
    np.multiply(handed, lower, out=under)
    np.bitwise_xor(handed, under, out=upper)
    if np.isnan(np.minimum.reduce(upstream, axis=None)):
        settle(dx[own])
    return True


def _box(*spans: tuple[int, ...]) -> Index:
    """The index of some rows and columns."""
    return (..., *(slice(*span) for span in spans), slice(None))


def _right(best: Array, lower: Array, arena: Arena) -> Array:
    """Whether the next column's maximum wins over each column's, for best and lower (n, R, W, C)."""
    step = best.shape[-1]
    won, ties = (arena.take(best.shape, BOOL) for _ in range(2))
    wins, equal = won.reshape(-1)[:-step], ties.reshape(-1)[:-step]
    values, low = best.reshape(-1), lower.reshape(-1)
    np.less(values[:-step], values[step:], out=wins)
    np.equal(values[:-step], values[step:], out=equal)
    if equal.any():
        # Of equal maxima, where the left one is the lower and the right one the upper.
        higher = arena.take(wins.shape, BOOL)
        np.greater(low[:-step], low[step:], out=higher)
        np.logical_and(equal, higher, out=equal)
        np.logical_or(wins, equal, out=wins)
    return won

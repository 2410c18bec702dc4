"""Where the maxima of large windows stand that divide planes evenly: each window is a row of its own.

NumPy finds where the largest number of a row stands in one pass, in vectors: the first of equal ones, and
before all the first NaN. So each number is looked at once, whatever the axes. A plane that is one window is
a row as it lies; other windows are laid out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena
from engine.geometry import Tile, row_major
from engine.kernels.patches import within
from engine.kernels.pools.pooling import Pooling
from engine.kernels.pools.windows import PASS, even_size
from engine.threads import check_stop

Array = NDArray[Any]


def suits(p: Pooling) -> bool:
    """True for windows side by side of more taps than are looked at one by one."""
    return p.tapped_axes is None and all(map(even_size, p.axes))


def argmaxima(p: Pooling, x: Array, tile: Tile) -> tuple[Array, Array]:
    """Maxima (n, c, *T) of a tile of the planes x (n, c, *S) and their flat row-major positions."""
    sizes = [even_size(axis) for axis in p.axes]
    counts = [hi - lo for lo, hi in tile]
    rows = _rows(x, tile, sizes, counts)
    best, taps = _largest(rows)
    shape = (*x.shape[:2], *counts)
    # `unravel_index` is wrong for more than 8192 numbers in an array whose last axis is 1 (NumPy 2.4.6).
    rest, where = taps.reshape(shape), np.zeros(shape, np.int64)
    for axis, step in reversed(list(enumerate(row_major(p.inputs)))):
        rest, stand = np.divmod(rest, sizes[axis])
        starts = np.arange(*tile[axis]) * sizes[axis]
        where += (stand + starts.reshape(-1, *(1,) * (len(sizes) - 1 - axis))) * step
    return best.reshape(shape), where


def _largest(rows: Array) -> tuple[Array, Array]:
    """The first maximum of each row and where it stands, looked for part by part in long rows."""
    each = np.arange(len(rows))
    taps = rows[:, :PASS].argmax(axis=1)
    best = rows[each, taps]
    for lo in range(PASS, rows.shape[1], PASS):
        check_stop()
        later = lo + rows[:, lo : lo + PASS].argmax(axis=1)
        values = rows[each, later]
        wins = (values > best) | (np.isnan(values) & ~np.isnan(best))
        best, taps = np.where(wins, values, best), np.where(wins, later, taps)
    return best, taps


def _rows(x: Array, tile: Tile, sizes: Sequence[int], counts: Sequence[int]) -> Array:
    """The windows of a tile of x (n, c, *S), one after another."""
    box = (slice(lo * size, hi * size) for size, (lo, hi) in zip(sizes, tile, strict=True))
    split = [n for pair in zip(counts, sizes, strict=True) for n in pair]
    windows = x[within(box)].reshape(*x.shape[:2], *split, copy=False)
    end = windows.ndim
    windows = windows.transpose(0, 1, *range(2, end, 2), *range(3, end, 2))
    if not windows.flags.c_contiguous:
        laid = Arena().take(windows.shape, x.dtype)
        np.copyto(laid, windows)
        windows = laid
    return windows.reshape(-1, prod(sizes), copy=False)

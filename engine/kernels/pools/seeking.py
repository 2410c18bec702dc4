"""Where the maxima of windows stand that are long, or not of one length, looked for axis by axis.

All members of a window along one axis are compared with its maximum in one call, over all that lies beside
them. The first that equals it is the least of their numbers, all bits of which are set for the others: an
integer of a byte, mostly. Along later axes the numbers go on in row-major order, so that the first of the
whole window is the least again. Inputs are laid out where what lies beside is not one run.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena
from engine.geometry import Axis, Tile, Windows, as_slices, row_major
from engine.kernels.nan import has_nan
from engine.kernels.patches import within
from engine.kernels.pools.pooling import Pooling
from engine.kernels.pools.windows import PASS, bounds, taps_between, window_max
from engine.threads import check_stop

Array = NDArray[Any]

WORTH = 1 << 10
"""Inputs of a sample's tile for each window along each axis from which calls for each are worth their time:
they take 10 µs, and `reduceat`, over all windows at once, 20 ns for every member."""

BESIDE_RUN = 128
"""Numbers that lie beside in one run from which inputs stay where they are."""

Members = tuple[tuple[int, ...], tuple[int, ...], int]
"""Where the windows along an axis begin, how many inputs each has, and the step between these."""


def suits(p: Pooling, tile: Tile) -> bool:
    """True for windows that are few enough for calls of their own, and no more than inputs along any axis.

    Else there would be more positions than inputs, and these are eight bytes each.
    """
    if any(axis.out > axis.size for axis in p.axes):
        return False
    channels = p.inner(copied=True) if p.channels_last else p.channels
    inputs = channels * prod(hi - lo for lo, hi in p.read(tile))
    return inputs >= WORTH * sum(hi - lo for lo, hi in tile)


def sought(p: Pooling, x: Array, tile: Tile) -> tuple[Array, Array]:
    """Maxima (n, c, *T) of a tile of the planes x (n, c, *S) and their flat row-major positions.

    The position of a window without inputs is meaningless.
    """
    read, arena = p.read(tile), Arena()
    values = x[within(as_slices(read))]
    numbers, taps = None, 1
    members = [_members(*pair) for pair in zip(p.axes, tile, strict=True)]
    longest = [max(1, *counts) for _, counts, _ in members]
    for axis, (windows, span, (origin, _)) in enumerate(zip(p.axes, tile, read, strict=True)):
        values = _outermost(values, 2 + axis, arena)
        numbers = None if numbers is None else _outermost(numbers, 2 + axis, arena)
        best = window_max(values, 2 + axis, windows, span, origin)
        taps *= longest[axis]
        numbers = _numbers(
            values, numbers, best, 2 + axis, members[axis], origin, longest[axis], taps
        )
        values = best
    assert numbers is not None
    rest, where = numbers.astype(np.int64), np.zeros((), np.int64)
    for axis, unit in reversed(list(enumerate(row_major(p.inputs)))):
        starts, _, step = members[axis]
        rest, tap = np.divmod(rest, longest[axis])
        place = np.asarray(starts).reshape(-1, *(1,) * (len(p.axes) - 1 - axis))
        where = where + (place + tap * step) * unit
    return values, where


@lru_cache(maxsize=1024)
def _members(windows: Windows, span: tuple[int, int]) -> Members:
    """Those of the outputs [*span)."""
    if isinstance(windows, Axis) and windows.dilation > 1:
        start = np.arange(*span) * windows.stride - windows.low
        below = np.clip(-(start // windows.dilation), 0, windows.kernel)
        counts = taps_between(windows, *span, 0, windows.size)
        starts = start + below * windows.dilation
        return tuple(starts.tolist()), tuple(counts.tolist()), windows.dilation
    starts, stops = bounds(windows, *span)
    counts = np.maximum(stops - starts, 0)
    return tuple(starts.tolist()), tuple(counts.tolist()), 1


def _outermost(a: Array, axis: int, arena: Arena) -> Array:
    """The same numbers, with long runs of memory between those along the axis."""
    if a.strides[axis] >= BESIDE_RUN * a.itemsize or a.shape[axis] == 1:
        return a
    moved = np.moveaxis(a, axis, 0)
    laid = arena.take(moved.shape, a.dtype)
    np.copyto(laid, moved)
    return np.moveaxis(laid, 0, axis)


def _numbers(
    values: Array,
    numbers: Array | None,
    best: Array,
    axis: int,
    members: Members,
    origin: int,
    longest: int,
    taps: int,
) -> Array:
    """The least number of those members of windows along an axis that equal their maximum.

    Args:
        values: the inputs from `origin` on.
        numbers: of the windows along axes before this one; None if it is the first.
        best: the maximum of each window.
        axis: along which they lie.
        members: of each window.
        origin: the first of the inputs.
        longest: members of the longest window.
        taps: above all numbers.
    """
    dtype = np.min_scalar_type(taps)
    found = np.full_like(best, np.iinfo(dtype).max, dtype)
    tap = np.arange(longest, dtype=dtype).reshape(-1, *(1,) * (values.ndim - 1 - axis))
    nan, before = has_nan(best), (slice(None),) * axis
    each = max(1, PASS * values.shape[axis] // values.size) if values.size else longest
    starts, counts, step = members
    for o, (start, count) in enumerate(zip(starts, counts, strict=True)):
        own, least = best[*before, o : o + 1], found[*before, o : o + 1]
        for lo in range(0, count, each):
            check_stop()
            hi = min(lo + each, count)
            first = start - origin + lo * step
            of = (*before, slice(first, first + (hi - lo) * step, step))
            hit = np.equal(values[of], own)
            if nan:
                hit |= np.isnan(values[of]) & np.isnan(own)
            other = hit.view(np.uint8) if dtype == np.uint8 else hit.astype(dtype)
            other -= 1
            if numbers is None:
                other |= tap[lo:hi]
            else:
                number = numbers[of].astype(dtype)
                number *= longest
                number += tap[lo:hi]
                other |= number
            np.minimum(least, np.minimum.reduce(other, axis=axis, keepdims=True), out=least)
    return found

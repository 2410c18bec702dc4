"""The adjoint of sums over windows: each input gets the sum of what is given to the windows that read it.

It is spread along one axis after another. Where windows share no input, numbers are copied, never added.

`sums` hold what is given to the outputs [lo, hi) along `axis`, and results the inputs [*inputs).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.geometry import Axis, Tile, Windows, as_slices
from engine.kernels.patches import within
from engine.kernels.pools.pooling import Pooling, clear, stored
from engine.kernels.pools.reducing import RUN_STEP, at, reduce_runs, resized
from engine.kernels.pools.windows import bounds, even_size, short, taps

Array = NDArray[Any]

REPEATED = 4
"""Inputs of windows that are alike, below which NumPy repeats numbers sooner than it broadcasts them."""

REPEATED_IN_ROW = 7
"""Inputs of such windows across, below which a copy for each, to places that far apart, is sooner still."""

RUN = 32
"""Channels of a position, where they come last, from which they are copied well at a time."""


def tile_sum_adjoint(p: Pooling, g: Array, tile: Tile, dx: Array) -> None:
    """The adjoint of `tile_sum`: inputs in dx (n, c, *S) get the gradient g (n, c, *T) of their windows.

    Where windows share no input, what dx held there is written over; what others give is added to what
    the tiles before have left. Tiles come in row-major order, and the first of them
    finds dx undefined.
    """
    read = p.read(tile)
    target = dx[within(as_slices(read))]
    sizes = [even_size(axis) for axis in p.axes]
    if all(sizes):
        # Every input has one window.
        _spread(stored(p, g), sizes, stored(p, target))
        return
    whole = all(hi - lo == axis.out for axis, (lo, hi) in zip(p.axes, tile, strict=True))
    own = all(map(apart, p.axes)) or (whole and target.shape == dx.shape)
    if not own or not whole:
        clear(p, tile, dx)
    else:
        _clear_around(read, dx)
    *before, end = _order(p)
    for axis in before:
        g = window_sum_adjoint(g, 2 + axis, p.axes[axis], tile[axis], read[axis])
    # Sums that are made tap by tap pass over results as often, and these lie together by themselves.
    inner = prod(p.inputs[end + 1 :]) * (p.channels if p.channels_last else 1)
    direct = inner >= RUN or not 0 < sizes[end] < REPEATED
    direct = direct and own and (apart(p.axes[end]) or not short(p.axes[end]))
    out = target if direct else None
    found = window_sum_adjoint(g, 2 + end, p.axes[end], tile[end], read[end], out)
    if own and not direct:
        np.copyto(target, found)
    elif not own:
        target += found


@lru_cache(maxsize=256)
def _order(p: Pooling) -> tuple[int, ...]:
    """The axes in the order in which gradients are spread along them: the last passes over most numbers.

    Windows that share no input are copied, best in rows: the first axis comes last. Others are added up.
    So axes of more windows than inputs come first, and those of windows that are alike last, which take no
    call for each. Of others the outer ones come last, if rows of inputs are long runs.
    """
    inner = p.axes[-1].size * (p.channels if p.channels_last else 1)
    if all(map(apart, p.axes)):
        return tuple(range(len(p.axes)))[::-1]
    outwards = -1 if p.unlike and inner >= RUN_STEP else 1

    def rank(axis: int) -> tuple[bool, bool, int]:
        windows = p.axes[axis]
        return even_size(windows) > 0, windows.out <= windows.size, outwards * axis

    return tuple(sorted(range(len(p.axes)), key=rank))


def _clear_around(read: Sequence[tuple[int, int]], dx: Array) -> None:
    """Zero what lies beside the ranges of inputs that are `read` along each axis."""
    for axis, (start, stop) in enumerate(read):
        before = (slice(None), slice(None), *as_slices(read[:axis]))
        dx[(*before, slice(start))] = 0
        dx[(*before, slice(stop, None))] = 0


def _spread(g: Array, sizes: Sequence[int], target: Array) -> None:
    """Write each number of g (*B, *T, I) to all inputs of its window in the target (*B, *S, I)."""
    *before, across = sizes
    count, inner = g.shape[-2:]
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
    return rows.reshape(*lead, count * size, 1)


def window_sum_adjoint(
    sums: Array,
    axis: int,
    windows: Windows,
    span: tuple[int, int],
    inputs: tuple[int, int],
    out: Array | None = None,
) -> Array:
    """The adjoint of `window_sum`: inputs [*inputs) get the sums of their windows, in `out` if given."""
    lo, hi = span
    size = even_size(windows)
    if size and inputs == (lo * size, hi * size):
        if out is None:
            return np.repeat(sums, size, axis)
        split = (*out.shape[:axis], hi - lo, size, *out.shape[axis + 1 :])
        out.reshape(split, copy=False)[...] = np.expand_dims(sums, axis + 1)
        return out
    if out is None:
        out = np.empty_like(sums, shape=resized(sums, axis, inputs[1] - inputs[0]))
    if short(windows):
        return _handed(sums, axis, windows, span, inputs, out)
    starts, stops = bounds(windows, lo, hi)
    # Starts and stops never decrease, so the windows over one input are a run as well.
    i = np.arange(*inputs)
    first = np.searchsorted(stops, i, side="right")
    last = np.searchsorted(starts, i, side="right")
    return reduce_runs(np.add, 0, sums, axis, first, last, out)


def _handed(
    sums: Array,
    axis: int,
    windows: Axis,
    span: tuple[int, int],
    inputs: tuple[int, int],
    out: Array,
) -> Array:
    """`window_sum_adjoint`, tap by tap."""
    first, last = inputs
    moves = taps(windows, span, first)
    if not apart(windows):
        out[...] = 0
        for source, target in moves:
            out[at(axis, target)] += sums[at(axis, source)]
        return out
    if windows.stride == windows.kernel and windows.dilation == 1:
        start, stop = (min(max(windows.input_of(0, o), first), last) - first for o in span)
        out[at(axis, slice(start))] = 0
        out[at(axis, slice(stop, None))] = 0
    else:
        out[...] = 0
    for source, target in moves:
        out[at(axis, target)] = sums[at(axis, source)]
    return out


def apart(windows: Windows) -> bool:
    """True where fixed windows share no input."""
    return isinstance(windows, Axis) and windows.stride >= windows.extent

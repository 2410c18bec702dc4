"""Pooling over blocks of planes and tiles, and its adjoints.

Arrays are x (N, C, *S) and y (N, C, *P), in any memory order. Every output is worked out from its own
window alone, so nothing depends on the blocks; they only keep temporaries small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Tile, Windows, block_tile, ranges, tiles
from engine.kernels.patches import inside, within
from engine.kernels.windows import (
    plane_sum,
    short,
    whole,
    window_argmax,
    window_max,
    window_spread,
    window_sum,
)
from engine.kernels.winners import FEW, reduced, room, winners
from engine.threads import SCRATCH_BYTES, Arena, check_stop, for_each

Array = NDArray[Any]

ROOM = SCRATCH_BYTES * 3 // 4
"""Bytes that finding maxima plans with; borders of tiles need some more."""

BLOCK = 1 << 18
"""Inputs that a block reads: in float32 about a core's second-level cache."""

Box = tuple[slice, ...]


@dataclass(frozen=True)
class Pooling:
    """A pooling layer's windows along each spatial axis; all integers, no samples."""

    axes: tuple[Windows, ...]
    channels: int
    channels_last: bool = False

    @property
    def positions(self) -> tuple[int, ...]:
        """Output positions along each axis."""
        return tuple(axis.out for axis in self.axes)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Input positions along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def visits(self) -> int:
        """Window members of one sample: what a reduction without tricks would read."""
        return self.channels * prod(axis.visits for axis in self.axes)

    @property
    def plane(self) -> int:
        """Values that the reduction of one plane holds at its largest stage.

        An axis of long windows that overlap is laid out window after window.
        """
        most, reduced = prod(self.inputs), 1
        for axis, windows in reversed(list(enumerate(self.axes))):
            if not short(windows):
                most = max(most, prod(self.inputs[:axis]) * windows.visits * reduced)
            reduced *= windows.out
        return most

    @property
    def blocks(self) -> int:
        """About how many blocks one sample is cut into."""
        return -(-self.channels * self.plane // BLOCK)

    @property
    def workspace_bytes(self) -> int:
        """Temporaries of one thread: values, positions and masks of a block, or of one window."""
        window = prod(min(axis.extent, axis.size) for axis in self.axes)
        return 48 * max(BLOCK, window)

    def tiles(self) -> Iterator[Tile]:
        """Tiles of outputs whose windows together hold about BLOCK inputs."""
        ratio = max(1, -(-self.plane // prod(self.positions)))
        if self.channels_last:
            ratio *= self.channels
        return tiles(self.positions, block_tile(self.positions, max(1, BLOCK // ratio)))

    def planes(self, samples: int) -> Iterator[tuple[slice, slice]]:
        """Blocks of samples and channels of about BLOCK inputs together; some more if one sum each."""
        single = all(axis.out == 1 and whole(axis) for axis in self.axes)
        most = max(1, BLOCK * (4 if single else 1) // self.plane)
        parts = 1 if self.channels_last else -(-self.channels // most)
        alike = max(1, most // self.channels) if parts == 1 else 1
        cuts = product(ranges(samples, alike), ranges(self.channels, -(-self.channels // parts)))
        return ((slice(*n), slice(*c)) for n, c in cuts)

    def read(self, tile: Tile) -> tuple[tuple[int, int], ...]:
        """The inputs that a tile reads along each axis."""
        return tuple(axis.inputs_of(*span) for axis, span in zip(self.axes, tile, strict=True))


Blocks = tuple[list[Tile], list[tuple[slice, slice]]]
"""Tiles of outputs, and blocks of samples and channels to take them from."""


def blocks(p: Pooling, samples: int, itemsize: int) -> Blocks:
    """Blocks for reductions."""
    if overlapping(p):
        return winner_blocks(p, samples, itemsize)
    return list(p.tiles()), list(p.planes(samples))


def overlapping(p: Pooling) -> tuple[Axis, ...] | None:
    """The axes, if windows share inputs: those are worth laying out for each tap to pass over."""
    axes = few(p)
    return axes if axes and any(axis.stride < axis.extent for axis in axes) else None


def winner_blocks(p: Pooling, samples: int, itemsize: int) -> Blocks:
    """Blocks for finding where maxima stand, as large as the scratch allows: fewer calls of NumPy,
    each of which threads have to take turns to begin.
    """
    axes = few(p)
    if axes is None:
        return list(p.tiles()), list(p.planes(samples))
    inner = p.channels if p.channels_last else 1
    whole = tuple((0, out) for out in p.positions)
    plane = room(axes, whole, inner, itemsize)
    width = max(1, prod(p.positions) * ROOM // plane)
    cut = list(tiles(p.positions, block_tile(p.positions, width)))
    lines = p.channels // inner
    parts = -(-lines // max(1, min(lines, ROOM // plane)))
    channels = -(-lines // parts) * inner
    alike = max(1, ROOM // (plane * lines)) if parts == 1 else 1
    planes = product(ranges(samples, alike), ranges(p.channels, channels))
    return cut, [(slice(*n), slice(*c)) for n, c in planes]


def few(p: Pooling) -> tuple[Axis, ...] | None:
    """The axes, if they are fixed windows of few enough taps to look at each by itself."""
    axes = tuple(axis for axis in p.axes if short(axis))
    return axes if len(axes) == len(p.axes) and prod(a.kernel for a in axes) <= FEW else None


def slices(spans: tuple[tuple[int, int], ...]) -> Box:
    """Half-open ranges as slices."""
    return tuple(slice(lo, hi) for lo, hi in spans)


def for_each_plane(p: Pooling, samples: int, function: Callable[[slice, slice], None]) -> None:
    """Call `function(n, c)` for blocks of planes that do not overlap."""
    for_each(function, p.planes(samples), samples * p.visits)


def _reduced(
    step: Callable[..., Array], p: Pooling, x: Array, tile: Tile, prepare: Callable[[Array], Array]
) -> Array:
    read = p.read(tile)
    values = prepare(x[within(slices(read))])
    # Along the longest runs first: they are halved, or more, before shorter ones are met.
    order = range(len(p.axes)) if p.channels_last else reversed(range(len(p.axes)))
    for axis in order:
        values = step(values, 2 + axis, p.axes[axis], tile[axis], read[axis][0])
    return values


def tile_max(p: Pooling, x: Array, tile: Tile) -> Array:
    """Maxima (n, c, *T) of a tile of the planes x (n, c, *S); may lie in the scratch."""
    if axes := overlapping(p):
        return canonical(p, reduced(np.maximum, -np.inf, stored(p, x), axes, tile, Arena()))
    return _reduced(window_max, p, x, tile, lambda values: values)


def tile_sum(
    p: Pooling, x: Array, tile: Tile, prepare: Callable[[Array], Array] = lambda values: values
) -> Array:
    """Sums (n, c, *T) over windows of `prepare` applied to the planes x (n, c, *S).

    They may lie in the scratch. `prepare` leaves 0 as it is.
    """
    if all(axis.out == 1 and whole(axis) for axis in p.axes):
        return plane_sum(prepare(x))
    if axes := overlapping(p):
        return canonical(p, reduced(np.add, 0, stored(p, x), axes, tile, Arena(), prepare))
    return _reduced(window_sum, p, x, tile, prepare)


def tile_argmax(p: Pooling, x: Array, tile: Tile) -> tuple[Array, Array]:
    """Maxima of a tile and their flat row-major positions in the plane; -1 for an empty window.

    Among equal maxima the first in row-major order; among NaNs too.
    """
    axes = few(p)
    if axes is not None:
        arena = Arena()
        best, taps, blanks = winners(stored(p, x), axes, tile, arena)
        steps = [prod(p.inputs[axis + 1 :]) for axis in range(len(p.axes))]
        strides = [axis.stride * step for axis, step in zip(axes, steps, strict=True)]
        lead = best.ndim - 1 - len(steps)
        first = _grid(best.shape, [*(0,) * lead, *strides, 0]) + _start(axes, tile, steps)
        where = _places(axes, taps, steps, first, arena)
        if blanks is not None:
            where[blanks] = -1
        return canonical(p, best), canonical(p, where)
    read = p.read(tile)
    values = x[within(slices(read))]
    positions: Array = np.zeros((), np.int64)
    step = 1
    for axis in reversed(range(len(p.axes))):
        lo, hi = read[axis]
        place = np.arange(lo, hi) * step
        positions = positions + place.reshape(-1, *(1,) * (len(p.axes) - 1 - axis))
        windows, span = p.axes[axis], tile[axis]
        values, positions = window_argmax(values, positions, 2 + axis, windows, span, lo)
        step *= windows.size
    for axis, (windows, (lo, hi)) in enumerate(zip(p.axes, tile, strict=True)):
        positions[(slice(None),) * (2 + axis) + (_empty(windows, lo, hi),)] = -1
    return values, positions


def stored(p: Pooling, a: Array) -> Array:
    """A view (n, c, *S, 1), or (n, *S, c) where channels come last: the order in memory."""
    return a.transpose(0, *range(2, a.ndim), 1) if p.channels_last else a[..., None]


def canonical(p: Pooling, a: Array) -> Array:
    """The view (n, c, *S) of what `stored` made."""
    return np.moveaxis(a, -1, 1) if p.channels_last else a[..., 0]


def _places(
    axes: Sequence[Axis], taps: Array, steps: Sequence[int], first: Array, arena: Arena
) -> Array:
    """Where winning taps stand, given where the first tap of each window does.

    `steps` are from one input to the next along each axis.
    """
    units = [axis.dilation * step for axis, step in zip(axes, steps, strict=True)]
    apart = _grid([axis.kernel for axis in axes], units).reshape(-1)
    where = arena.take(taps.shape, np.dtype(np.int64))
    np.take(apart, taps, out=where, mode="clip")
    return np.add(where, first, out=where)


def _grid(shape: Sequence[int], steps: Sequence[int]) -> Array:
    """The sum of index times step over all axes."""
    axes = (np.arange(n) * step for n, step in zip(shape, steps, strict=True))
    return sum(np.ix_(*axes), np.zeros((), np.int64))


def _start(axes: Sequence[Axis], tile: Tile, steps: Sequence[int]) -> int:
    """Where the first tap of a tile's first window stands."""
    first = (axis.input_of(0, lo) for axis, (lo, _) in zip(axes, tile, strict=True))
    return sum(i * step for i, step in zip(first, steps, strict=True))


def _empty(windows: Windows, lo: int, hi: int) -> Array:
    """The outputs, counted from lo, whose windows hold no input."""
    if not isinstance(windows, Axis):
        return np.zeros(0, np.int64)
    return np.flatnonzero(taps_between(windows, lo, hi, 0, windows.size) == 0)


def taps_between(axis: Axis, lo: int, hi: int, first: int, end: int) -> NDArray[np.int64]:
    """How many taps of each output in [lo, hi) fall on positions [first, end)."""
    start = np.arange(lo, hi) * axis.stride - axis.low
    below = np.clip(-(-(first - start) // axis.dilation), 0, axis.kernel)
    inside_end = np.clip(-(-(end - start) // axis.dilation), 0, axis.kernel)
    return np.maximum(inside_end - below, 0)


def spread(p: Pooling, g: Array, tile: Tile, dx: Array) -> None:
    """Add a tile's gradient g (n, c, *T) to every input of its window in dx (n, c, *S).

    Tiles come in row-major order, and the first of them finds dx undefined.
    """
    target = dx[within(slices(p.read(tile)))]
    sizes = [whole(axis) for axis in p.axes]
    if all(sizes):
        # Every input has one window: broadcast g over the members of each.
        parts = [n for pair in zip(g.shape[2:], sizes, strict=True) for n in pair]
        members = target.reshape(*g.shape[:2], *parts, copy=False)
        members[...] = g[(..., *[i for _ in sizes for i in (slice(None), None)])]
        return
    for axis, inputs in enumerate(p.read(tile)):
        g = window_spread(g, 2 + axis, p.axes[axis], tile[axis], inputs)
    if target.shape == dx.shape and all(
        hi - lo == axis.out for axis, (lo, hi) in zip(p.axes, tile, strict=True)
    ):
        np.copyto(dx, g)
    else:
        _clear(p, tile, dx)
        target += g


def route(
    p: Pooling, x: Array, g: Array, tile: Tile, dx: Array, kept: dict[tuple[int, ...], Array]
) -> None:
    """Add the gradient g (n, c, *T) of a tile's maxima to the first input that equals its maximum.

    Tiles come in row-major order, and the first of them finds dx undefined. `kept` holds what is the
    same for all blocks of a shape, for as long as the caller keeps it.
    """
    _clear(p, tile, dx)
    axes = few(p)
    if axes is None:
        scatter_indices(tile_argmax(p, x, tile)[1], g, dx)
        return
    arena = Arena()
    target, values = stored(p, dx), stored(p, g)
    strides = [stride // dx.itemsize for stride in target.strides]
    lead, steps = strides[: -1 - len(axes)], strides[-1 - len(axes) : -1]
    _, taps, blanks = winners(stored(p, x), axes, tile, arena)
    # Relative to the tile, all tiles are alike but for those that begin in the padding.
    start = _start(axes, tile, steps)
    key = (*taps.shape, min(start, 0))
    if key not in kept:
        apart = (axis.stride * step for axis, step in zip(axes, steps, strict=True))
        kept[key] = _grid(taps.shape, [*lead, *apart, strides[-1]]) + min(start, 0)
    where = _places(axes, taps, steps, kept[key], arena)
    if blanks is not None:
        where, values = where[~blanks], values[~blanks]
    inputs = target.reshape(-1, copy=False)[max(start, 0) :]
    if all(axis.stride >= axis.extent for axis in axes):
        inputs[where.reshape(-1)] = values.reshape(-1)
    else:
        np.add.at(inputs, where.reshape(-1), values.reshape(-1))


def _clear(p: Pooling, tile: Tile, dx: Array) -> None:
    """Zero what no tile before this one has."""
    if any(span != (0, axis.out) for span, axis in zip(tile[1:], p.axes[1:], strict=True)):
        if all(lo == 0 for lo, _ in tile):
            dx[...] = 0
        return
    axis, (lo, hi) = p.axes[0], tile[0]
    start = axis.inputs_of(lo - 1, lo)[1] if lo else 0
    stop = axis.inputs_of(hi - 1, hi)[1] if hi < axis.out else axis.size
    dx[:, :, start:stop] = 0


def spread_ties(
    p: Pooling, x: Array, dy: Array, tile: Tile, dx: Array, zeros: bool = False
) -> None:
    """Add the gradient dy (n, c, *T) of a tile's maxima to every input that equals its maximum.

    With `zeros`, padding holds 0 and takes part in the maximum.
    """
    axes = [axis for axis in p.axes if isinstance(axis, Axis)]
    best = tile_max(p, x, tile)
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
    for i, (axis, (lo, hi)) in reversed(list(enumerate(zip(p.axes, tile, strict=True)))):
        assert isinstance(axis, Axis)
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


def scatter_indices(indices: Array, dy: Array, dx: Array) -> None:
    """Add dy (n, c, *P) to the positions `indices` of the planes dx (n, c, *S); -1 adds nothing."""
    where, kept = linear(indices, dx)
    np.add.at(flat(dx), where, dy if kept is None else dy[kept])


def linear(indices: Array, planes: Array) -> tuple[Array, Array | None]:
    """Flat positions in the memory of `planes` (n, c, *S) for indices (n, c, *P) into each plane.

    Indices of -1 are left out; then the second value is the mask of those kept. `planes` must have
    its spatial axes adjacent in memory, as both layouts have.
    """
    n, c, s = (stride // planes.itemsize for stride in (*planes.strides[:2], planes.strides[-1]))
    tail = (1,) * (indices.ndim - 2)
    samples = np.arange(planes.shape[0]).reshape(-1, 1, *tail) * n
    channels = np.arange(planes.shape[1]).reshape(1, -1, *tail) * c
    where = indices * s + (samples + channels)
    if indices.size == 0 or indices.min() >= 0:
        return where, None
    kept = indices >= 0
    return where[kept], kept


def flat(planes: Array) -> Array:
    """All memory from the first to the last element of `planes`, as one axis."""
    span = sum(
        (size - 1) * stride for size, stride in zip(planes.shape, planes.strides, strict=True)
    )
    size = span // planes.itemsize + 1 if planes.size else 0
    return np.lib.stride_tricks.as_strided(planes, (size,), (planes.itemsize,))

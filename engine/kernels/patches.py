"""Gathering the windows of an input into columns, and the adjoint: scattering columns back.

Arrays here are `x` (n, g, c, *S) and `columns` (n, g, c, *K, *T): samples, groups, channels, then the
input's spatial axes, the kernel's taps, and a tile of output positions. The inputs under a tile are
first laid out in a slab, padding included, so that all taps are one view of it and are copied at one
go. Along a strided last axis the slab keeps each residue together, so that those copies run over
consecutive numbers. Where a tap falls on padding, the padding mode says which input stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import Axis, Tile
from engine.kernels.slabs import occupied
from engine.threads import scratch

Array = NDArray[Any]
Index = tuple[Any, ...]
Selector = slice | Array | None
"""Inputs along one axis: a slice, a list of positions, or None where zero padding stands."""

Segment = tuple[slice, Selector]

SLAB = 1
"""The part of the scratch that slabs live in, until their taps are copied."""


def within(parts: Iterable[Any]) -> Index:
    """The index of a box along the last axes, all of the axes before them."""
    return (..., *parts)


def border(axis: Axis, tap: int, lo: int, hi: int, mode: str) -> Array | None:
    """The inputs that stand for the padding under `tap` of the outputs [lo, hi)."""
    if mode == "zeros":
        return None
    i = axis.input_of(tap, 0) + axis.stride * np.arange(lo, hi)
    return reflected(i, axis.size, mode)


def reflected(i: Array, size: int, mode: str) -> Array:
    """The inputs that stand at the positions `i`, inside and outside [0, size)."""
    if mode == "circular":
        return i % size
    if mode == "replicate":
        return np.clip(i, 0, size - 1)
    i = np.abs(i)
    return np.minimum(i, 2 * (size - 1) - i)


@lru_cache(maxsize=4096)
def inside(axis: Axis, tap: int, lo: int, hi: int) -> tuple[int, int, slice]:
    """The outputs of [lo, hi) whose tap is a real input, and the slice of those inputs."""
    start, stop = axis.outputs_of(tap, lo, hi)
    if start == stop:
        return start, stop, slice(0, 0)
    first, last = axis.input_of(tap, start), axis.input_of(tap, stop - 1)
    return start, stop, slice(first, last + 1, axis.stride)


def segments(axis: Axis, tap: int, lo: int, hi: int, mode: str) -> list[Segment]:
    """Cut the outputs [lo, hi) into padding before, real inputs, and padding after."""
    start, stop, inputs = inside(axis, tap, lo, hi)
    found: list[Segment] = []
    if start > lo:
        found.append((slice(0, start - lo), border(axis, tap, lo, start, mode)))
    if stop > start:
        found.append((slice(start - lo, stop - lo), inputs))
    if hi > stop:
        found.append((slice(stop - lo, hi - lo), border(axis, tap, stop, hi, mode)))
    return found


Region = tuple[tuple[int, ...], tuple[slice, ...], tuple[Selector, ...]]


def regions(axes: Sequence[Axis], tile: Tile, mode: str) -> Iterator[Region]:
    """For every tap, the boxes of the tile and what they read: (tap, outputs, inputs)."""
    table = [
        [segments(axis, tap, lo, hi, mode) for tap in range(axis.kernel)]
        for axis, (lo, hi) in zip(axes, tile, strict=True)
    ]
    for tap in np.ndindex(*(axis.kernel for axis in axes)):
        for box in product(*(row[t] for row, t in zip(table, tap, strict=True))):
            yield tap, tuple(o for o, _ in box), tuple(i for _, i in box)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the inputs under a tile become a slab, and the slab columns.

    A slab (n, g, c, *shape) reaches from the first tap of the tile's first window to the last of its
    last; its last two axes are the residues of the last spatial axis and the inputs of each.

    Attributes:
        starts: where the slab begins in x, which may be before its first input.
        plain: True where all of the slab is real inputs.
        direct: True where x itself can stand in for the slab, if its last axis is contiguous.
        moves: boxes of the slab, and the inputs that go there.
        views: for some taps at a time, where they stand in columns, and the shape, the byte offset
            and the byte strides of the view of one channel's slab that holds them.
    """

    shape: tuple[int, ...]
    starts: tuple[int, ...]
    plain: bool
    direct: bool
    moves: tuple[tuple[Index, Index], ...]
    views: tuple[tuple[Index, tuple[int, ...], int, tuple[int, ...]], ...]


@lru_cache(maxsize=4096)
def recipe(axes: tuple[Axis, ...], tile: Tile, itemsize: int) -> Recipe:
    """The recipe of a tile."""
    starts = tuple(axis.input_of(0, lo) for axis, (lo, _) in zip(axes, tile, strict=True))
    lengths = [
        (hi - lo - 1) * axis.stride + axis.extent for axis, (lo, hi) in zip(axes, tile, strict=True)
    ]
    plain = all(
        start >= 0 and start + length <= axis.size
        for start, length, axis in zip(starts, lengths, axes, strict=True)
    )
    phases = axes[-1].stride
    # Where windows share no input, laying them out first would copy each twice.
    alone = all(axis.extent <= axis.stride for axis in axes)
    shape = (*lengths[:-1], phases, -(-lengths[-1] // phases))
    moves = tuple(_moves(axes, starts, shape))
    views = tuple(_views(axes, tile, shape, itemsize))
    return Recipe(shape, starts, plain, plain and (phases == 1 or alone), moves, views)


def _moves(
    axes: Sequence[Axis], starts: Sequence[int], shape: Sequence[int]
) -> Iterator[tuple[Index, Index]]:
    targets, sources = [], []
    for start, length, axis in zip(starts[:-1], shape[:-2], axes[:-1], strict=True):
        source, target = axis.placed(start, start + length)
        sources.append(source)
        targets.append(target)
    phases, width = shape[-2:]
    for phase in occupied(phases, -starts[-1], axes[-1].size):
        first = starts[-1] + phase
        lo = max(0, -(first // phases))
        hi = min(width, -(-(axes[-1].size - first) // phases))
        if hi > lo:
            stop = first + (hi - 1) * phases + 1
            source = slice(first + lo * phases, stop, phases)
            yield (..., *targets, phase, slice(lo, hi)), (..., *sources, source)


def _views(
    axes: Sequence[Axis], tile: Tile, shape: Sequence[int], itemsize: int
) -> Iterator[tuple[Index, tuple[int, ...], int, tuple[int, ...]]]:
    steps = [prod(shape[d + 1 :]) * itemsize for d in range(len(shape))]
    rows = [*steps[: len(axes) - 1], itemsize]
    kernel = [axis.kernel for axis in axes]
    out = tuple(hi - lo for lo, hi in tile)
    taps = [axis.dilation * step for axis, step in zip(axes, rows, strict=True)]
    moves = [axis.stride * step for axis, step in zip(axes[:-1], rows, strict=False)]
    strides = (*taps, *moves, itemsize)
    last, phases = axes[-1], shape[-2]
    if phases == 1:
        yield (...,), (*kernel, *out), 0, strides
        return
    for tap in range(last.kernel):
        shift, phase = divmod(tap * last.dilation, phases)
        place = (*(slice(None),) * (2 + len(axes)), slice(tap, tap + 1))
        offset = phase * steps[-2] + shift * itemsize
        yield place, (*kernel[:-1], 1, *out), offset, strides


def gather(x: Array, axes: tuple[Axis, ...], tile: Tile, mode: str, columns: Array) -> None:
    """Fill `columns` (n, g, c, *K, *T) with the windows of `x` (n, g, c, *S) over `tile`."""
    found = recipe(axes, tile, x.itemsize)
    if found.direct and x.strides[-1] == x.itemsize:
        inputs = x[within(slice(start, None) for start in found.starts)]
        np.copyto(columns, _windows(inputs, axes, columns.shape))
    elif prod(found.shape) <= prod(columns.shape[3:]):
        _copy_taps(_slab(x, axes, found, mode), found, columns)
    else:
        for place, outputs, sources in regions(axes, tile, mode):
            target = columns[(slice(None),) * 3 + place]
            target[within(outputs)] = 0 if _has_zeros(sources) else _select(x, sources)


def _copy_taps(slab: Array, found: Recipe, columns: Array) -> None:
    rows = as_items(columns)
    for place, shape, offset, strides in found.views:
        shape = (*slab.shape[:3], *shape)
        view = np.ndarray(shape, slab.dtype, slab, offset, (*slab.strides[:3], *strides))
        np.copyto(rows[place], as_items(view))


def as_items(a: Array) -> Array:
    """A view of a (..., R) with consecutive rows, each row as one item.

    Rows of 7 to 14 numbers are copied so in two thirds to half of the time; long ones take as long.
    """
    return a.view(np.dtype((np.void, a.shape[-1] * a.itemsize)))[..., 0]


def _windows(a: Array, axes: Sequence[Axis], shape: tuple[int, ...]) -> Array:
    """All taps of all positions as a view of inputs `a`."""
    taps = [axis.dilation * stride for axis, stride in zip(axes, a.strides[3:], strict=True)]
    steps = [axis.stride * stride for axis, stride in zip(axes, a.strides[3:], strict=True)]
    return as_strided(a, shape, (*a.strides[:3], *taps, *steps), writeable=False)


def _slab(x: Array, axes: Sequence[Axis], found: Recipe, mode: str) -> Array:
    """The inputs under a tile with their padding: (n, g, c, *shape)."""
    shape = (*x.shape[:3], *found.shape)
    slab = scratch(prod(shape), x.dtype, SLAB).reshape(shape)
    moves = found.moves
    if not found.plain:
        if mode == "zeros":
            slab.fill(0)
        else:
            x = _extended(x, axes, found, mode)
            sizes = x.shape[3:]
            whole = tuple(Axis(size, 1, 1, 1, 0, 0, size) for size in sizes)
            moves = tuple(_moves(whole, (0,) * len(sizes), found.shape))
    for target, source in moves:
        slab[target] = x[source]
    return slab


def _extended(x: Array, axes: Sequence[Axis], found: Recipe, mode: str) -> Array:
    """The inputs under a tile with what stands in their padding."""
    lengths = (*found.shape[:-2], found.shape[-2] * found.shape[-1])
    for d, (start, length, axis) in enumerate(zip(found.starts, lengths, axes, strict=True)):
        # A slab is rounded up to whole residues, which may be more than any window reads.
        end = (axis.out - 1) * axis.stride + axis.extent - axis.low
        i = np.minimum(np.arange(start, start + length), end - 1)
        x = x.take(reflected(i, axis.size, mode), axis=3 + d)
    return x


def scatter(columns: Array, axes: Sequence[Axis], tile: Tile, mode: str, x: Array) -> None:
    """Add `columns` (n, g, c, *K, *T) onto the inputs in `x` (n, g, c, *S) they were gathered from."""
    for tap, outputs, inputs in regions(axes, tile, mode):
        if _has_zeros(inputs):
            continue
        source = columns[(slice(None),) * 3 + tap][within(outputs)]
        if all(isinstance(i, slice) for i in inputs):
            x[within(inputs)] += source
        else:
            # Padding may repeat an input within one tap, so plain += would lose terms.
            positions = (_positions(i, size) for i, size in zip(inputs, x.shape[3:], strict=True))
            np.add.at(x, within(np.ix_(*positions)), source)


def _has_zeros(inputs: tuple[Selector, ...]) -> bool:
    return any(i is None for i in inputs)


def _select(x: Array, inputs: tuple[Selector, ...]) -> Array:
    view = x[within(i if isinstance(i, slice) else slice(None) for i in inputs)]
    for axis, i in enumerate(inputs):
        if isinstance(i, np.ndarray):
            view = view[(slice(None),) * (3 + axis) + (i,)]
    return view


def _positions(inputs: Selector, size: int) -> Array:
    return np.arange(size)[inputs]

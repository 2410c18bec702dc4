"""Gathering the windows of an input into columns, and the adjoint: scattering columns back.

Arrays here are `x` (n, g, c, *S) and `columns` (n, g, c, *K, *T): samples, groups, channels, then the
input's spatial axes, the kernel's taps, and a tile of output positions. Most windows go by way of a slab
(`gathering`). Where a tap falls on padding, the padding mode says which input stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import Axis, Tile
from engine.kernels.gathering import Index, Recipe, gathering, moves, recipe

Array = NDArray[Any]
Selector = slice | Array | None
"""Inputs along one axis: a slice, a list of positions, or None where zero padding stands."""

Segment = tuple[slice, Selector]


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


def gather(x: Array, axes: tuple[Axis, ...], tile: Tile, mode: str, columns: Array) -> None:
    """Fill `columns` (n, g, c, *K, *T) with the windows of `x` (n, g, c, *S) over `tile`."""
    found = recipe(axes, tile, x.itemsize)
    if found.direct and x.strides[-1] == x.itemsize:
        np.copyto(columns, _windows(x, axes, found.starts, columns.shape))
    elif prod(found.shape) <= prod(columns.shape[3:]):
        if mode != "zeros" and not found.plain:
            x, found = _extended(x, axes, found, mode)
        gathering(found, columns).load(x)
    else:
        for place, outputs, sources in regions(axes, tile, mode):
            target = columns[(slice(None),) * 3 + place]
            target[within(outputs)] = 0 if _has_zeros(sources) else _select(x, sources)


def _windows(
    x: Array, axes: Sequence[Axis], starts: Sequence[int], shape: tuple[int, ...]
) -> Array:
    """All taps of all positions, the first at `starts`, as a view of x (n, g, c, *S)."""
    along = x.strides[3:]
    taps = [axis.dilation * stride for axis, stride in zip(axes, along, strict=True)]
    steps = [axis.stride * stride for axis, stride in zip(axes, along, strict=True)]
    strides = (*x.strides[:3], *taps, *steps)
    if x.flags.c_contiguous:
        # In a tenth of the time of what serves for any memory.
        offset = sum(start * stride for start, stride in zip(starts, along, strict=True))
        return np.ndarray(shape, x.dtype, x, offset, strides)
    inputs = x[within(slice(start, None) for start in starts)]
    return as_strided(inputs, shape, strides, writeable=False)


def _extended(x: Array, axes: Sequence[Axis], found: Recipe, mode: str) -> tuple[Array, Recipe]:
    """The inputs under a tile with what stands in their padding, and the recipe for those."""
    lengths = (*found.shape[:-2], found.shape[-2] * found.shape[-1])
    for d, (start, length, axis) in enumerate(zip(found.starts, lengths, axes, strict=True)):
        # A slab is rounded up to whole residues, which may be more than any window reads.
        end = (axis.out - 1) * axis.stride + axis.extent - axis.low
        i = np.minimum(np.arange(start, start + length), end - 1)
        x = x.take(reflected(i, axis.size, mode), axis=3 + d)
    whole = tuple(Axis(size, 1, 1, 1, 0, 0, size) for size in x.shape[3:])
    taken = tuple(moves(whole, (0,) * len(whole), found.shape))
    return x, replace(found, plain=True, moves=taken)


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

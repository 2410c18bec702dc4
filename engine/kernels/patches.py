"""Gathering the windows of an input into columns, and the adjoint: scattering columns back.

Arrays here are `x` (n, g, c, *S) and `columns` (n, g, c, *K, *T): samples, groups, channels, then the
input's spatial axes, the kernel's taps, and a tile of output positions. Most windows go by way of a slab
(`gathering`). Where a tap falls on padding, the padding mode says which input stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import Axis, Tile
from engine.kernels.borders import Run, runs
from engine.kernels.gathering import Index, gathering, recipe

Array = NDArray[Any]


def within(parts: Iterable[Any]) -> Index:
    """The index of a box along the last axes, all of the axes before them."""
    return (..., *parts)


@lru_cache(maxsize=4096)
def inside(axis: Axis, tap: int, lo: int, hi: int) -> tuple[int, int, slice]:
    """The outputs of [lo, hi) whose tap is a real input, and the slice of those inputs."""
    start, stop = axis.outputs_of(tap, lo, hi)
    if start == stop:
        return start, stop, slice(0, 0)
    first, last = axis.input_of(tap, start), axis.input_of(tap, stop - 1)
    return start, stop, slice(first, last + 1, axis.stride)


Region = tuple[tuple[int, ...], tuple[Run, ...]]


def regions(axes: Sequence[Axis], tile: Tile, mode: str) -> Iterator[Region]:
    """For every tap, the boxes of the tile that read inputs, and which: (tap, runs)."""
    table = [
        [
            runs(axis, axis.input_of(tap, lo), hi - lo, axis.stride, mode)
            for tap in range(axis.kernel)
        ]
        for axis, (lo, hi) in zip(axes, tile, strict=True)
    ]
    for tap in np.ndindex(*(axis.kernel for axis in axes)):
        for box in product(*(row[t] for row, t in zip(table, tap, strict=True))):
            yield tap, box


def gather(x: Array, axes: tuple[Axis, ...], tile: Tile, mode: str, columns: Array) -> None:
    """Fill `columns` (n, g, c, *K, *T) with the windows of `x` (n, g, c, *S) over `tile`."""
    found = recipe(axes, tile, x.itemsize, mode)
    if found.direct and x.strides[-1] == x.itemsize:
        np.copyto(columns, _windows(x, axes, found.starts, columns.shape))
    elif found.slab is not None:
        gathering(found, columns).load(x)
    else:
        if not found.filled:
            columns.fill(0)
        for tap, box in regions(axes, tile, mode):
            target = columns[(slice(None),) * 3 + tap]
            inputs = x[within(run.inputs for run in box)]
            target[within(run.places for run in box)] = inputs


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


def scatter(columns: Array, axes: Sequence[Axis], tile: Tile, mode: str, x: Array) -> None:
    """Add `columns` (n, g, c, *K, *T) onto the inputs in `x` (n, g, c, *S) they were gathered from.

    What was gathered from padding of zeros goes nowhere.
    """
    for tap, box in regions(axes, tile, mode):
        put_back(columns[(slice(None),) * 3 + tap], box, x)


def lay(columns: Array, axes: Sequence[Axis], tile: Tile, x: Array) -> None:
    """`scatter` where windows lie side by side and none reads padding, whatever the mode.

    Nothing is added, so that one copy has many taps.
    """
    spans = list(zip(tile, axes, strict=True))
    target = x[within(slice(lo * axis.stride, hi * axis.stride) for (lo, hi), axis in spans)]
    split = [size for (lo, hi), axis in spans for size in (hi - lo, axis.stride)]
    target = target.reshape(*x.shape[:3], *split, copy=False)
    # From taps before positions to an axis's positions before its taps.
    order = [first + d for d in range(len(spans)) for first in (3 + len(spans), 3)]
    source = columns.transpose(0, 1, 2, *order)
    if split[-1] >= split[-2]:
        np.copyto(target, source)
        return
    # NumPy's innermost loop then is over positions, which are more.
    for tap in range(split[-1]):
        np.copyto(target[..., tap], source[..., tap])


def put_back(numbers: Array, box: Sequence[Run], x: Array) -> Array:
    """Add some of `numbers` (n, g, c, *T) onto the inputs in `x` (n, g, c, *S) that stand there.

    Returns:
        The view of these inputs.
    """
    source = numbers[within(run.places for run in box)]
    repeated = tuple(3 + axis for axis, run in enumerate(box) if run.repeated)
    if repeated:
        source = np.add.reduce(source, axis=repeated, keepdims=True)
    target = x[within(run.inputs for run in box)]
    target += source
    return target

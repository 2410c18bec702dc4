"""Gathering the windows of an input into columns, and the adjoint: scattering columns back.

Arrays here are `x` (n, g, c, *S) and `columns` (n, g, c, *K, *T): samples, groups, channels, then the
input's spatial axes, the kernel's taps, and a tile of output positions. Each tap is a strided copy.
Where a tap falls on padding, the padding mode says which input stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Tile

Array = NDArray[Any]
Index = tuple[Any, ...]
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
    if mode == "circular":
        return i % axis.size
    if mode == "replicate":
        return np.clip(i, 0, axis.size - 1)
    i = np.abs(i)
    return np.minimum(i, 2 * (axis.size - 1) - i)


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


def gather(x: Array, axes: Sequence[Axis], tile: Tile, mode: str, columns: Array) -> None:
    """Fill `columns` (n, g, c, *K, *T) with the windows of `x` (n, g, c, *S) over `tile`."""
    for tap, outputs, inputs in regions(axes, tile, mode):
        target = columns[(slice(None),) * 3 + tap]
        target[within(outputs)] = 0 if _has_zeros(inputs) else _select(x, inputs)


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

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
class Cut:
    """The inputs under a tile, from the first tap of its first window to the last of its last.

    `lengths` of the slab along each axis; `phases` residues of the last one, each `lengths[-1]`
    long; `starts`, where the slab begins in x, and `plain`, whether it lies in x altogether.
    """

    lengths: tuple[int, ...]
    phases: int
    starts: tuple[int, ...]
    plain: bool
    elements: int


@lru_cache(maxsize=4096)
def cut(axes: tuple[Axis, ...], tile: Tile) -> Cut:
    """The inputs under a tile."""
    pairs = list(zip(axes, tile, strict=True))
    starts = tuple(axis.input_of(0, lo) for axis, (lo, _) in pairs)
    lengths = [(hi - lo - 1) * axis.stride + axis.extent for axis, (lo, hi) in pairs]
    plain = all(
        start >= 0 and start + length <= axis.size
        for start, length, axis in zip(starts, lengths, axes, strict=True)
    )
    phases = axes[-1].stride
    lengths[-1] = -(-lengths[-1] // phases)
    return Cut(tuple(lengths), phases, starts, plain, prod(lengths) * phases)


def gather(x: Array, axes: tuple[Axis, ...], tile: Tile, mode: str, columns: Array) -> None:
    """Fill `columns` (n, g, c, *K, *T) with the windows of `x` (n, g, c, *S) over `tile`."""
    found = cut(axes, tile)
    dims = len(axes)
    if found.plain and found.phases == 1 and x.strides[-1] == x.itemsize:
        inputs = x[within(slice(start, None) for start in found.starts)]
        np.copyto(columns, _windows(inputs, axes, columns.shape))
    elif found.elements <= prod(columns.shape[3:]):
        slab = _slab(x, axes, found, mode)
        if found.phases == 1:
            np.copyto(columns, _windows(slab[..., 0, :], axes, columns.shape))
            return
        last = axes[-1]
        head = (slice(None),) * (2 + dims)
        for tap in range(last.kernel):
            shift, phase = divmod(tap * last.dilation, found.phases)
            target = columns[(*head, slice(tap, tap + 1))]
            np.copyto(target, _windows(slab[..., phase, shift:], axes, target.shape, step=1))
    else:
        for place, outputs, sources in regions(axes, tile, mode):
            target = columns[(slice(None),) * 3 + place]
            target[within(outputs)] = 0 if _has_zeros(sources) else _select(x, sources)


def _windows(
    a: Array, axes: Sequence[Axis], shape: tuple[int, ...], step: int | None = None
) -> Array:
    """All taps of all positions as a view of inputs `a`; `step` replaces the last axis's stride."""
    strides = a.strides[3:]
    taps = [axis.dilation * stride for axis, stride in zip(axes, strides, strict=True)]
    steps = [axis.stride * stride for axis, stride in zip(axes, strides, strict=True)]
    if step is not None:
        steps[-1] = step * strides[-1]
    return as_strided(a, shape, (*a.strides[:3], *taps, *steps), writeable=False)


def _slab(x: Array, axes: Sequence[Axis], found: Cut, mode: str) -> Array:
    """The inputs of a cut with their padding: (n, g, c, *lengths, with phases before the last)."""
    *rows, width = found.lengths
    shape = (*x.shape[:3], *rows, found.phases, width)
    slab = scratch(prod(shape), x.dtype, SLAB).reshape(shape)
    if not found.plain:
        if mode == "zeros":
            slab.fill(0)
        else:
            x, axes, found = _extended(x, axes, found, mode)
    targets, sources = [], []
    for start, length, axis in zip(found.starts, rows, axes, strict=False):
        lo, hi = max(0, start), max(0, start, min(axis.size, start + length))
        targets.append(slice(lo - start, hi - start))
        sources.append(slice(lo, hi))
    start, size = found.starts[-1], axes[-1].size
    for phase in range(found.phases):
        first = start + phase
        lo = max(0, -(first // found.phases))
        hi = min(width, -(-(size - first) // found.phases))
        if hi > lo:
            stop = first + (hi - 1) * found.phases + 1
            source = slice(first + lo * found.phases, stop, found.phases)
            slab[(..., *targets, phase, slice(lo, hi))] = x[(..., *sources, source)]
    return slab


def _extended(
    x: Array, axes: Sequence[Axis], found: Cut, mode: str
) -> tuple[Array, Sequence[Axis], Cut]:
    """The inputs under a cut with what stands in their padding, as an array and its cut."""
    lengths = (*found.lengths[:-1], found.lengths[-1] * found.phases)
    extended = []
    for d, (start, length, axis) in enumerate(zip(found.starts, lengths, axes, strict=True)):
        last = (axis.out - 1) * axis.stride + axis.extent - axis.low
        i = np.minimum(np.arange(start, start + length), last - 1)
        x = x.take(reflected(i, axis.size, mode), axis=3 + d)
        extended.append(Axis(length, axis.kernel, axis.stride, axis.dilation, 0, 0, axis.out))
    starts = (0,) * len(lengths)
    return x, extended, Cut(found.lengths, found.phases, starts, True, found.elements)


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

"""Where the maxima of long windows one place apart stand, kept up with while they are found, axis by axis.

Windows of some taps and as many after them make windows of twice the taps, so that thirteen taps take four
comparisons. Each says of all windows whether the later half has more. How far the winner stands behind the
window's first tap is then the larger of two small integers: what it was, and what it is in the later half
where that won, else 0, since the later half stands further. These take a byte or two each. For few taps it
is quicker to hand the gradient back from tap to tap, as in `handing`, where no position is worked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Tile
from engine.kernels import argmaxima
from engine.kernels.kept import kept
from engine.kernels.pooling import Pooling, canonical, stored
from engine.kernels.residues import fold, lay, recipe
from engine.kernels.windows import short
from engine.kernels.winners import Step, ordered
from engine.threads import SCRATCH_BYTES, Arena

Array = NDArray[Any]
Index = tuple[Any, ...]

MANY, MANY_IN_RUNS = 12, 18
"""Taps along all axes together from which positions are quicker than handing the gradient back: where rows
of planes are laid out, and where all channels of a position are a long run."""

LEAST = 1 << 16
"""Members of a sample's windows below which the calls are the longest part of either way."""

BOOL = np.dtype(np.bool_)


@lru_cache(maxsize=256)
def suits(p: Pooling) -> tuple[Axis, ...] | None:
    """The axes, if windows have many taps and are one place apart, none is without inputs, and one fits."""
    axes = tuple(axis for axis in p.axes if short(axis) and axis.stride == 1)
    if len(axes) < len(p.axes) or argmaxima.suits(p) or p.visits < LEAST:
        return None
    taps = sum(axis.kernel for axis in axes)
    if p.few and taps < (MANY_IN_RUNS if p.channels_last else MANY):
        return None
    if any(fold(axis, 0, axis.out).empty for axis in axes):
        return None
    # Channels last, tiles would come one after another, and look at most inputs several times.
    tile = tuple((0, out if p.channels_last else 1) for out in p.positions)
    inner, itemsize = (p.channels, 4) if p.channels_last else (1, 8)
    return axes if room(axes, tile, inner, itemsize) <= SCRATCH_BYTES else None


@dataclass(frozen=True, slots=True)
class Tracing:
    """Views of a thread's scratch, and what is done to them, for blocks of one shape.

    Attributes:
        laid: the inputs with their padding.
        steps: find the maxima and how far they stand behind their windows' first taps.
        best, far: both, for each output.
    """

    laid: Array
    steps: tuple[Step, ...]
    best: Array
    far: Array

    def run(self) -> None:
        """Take the steps."""
        for ufunc, operands, result in self.steps:
            ufunc(*operands, out=result)


def traced(p: Pooling, axes: tuple[Axis, ...], x: Array, tile: Tile) -> tuple[Array, Array]:
    """Maxima (n, c, *T) of a tile of the planes x (n, c, *S) and their flat row-major positions."""
    x = stored(p, x)
    found = recipe(axes, tile, x.shape[-1])
    key = axes, found.lengths, tuple(hi - lo for lo, hi in tile), x.shape[: -len(found.lengths)]
    v = tracing(*key, x.dtype)
    laid = v.laid.reshape(*found.residues, *v.laid.shape)
    lay(x, found, -np.inf, laid)
    v.run()
    best = v.best
    # NaN equals nothing, and where all numbers of a window are minus infinity, padding may have won.
    if not np.minimum.reduce(best, axis=None, initial=np.inf) > -np.inf:
        best = best.copy()
        inputs = np.empty(laid.shape, x.dtype)
        lay(x, found, -np.inf, inputs)
        v = tracing(*key, np.dtype(f"i{x.itemsize}"))
        laid = v.laid.reshape(inputs.shape)
        laid[...] = ordered(inputs)
        for edge in found.borders:
            laid[edge] = np.iinfo(laid.dtype).min
        v.run()
    first: Array = np.zeros((), np.int64)
    for axis, (lo, hi), unit in zip(axes, tile, units(p.inputs), strict=True):
        first = first[..., None] + (np.arange(lo, hi) - axis.low) * unit
    return canonical(p, best), canonical(p, v.far + first[..., None])


def units(sizes: Sequence[int]) -> list[int]:
    """How many numbers of an array there are from one place to the next along each axis."""
    return [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


def room(axes: tuple[Axis, ...], tile: Tile, inner: int, itemsize: int) -> int:
    """Bytes of the arena that a tile of one plane takes."""
    return prod(recipe(axes, tile, inner).lengths) * (2 * itemsize + 3 * _width(axes).itemsize + 1)


def _reaches(axes: Sequence[Axis]) -> list[int]:
    """Positions from tap to tap along each axis."""
    sizes = [axis.size for axis in axes]
    return [axis.dilation * unit for axis, unit in zip(axes, units(sizes), strict=True)]


def _width(axes: Sequence[Axis]) -> np.dtype[Any]:
    """Integers for how far the last tap of a window stands behind the first."""
    taps = (axis.kernel - 1 for axis in axes)
    most = sum(tap * reach for tap, reach in zip(taps, _reaches(axes), strict=True))
    return np.dtype(f"u{1 if most < 1 << 8 else 2 if most < 1 << 16 else 4}")


@kept
def tracing(
    axes: tuple[Axis, ...],
    lengths: tuple[int, ...],
    counts: tuple[int, ...],
    lead: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Tracing:
    """The steps for inputs (*lead, *lengths) that are compared as `dtype`, for so many outputs."""
    arena, shape, width = Arena(), (*lead, *lengths), _width(axes)
    size = prod(shape)
    # To and fro between two places: no window is written over before it is read.
    best, other, far, others, later = (
        arena.take((size,), kind) for kind in (dtype, dtype, width, width, width)
    )
    laid, won = best.reshape(shape), arena.take((size,), BOOL)
    steps: list[Step] = []
    end = size
    for axis, unit, reach in reversed(
        list(zip(axes, units(lengths)[:-1], _reaches(axes), strict=True))
    ):
        for step in _joins(axis.kernel):
            gap = step * axis.dilation * unit
            end -= gap
            sooner, after = slice(0, end), slice(gap, gap + end)
            # The first comparison finds all at their first taps.
            fars = (far[sooner], far[after]) if steps else None
            result = other[:end], others[:end]
            halves = best[sooner], best[after]
            steps += _join(halves, fars, step * reach, (won[:end], later[:end]), result)
            best, other, far, others = other, best, others, far
    outputs: Index = (..., *map(slice, counts), slice(None))
    return Tracing(laid, tuple(steps), best.reshape(shape)[outputs], far.reshape(shape)[outputs])


def _joins(kernel: int) -> Iterator[int]:
    """By how many taps the windows begin later that those so far are joined with."""
    done = 1
    while done < kernel:
        step = min(done, kernel - done)
        yield step
        done += step


def _join(
    halves: tuple[Array, Array],
    fars: tuple[Array, Array] | None,
    reach: int,
    room: tuple[Array, Array],
    result: tuple[Array, Array],
) -> Iterator[Step]:
    """The steps that join windows to later ones, given both halves' maxima and how far they stand."""
    won, later = room
    best, far = result
    yield np.less, halves, won
    yield np.maximum, halves, best
    mask, distance = won.view(np.uint8), np.asarray(reach, far.dtype)
    if fars is None:
        yield np.multiply, (mask, distance), far
        return
    yield np.add, (fars[1], distance), later
    yield np.multiply, (later, mask), later
    yield np.maximum, (fars[0], later), far

"""Where the maxima of windows stand, kept up with while they are found, axis by axis.

Inputs are laid out as in `residues`. Each comparison says of all windows whether later taps have more than
those before. How far the winner stands behind the window's first tap is then the larger of two small
integers: what it was, and what it is for the later taps where these won, else 0, since later taps stand
further. These take a byte or two each. Taps one place apart are joined by twos, fours and so on: thirteen
take four comparisons. For few taps it is quicker to hand the gradient back from tap to tap, as in
`handing`, where no position is worked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import SCRATCH_BYTES, Arena
from engine.geometry import Axis, Tile, row_major
from engine.kernels.kept import kept
from engine.kernels.pools import argmaxima
from engine.kernels.pools.pooling import Pooling, canonical, stored
from engine.kernels.pools.residues import Stages, Taps, fold, lay, recipe
from engine.kernels.pools.windows import short
from engine.kernels.pools.winners import Step, ordered

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
    if p.tapped_axes and taps < (MANY_IN_RUNS if p.channels_last else MANY):
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
    lead, counts = x.shape[: -len(found.lengths)], tuple(hi - lo for lo, hi in tile)
    key = axes, found.residues, found.lengths, found.stages, counts, lead
    v = tracing(*key, x.dtype)
    lay(x, found, -np.inf, v.laid)
    v.run()
    best, blank = v.best, None
    # NaN equals nothing, and where all numbers of a window are minus infinity, padding may have won.
    if not np.minimum.reduce(best, axis=None, initial=np.inf) > -np.inf:
        best = best.copy()
        inputs = np.empty(v.laid.shape, x.dtype)
        lay(x, found, -np.inf, inputs)
        v = tracing(*key, np.dtype(f"i{x.itemsize}"))
        v.laid[...] = ordered(inputs)
        lowest = np.iinfo(v.laid.dtype).min
        for edge in found.borders:
            v.laid[edge] = lowest
        v.run()
        blank = v.best == lowest if found.empty else None
    first: Array = np.zeros((), np.int64)
    for axis, (lo, hi), unit in zip(axes, tile, row_major(p.inputs), strict=True):
        first = first[..., None] + (np.arange(lo, hi) * axis.stride - axis.low) * unit
    where = v.far + first[..., None]
    if blank is not None:
        where[blank] = -1
    return canonical(p, best), canonical(p, where)


def room(axes: tuple[Axis, ...], tile: Tile, inner: int, itemsize: int) -> int:
    """Bytes of the arena that a tile of one plane takes."""
    found = recipe(axes, tile, inner)
    laid = prod(found.residues) * prod(found.lengths)
    joined = _joined(laid, found.stages)
    return itemsize * (laid + joined) + joined * (3 * _width(axes).itemsize + 1)


def _joined(size: int, stages: Stages) -> int:
    """Windows that the first axis of several taps leaves of so many numbers."""
    return next((size // residues for residues, taps in stages if len(taps) > 1), size)


def _reaches(axes: Sequence[Axis]) -> list[int]:
    """Positions from tap to tap along each axis."""
    sizes = [axis.size for axis in axes]
    return [axis.dilation * unit for axis, unit in zip(axes, row_major(sizes), strict=True)]


def _width(axes: Sequence[Axis]) -> np.dtype[Any]:
    """Integers for how far the last tap of a window stands behind the first."""
    taps = (axis.kernel - 1 for axis in axes)
    most = sum(tap * reach for tap, reach in zip(taps, _reaches(axes), strict=True))
    return np.dtype(f"u{1 if most < 1 << 8 else 2 if most < 1 << 16 else 4}")


@kept
def tracing(
    axes: tuple[Axis, ...],
    residues: tuple[int, ...],
    lengths: tuple[int, ...],
    stages: Stages,
    counts: tuple[int, ...],
    lead: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Tracing:
    """The steps for inputs (*lead, *S, I) that are compared as `dtype`, for so many outputs."""
    arena, width = Arena(), _width(axes)
    laid = arena.take((*residues, *lead, *lengths), dtype)
    room = (_joined(laid.size, stages),)
    # To and fro between two places: nothing is written over before it is read.
    places = [
        (numbers, arena.take(room, width))
        for numbers in (laid.reshape(-1), arena.take(room, dtype))
    ]
    beside = arena.take(room, BOOL), arena.take(room, width)
    steps: list[Step] = []
    size = laid.size
    for (count, taps), reach in zip(stages, reversed(_reaches(axes)), strict=True):
        size //= count
        if len(taps) > 1:
            steps += _stage(count, size, taps, reach, places, beside, fresh=not steps)
    shape = *lead, *lengths
    outputs: Index = (..., *map(slice, counts), slice(None))
    best, far = (place[:size].reshape(shape)[outputs] for place in places[0])
    return Tracing(
        laid, tuple(steps), best, far if steps else np.broadcast_to(np.zeros((), width), far.shape)
    )


def _even(taps: Taps) -> bool:
    """Whether taps are of one residue and stand evenly, and are enough to be joined with their like."""
    apart = {(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(taps)}
    return len(taps) > 3 and len(apart) == 1 and taps[0][0] == taps[1][0]


def _joins(taps: int, *, even: bool) -> Iterator[int]:
    """The first of the taps that are joined with all before them: as many, or one."""
    done = 1
    while done < taps:
        yield min(done, taps - done) if even else done
        done += min(done, taps - done) if even else 1


def _stage(
    count: int,
    size: int,
    taps: Taps,
    reach: int,
    places: list[tuple[Array, Array]],
    beside: tuple[Array, Array],
    *,
    fresh: bool,
) -> Iterator[Step]:
    """The steps along one axis, from the first place, where they leave `size` windows.

    The first axis is `fresh`: all stand at their first taps.
    """
    even = _even(taps)
    numbers, far = (place[: count * size] for place in places[0])
    parts: list[Found] = [
        _cut((numbers, None if fresh else far), i * size, i * size + size) for i in range(count)
    ]
    before, end = parts[taps[0][0]], size - max(shift for _, shift in taps)
    for tap in _joins(len(taps), even=even):
        residue, shift = taps[tap]
        if even:
            after, end = _cut(before, shift, size), len(before[0]) - shift
        else:
            after = _cut(parts[residue], shift, shift + end)
        result = places[1][0][:end], places[1][1][:end]
        room = beside[0][:end], beside[1][:end]
        yield from _join(_cut(before, 0, end), after, tap * reach, room, result)
        before = result
        if even:
            places.reverse()
    if not even:
        places.reverse()


Found = tuple[Array, Array | None]
"""Maxima of windows, and how far they stand behind; None where all stand at their first taps."""


def _cut(found: Found, start: int, stop: int) -> Found:
    best, far = found
    return best[start:stop], None if far is None else far[start:stop]


def _join(
    before: Found,
    after: Found,
    reach: int,
    beside: tuple[Array, Array],
    result: tuple[Array, Array],
) -> Iterator[Step]:
    """The steps that join windows with those that begin `reach` further."""
    (won, later), (best, far) = beside, result
    yield np.less, (before[0], after[0]), won
    yield np.maximum, (before[0], after[0]), best
    mask, further = won.view(np.uint8), np.asarray(reach, far.dtype)
    target = far if before[1] is None else later
    if after[1] is None:
        yield np.multiply, (mask, further), target
    else:
        yield np.add, (after[1], further), target
        yield np.multiply, (target, mask), target
    if before[1] is not None:
        yield np.maximum, (before[1], later), far

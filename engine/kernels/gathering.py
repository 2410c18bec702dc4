"""Gathering windows by way of a slab: how inputs become one and it becomes columns, as integers and views.

The inputs under a tile are first laid out in a slab, padding included, so that all taps are one view of it
and are copied at one go. Along a strided last axis the slab keeps each residue together, so that those
copies run over consecutive numbers. Under long strides, whose residues would be as many calls, inputs stay
as they lie, and copies run over the taps of a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import part
from engine.geometry import Axis, Tile, row_major
from engine.kernels.borders import runs
from engine.kernels.slabs import occupied

Array = NDArray[Any]
Index = tuple[Any, ...]

SLAB = 1
"""The part of the scratch that slabs live in, until their taps are copied."""

MANY = 64
"""Residues above which recipes are not kept."""

LONG = 16
"""Stride, and taps, from which copies run over the taps of a window."""


def in_windows(axes: Sequence[Axis]) -> bool:
    """True where copies run over taps rather than positions, and columns best have their taps last."""
    last = axes[-1]
    return last.dilation == 1 and min(last.stride, last.kernel) >= LONG


@dataclass(frozen=True, slots=True)
class Slab:
    """How a slab is filled, and read.

    Attributes:
        moves: boxes of the slab, and the inputs that go there.
        views: for some taps at a time, where they stand in columns, and the shape, the byte offset
            and the byte strides of the view of one channel's slab that holds them.
    """

    moves: tuple[tuple[Index, Index], ...]
    views: tuple[tuple[Index, tuple[int, ...], int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the inputs under a tile become a slab, and the slab columns.

    A slab (n, g, c, *shape) reaches from the first tap of the tile's first window to the last of its
    last; its last two axes are the residues of the last spatial axis and the inputs of each. `in_windows`
    there is one residue, of all inputs.

    Attributes:
        starts: where the slab begins in x, which may be before its first input.
        filled: True where nothing of the slab is padding of zeros.
        direct: True where x itself can stand in for the slab, if its last axis is contiguous.
        slab: what goes where; None where the slab would have more numbers than columns.
    """

    shape: tuple[int, ...]
    starts: tuple[int, ...]
    filled: bool
    direct: bool
    slab: Slab | None


def recipe(axes: tuple[Axis, ...], tile: Tile, itemsize: int, mode: str) -> Recipe:
    """The recipe of a tile in a padding mode."""
    # One with many residues is long: thousands of them would hold gigabytes.
    found = _recipe if _phases(axes) <= MANY else _recipe.__wrapped__
    return found(axes, tile, itemsize, mode)


@lru_cache(maxsize=4096)
def _recipe(axes: tuple[Axis, ...], tile: Tile, itemsize: int, mode: str) -> Recipe:
    starts = tuple(axis.input_of(0, lo) for axis, (lo, _) in zip(axes, tile, strict=True))
    lengths = [
        (hi - lo - 1) * axis.stride + axis.extent for axis, (lo, hi) in zip(axes, tile, strict=True)
    ]
    plain = all(
        start >= 0 and start + length <= axis.size
        for start, length, axis in zip(starts, lengths, axes, strict=True)
    )
    phases = _phases(axes)
    # Where windows share no input, laying them out first would copy each twice.
    alone = all(axis.extent <= axis.stride for axis in axes)
    shape = (*lengths[:-1], phases, -(-lengths[-1] // phases))
    direct, filled = plain and (phases == 1 or alone), plain or mode != "zeros"
    if prod(shape) > prod(
        axis.kernel * (hi - lo) for axis, (lo, hi) in zip(axes, tile, strict=True)
    ):
        return Recipe(shape, starts, filled, direct, None)
    taken = tuple(_moves(axes, starts, shape, mode))
    views = tuple(_views(axes, tile, shape, itemsize))
    return Recipe(shape, starts, filled, direct, Slab(taken, views))


def _phases(axes: Sequence[Axis]) -> int:
    return 1 if in_windows(axes) else axes[-1].stride


def _moves(
    axes: Sequence[Axis], starts: Sequence[int], shape: Sequence[int], mode: str
) -> Iterator[tuple[Index, Index]]:
    """Boxes of a slab of `shape` that begins at `starts`, and the inputs that go there."""
    lengths, (phases, width) = shape[:-2], shape[-2:]
    along = [
        runs(axis, start, length, 1, mode)
        for axis, start, length in zip(axes[:-1], starts[:-1], lengths, strict=True)
    ]
    last, start = axes[-1], starts[-1]
    for phase in occupied(phases, -start, last.size) if mode == "zeros" else range(phases):
        for box in product(*along, runs(last, start + phase, width, phases, mode)):
            *places, place = (run.places for run in box)
            yield (..., *places, phase, place), (..., *(run.inputs for run in box))


def _views(
    axes: Sequence[Axis], tile: Tile, shape: Sequence[int], itemsize: int
) -> Iterator[tuple[Index, tuple[int, ...], int, tuple[int, ...]]]:
    steps = [step * itemsize for step in row_major(shape)]
    rows = [*steps[: len(axes) - 1], itemsize]
    kernel = [axis.kernel for axis in axes]
    out = tuple(hi - lo for lo, hi in tile)
    taps = [axis.dilation * step for axis, step in zip(axes, rows, strict=True)]
    moves = [axis.stride * step for axis, step in zip(axes[:-1], rows, strict=False)]
    last, phases = axes[-1], shape[-2]
    moves.append(last.stride // phases * itemsize)
    # Taps so far apart stand in the same residue, one number after another: one view has them all.
    apart = phases // gcd(last.dilation, phases)
    for tap in range(min(apart, last.kernel)):
        shift, phase = divmod(tap * last.dilation, phases)
        place = (*(slice(None),) * (2 + len(axes)), slice(tap, None, apart))
        count = len(range(tap, last.kernel, apart))
        strides = (*taps[:-1], apart * last.dilation // phases * itemsize, *moves)
        offset = phase * steps[-2] + shift * itemsize
        yield place, (*kernel[:-1], count, *out), offset, strides


@dataclass(frozen=True, slots=True)
class Gathering:
    """Views of the scratch for the windows under a tile, by way of a slab.

    Attributes:
        slab: the inputs with their padding, (n, g, c, *shape).
        padded: whether some of it is zeros.
        moves: boxes of the slab, and the inputs that go there.
        taps: rows of the columns, and what of the slab they are copied from, each row one item;
            `in_windows` all columns, and the view of the slab that they are.
    """

    slab: Array
    padded: bool
    moves: tuple[tuple[Array, Index], ...]
    taps: tuple[tuple[Array, Array], ...]

    def load(self, x: Array) -> None:
        """Fill the columns with windows of x (n, g, c, *S)."""
        if self.padded:
            self.slab.fill(0)
        for box, inputs in self.moves:
            np.copyto(box, x[inputs])
        for rows, windows in self.taps:
            np.copyto(rows, windows)


def gathering(found: Recipe, columns: Array) -> Gathering:
    """Views that fill `columns` (n, g, c, *K, *T) by a recipe that has a slab."""
    assert found.slab is not None
    lead = columns.shape[:3]
    shape = (*lead, *found.shape)
    slab = part(SLAB, shape, columns.dtype)
    taps = []
    for place, sizes, offset, strides in found.slab.views:
        steps = (*slab.strides[:3], *strides)
        view = np.ndarray((*lead, *sizes), slab.dtype, slab, offset, steps)
        if view.strides[-1] == view.itemsize:
            taps.append((as_items(columns)[place], as_items(view)))
        else:
            taps.append((columns, view))
    moves = tuple((slab[target], source) for target, source in found.slab.moves)
    return Gathering(slab, not found.filled, moves, tuple(taps))


def as_items(a: Array) -> Array:
    """A view of a (..., R) with consecutive rows, each row as one item.

    Rows of 7 to 14 numbers are copied so in two thirds to half of the time; long ones take as long.
    """
    return a.view(np.dtype((np.void, a.shape[-1] * a.itemsize)))[..., 0]

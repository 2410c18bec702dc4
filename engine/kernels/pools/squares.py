"""The gradient of maxima of windows of two by two that lie side by side.

Both rows of windows are compared where they lie, in long runs. What is left is compared column with
column: with channels last each with the next one, in one run, and the comparisons between windows are
not looked at; with channels first, left columns and right columns are taken apart before. The first of a
window's equal maxima in row-major order is its first in the upper row; so where the maxima of two
columns are equal, the right one wins if it is the upper and the left the lower of its column.

As in `handing`, comparisons leave masks. The gradient's bits times a mask are one side's, and the
exclusive or of both is the other side's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena
from engine.geometry import Axis, Tile
from engine.kernels.kept import kept
from engine.kernels.nan import has_nan, settle
from engine.kernels.pools import ahead
from engine.kernels.slabs import LITTLE

Array = NDArray[Any]

Index = tuple[Any, ...]

Copies = tuple[tuple[Array, Array], ...]
"""Targets and sources; wide integers go to narrow ones as their lower halves."""

BOOL = np.dtype(np.bool_)


def suits(axes: Sequence[Axis]) -> bool:
    """True for windows of two by two from the first input on, without gaps or padding."""
    return len(axes) == 2 and all(
        axis.kernel == axis.stride == 2
        and axis.dilation == 1
        and axis.low == 0
        and axis.out * 2 <= axis.size
        for axis in axes
    )


@dataclass(frozen=True, slots=True)
class Part:
    """Where a tile lies in arrays (*B, H, W, I).

    Attributes:
        read: its windows in x. upper, lower: the rows of them.
        outputs: its windows in the gradient of all maxima.
        own: the inputs that it writes.
        covered: whether its windows have all of these.
    """

    read: Index
    upper: Index
    lower: Index
    outputs: Index
    own: Index
    covered: bool


@lru_cache(maxsize=1024)
def part_of(axes: Sequence[Axis], tile: Tile) -> Part:
    """Where a tile lies; those at the end own the inputs after the last windows too."""
    (top, bottom), across = ((2 * lo, 2 * hi) for lo, hi in tile)
    upper, lower = (_box((top + row, bottom, 2), across) for row in range(2))
    ends = [
        2 * hi if hi < axis.out else axis.size for axis, (_, hi) in zip(axes, tile, strict=True)
    ]
    own = _box((top, ends[0]), (across[0], ends[1]))
    covered = ends == [bottom, across[1]]
    return Part(_box((top, bottom), across), upper, lower, _box(*tile), own, covered)


def _box(*spans: tuple[int, ...]) -> Index:
    """The index of some rows and columns."""
    return (..., *(slice(*span) for span in spans), slice(None))


@dataclass(frozen=True, slots=True)
class Views:
    """Views of a thread's scratch for blocks of one shape, (*B, R, W, I) in each row of windows.

    Attributes:
        best, lower: the maximum of both rows, and whether it is in the lower one.
        apart: takes the columns apart.
        left, right: columns that are compared; `won` is whether the right one is greater.
        equal, higher, low: for ties; `low` are the masks of the left and of the right columns.
        mask: the comparisons of windows among `won`, (*B, R, W/2, I).
        columns: where the gradient of each column goes, in the same shape.
        together: puts them together, in `handed`, which lies where `best` does.
    """

    best: Array
    lower: Array
    apart: Copies
    left: Array
    right: Array
    won: Array
    equal: Array
    higher: Array
    low: tuple[Array, Array]
    mask: Array
    columns: tuple[Array, Array]
    together: Copies
    handed: Array

    def compare(self) -> None:
        """Find which column has the maximum of each window."""
        for target, source in self.apart:
            np.copyto(target, source, casting="unsafe")
        np.less(self.left, self.right, out=self.won)
        np.equal(self.left, self.right, out=self.equal)
        if self.equal.any():
            # Of equal maxima, where the left one is the lower and the right one the upper.
            np.greater(*self.low, out=self.higher)
            np.logical_and(self.equal, self.higher, out=self.equal)
            np.logical_or(self.won, self.equal, out=self.won)

    def hand(self, g: Array) -> None:
        """Hand the bits g (*B, R, W/2, I) of the gradient to the columns; no maximum is left."""
        left, right = self.columns
        np.multiply(g, self.mask, out=right)
        np.bitwise_xor(g, right, out=left)
        for target, source in self.together:
            np.copyto(target, source)


@kept
def views(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Views:
    """This thread's views for blocks of a shape (*B, R, W, I)."""
    arena, size = Arena(), prod(shape)
    bits = np.dtype(f"u{dtype.itemsize}")
    # One number more than is compared: what stands in every second place is read in pairs.
    flat = arena.take((size + 1,), dtype)
    best, lower = flat[:size].reshape(shape), arena.take(shape, BOOL)
    handed = best.view(bits)
    if shape[-1] > 1:
        step, low = shape[-1], lower.reshape(-1)
        masks = [arena.take(shape, BOOL) for _ in range(3)]
        won, equal, higher = (mask.reshape(-1)[:-step] for mask in masks)
        return Views(
            best,
            lower,
            (),
            flat[: size - step],
            flat[step:size],
            won,
            equal,
            higher,
            (low[:-step], low[step:]),
            masks[0][..., 0::2, :],
            (handed[..., 0::2, :], handed[..., 1::2, :]),
            (),
            handed,
        )
    half = (*shape[:-2], shape[-2] // 2, 1)
    left, right = (arena.take(half, dtype) for _ in range(2))
    won, equal, higher = (arena.take(half, BOOL) for _ in range(3))
    columns = left.view(bits), right.view(bits)
    apart: Copies = (left, best[..., 0::2, :]), (right, best[..., 1::2, :])
    together: Copies = tuple((handed[..., i::2, :], columns[i]) for i in range(2))
    if LITTLE and dtype.itemsize == 4:
        # The lower halves of pairs, which begin one number later for those on the right.
        pairs = [flat[i : i + size].view(np.uint64) for i in range(2)]
        apart = tuple((columns[i].reshape(-1), pairs[i]) for i in range(2))
        together = (pairs[0], columns[0].reshape(-1)), together[1]
    return Views(
        best,
        lower,
        apart,
        left,
        right,
        won,
        equal,
        higher,
        (lower[..., 0::2, :], lower[..., 1::2, :]),
        won,
        columns,
        together,
        handed,
    )


def hand(x: Array, g: Array, part: Part, dx: Array) -> bool:
    """Write the gradient of the inputs that a tile owns to dx.

    x and dx are (*B, H, W, I), g the gradient (*B, P, Q, I) of all windows' maxima. The first of a
    window's equal maxima gets it. False if some input is NaN: then nothing is written.
    """
    in_order = ahead.pays(x)
    if in_order and has_nan(x[part.read]):
        return False
    upper, lower = x[part.upper], x[part.lower]
    v = views(upper.shape, x.dtype)
    np.maximum(upper, lower, out=v.best)
    np.less(upper, lower, out=v.lower)
    if not in_order and has_nan(v.best):
        return False
    v.compare()
    upstream, bits = g[part.outputs], v.handed.dtype
    finite = not has_nan(upstream)
    v.hand(upstream.view(bits))
    if in_order or not part.covered:
        dx[part.own] = 0
    under = dx[part.lower].view(bits)
    np.multiply(v.handed, v.lower, out=under)
    np.bitwise_xor(v.handed, under, out=dx[part.upper].view(bits))
    if not finite:
        settle(dx[part.own])
    return True

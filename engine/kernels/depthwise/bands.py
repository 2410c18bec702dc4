"""Blocks of banded products: views of a thread's scratch, made once for each shape of block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine import arena
from engine.geometry import Axis
from engine.kernels.correlation import Correlation
from engine.kernels.depthwise.banding import Banding, banding
from engine.kernels.kept import kept
from engine.kernels.patches import inside
from engine.kernels.slabs import Copy, copies

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Strips:
    """Strips of all groups of a block, one product (g, S, O·T, W) for each sample.

    Attributes:
        band, inputs: the operands of the product.
        made: the product, where it is not written into y itself; `ordered` is it as (g, O, S, T, W).
        rows: of the block's outputs.
        shape: of those of a group as strips, (S, T, W).
    """

    band: Array
    inputs: Array
    made: Array
    ordered: Array
    rows: slice
    shape: tuple[int, ...]

    def target(self, y: Array) -> Array:
        """Where they go in the block's outputs y (N, g, O, P, W), as (N, g, O, S, T, W)."""
        return y[:, :, :, self.rows].reshape(*y.shape[:3], *self.shape, copy=False)


@dataclass(frozen=True, slots=True)
class Views:
    """Views of the scratch for blocks of one shape.

    Attributes:
        taken: the rows of x that a block reads.
        by_taps: whether its inputs are copied as (g, L, C, S), not as (g, C, L, S).
        rows: what is multiplied, (g, L, C, J, W).
        padding: what is to be 0 before inputs come.
        copies: what inputs are copied.
        gathered: what is then copied once more, from the second to the first.
        band: the bands (g, O·T, L·C·J).
        strips: the products. The last strip begins early where strips do not fill the rows of y.
    """

    taken: slice
    by_taps: bool
    rows: Array
    padding: tuple[Array, ...]
    copies: tuple[Copy, ...]
    gathered: tuple[tuple[Array, Array], ...]
    band: Array
    strips: tuple[Strips, ...]

    def begin(self, b: Banding, w: Array) -> None:
        """Set the padding to 0, and make the bands of weights w (g, O, C·K)."""
        for each in self.padding:
            each.fill(0)
        padded = np.zeros((w.shape[0], w.shape[1] * w.shape[2] + 1), w.dtype)
        padded[:, :-1] = w.reshape(w.shape[0], -1)
        padded.take(b.index, axis=1, out=self.band, mode="clip")

    def sources(self, x: Array) -> list[tuple[Array, Array]]:
        """For samples x (N, g, C, *S), what is copied of each, and where it goes."""
        taken = x[:, :, :, self.taken]
        if self.by_taps:
            taken = taken.swapaxes(2, 3)
        return [(copy.target, copy.source(taken)) for copy in self.copies]


@kept
def views(c: Correlation, groups: int, first: int, count: int, runs: bool) -> Views:
    """This thread's views for `groups` and the rows of outputs [first, first + count).

    `runs` is whether rows of x are runs of consecutive numbers.
    """
    b, (down, across) = banding(c), c.axes
    dtype = np.dtype(f"f{c.itemsize}")
    read = (count - 1) * down.stride + down.extent
    taken, placed = down.placed(down.input_of(0, first), down.input_of(0, first) + read)
    rows = arena.part(0, (groups, read, c.channels, across.kernel, across.out), dtype)
    shape = (groups, c.channels, read, b.across.residues, b.across.width)
    made = groups * c.outputs * count * across.out
    beside = arena.part(1, (prod(shape) + made,), dtype)
    slab, out = beside[: prod(shape)].reshape(shape), beside[prod(shape) :]
    band = arena.part(2, (groups, *b.index.shape), dtype)
    strips = tuple(_strips(c, b, band, rows, out, count))
    if b.by_taps:
        padding = (rows[:, : placed.start], rows[:, placed.stop :], *_beside(across, rows))
        moves = tuple(_moves(across, rows[:, placed], runs))
        return Views(taken, True, rows, padding, moves, (), band, strips)
    moves = tuple(
        move
        for residue, place, inputs in b.across.moves
        for move in copies(slab[:, :, placed, residue, place], across.size, inputs, runs=runs)
    )
    return Views(taken, False, rows, (slab,), moves, tuple(_gathered(b, slab, rows)), band, strips)


def _beside(across: Axis, rows: Array) -> Iterator[Array]:
    """Where in rows (g, L, C, J, W) taps read no inputs."""
    for tap in range(across.kernel):
        lo, hi, _ = inside(across, tap, 0, across.out)
        yield from (rows[:, :, :, tap, :lo], rows[:, :, :, tap, hi:])


def _moves(across: Axis, rows: Array, runs: bool) -> Iterator[Copy]:
    """What copies inputs to each tap across in rows (g, L, C, J, W)."""
    for tap in range(across.kernel):
        lo, hi, inputs = inside(across, tap, 0, across.out)
        if lo < hi:
            yield from copies(rows[:, :, :, tap, lo:hi], across.size, inputs, runs=runs)


def _gathered(b: Banding, slab: Array, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Views of rows (g, L, C, J, W), and of the slab (g, C, L, residues, width) that fills them."""
    for t in b.across.taps:
        source, target = slab[:, :, :, t.residue, t.first :], rows[:, :, :, t.taps]
        group, channel, line, one = source.strides
        strides = (group, line, channel, t.step * one, one)
        yield target, as_strided(source, target.shape, strides, writeable=False)


def _strips(
    c: Correlation, b: Banding, band: Array, rows: Array, out: Array, count: int
) -> Iterator[Strips]:
    """The products that make `count` rows of outputs of `rows`; `out` has room for one sample."""
    groups, width, stride = rows.shape[0], rows.shape[4], c.axes[0].stride
    strips, rest = divmod(count, b.height)
    for first, each in [(0, strips), (count - b.height, 1)][: 2 if rest else 1]:
        inputs = rows[:, first * stride :]
        step = b.height * stride * rows.strides[1]
        moves = (rows.strides[0], step, *rows.strides[-2:])
        inputs = as_strided(inputs, (groups, each, band.shape[2], width), moves, writeable=False)
        made = out[: groups * each * c.outputs * b.height * width]
        made = made.reshape(groups, each, -1, width)
        ordered = made.reshape(groups, each, c.outputs, b.height, width).swapaxes(1, 2)
        taken = slice(first, first + each * b.height)
        yield Strips(band[:, None], inputs, made, ordered, taken, (each, b.height, width))

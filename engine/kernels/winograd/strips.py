"""Winograd's blocks: where they lie, and views of a thread's scratch for all steps of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.kernels.kept import kept
from engine.kernels.products import Product, products, run
from engine.kernels.spacing import READ, WRITTEN, spaced
from engine.kernels.winograd.lines import Lines
from engine.kernels.winograd.tiling import TAPS, WIDTH, Block, Tiling, bands, bands_by_point
from engine.threads import for_each

LEAST_SQUARE = 2.0**-100
"""Of smaller squares of float32 some are lost."""

Array = NDArray[Any]
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Shape:
    """What blocks have in common that differ only by where they lie.

    Attributes:
        counts: outputs along depth, strips along columns and along rows.
        inputs: size of what is under it along depth, columns and rows, padding included.
        placed: where in that the map's inputs stand.
        outputs: outputs along each axis.
    """

    plan: Tiling
    counts: tuple[int, ...]
    inputs: tuple[int, ...]
    placed: Spans
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """A block: its inputs in x (C, D, H, W) and outputs in y (O, D, H, W), and its shape."""

    source: tuple[slice, ...]
    target: tuple[slice, ...]
    shape: Shape


@lru_cache(maxsize=256)
def cuts(plan: Tiling) -> tuple[Cut, ...]:
    """All blocks of a sample."""
    shapes: dict[Shape, Shape] = {}
    return tuple(_cut(plan, block, shapes) for block in plan.blocks)


def _cut(plan: Tiling, block: Block, shapes: dict[Shape, Shape]) -> Cut:
    axes = (plan.depth, *plan.c.axes[-2:])
    steps = (1, plan.down * plan.height, plan.across * WIDTH)
    sources, placed, inputs, targets = [], [], [], []
    for axis, (lo, hi), step in zip(axes, block, steps, strict=True):
        start, stop = lo * step - axis.low, hi * step - axis.low + axis.kernel - 1
        source, place = axis.placed(start, stop)
        sources.append(source)
        placed.append((place.start, place.stop))
        inputs.append(stop - start)
        targets.append(slice(lo * step, min(hi * step, axis.out)))
    counts = tuple(hi - lo for lo, hi in block)
    sizes = tuple(target.stop - target.start for target in targets)
    shape = Shape(plan, counts, tuple(inputs), tuple(placed), sizes)
    # One object for equal shapes, as dictionaries find that sooner.
    shape = shapes.setdefault(shape, shape)
    return Cut((slice(None), *sources), (slice(None), *targets), shape)


@dataclass(frozen=True)
class Views:
    """Views of the scratch for blocks of one shape.

    Attributes:
        lines: the inputs (C, D, H, W) with their padding.
        into: the products that transform inputs.
        moved: the transformed inputs (s, n, 6, depths, 1, T, K·C), which filters multiply.
        multiplied: what they make, as (s, n, 6, depths, parts, T, O/parts).
        points: all of that, as it lies.
        back: the products that undo the transform along columns.
        sums: what they make, (rows, strips, tiles·6, D, O).
        made: results (O, D, rows, P).
        last: the products that undo the transform along rows, and make them.
    """

    shape: Shape
    lines: Lines
    into: tuple[Product, ...]
    moved: Array
    multiplied: Array
    points: Array
    back: tuple[Product, ...]
    sums: Array
    made: Array
    last: tuple[Product, ...]

    def multiply(self, filters: Array, y: Array | None, alone: bool) -> Array:
        """The results (O, D, rows, P), written to y if it is given, else to the scratch.

        Threads share the products of a block that is `alone`.
        """
        run(self.into)
        if alone:
            rows = ((slice(i, i + 1),) for i in range(len(filters)))
            for_each(partial(self._multiply_some, filters), rows, self.shape.plan.c.flops)
        else:
            np.matmul(self.moved, filters, out=self.multiplied)
        run(self.back)
        run(self.last if y is None else _last(self.shape.plan, self.sums, y))
        return self.made if y is None else y

    def _multiply_some(self, filters: Array, rows: slice) -> None:
        np.matmul(self.moved[:, rows], filters[rows], out=self.multiplied[:, rows])

    def growth(self, made: Array, least: float) -> float:
        """How much larger the sums at the points are than the results, by their mean squares.

        NaN where a result is not finite, where squares are too large or too small for their type, and where
        the mean square is below `least`, unless all is 0.

        Args:
            made: what `multiply` has returned.
        """
        # Rows of numbers that lie side by side: of planes, or of pixels where channels are last, or of one
        # pixel where these lie apart.
        planes = made is self.made
        rows = made.reshape(len(made), -1, copy=False) if planes else made.transpose(1, 2, 3, 0)
        if not planes and rows.strides[2] == rows.shape[3] * rows.itemsize:
            rows = rows.reshape(*rows.shape[:2], -1, copy=False)
        points = float(np.dot(self.points, self.points)) / self.points.size
        results = float(np.add.reduce(np.vecdot(rows, rows), axis=None)) / made.size
        if max(least, LEAST_SQUARE) < results < np.inf:
            return points / results
        return np.nan if made.any() else 0.0


@kept
def views(shape: Shape) -> Views:
    """This thread's views for blocks of a shape."""
    plan, (depths, strips, columns) = shape.plan, shape.counts
    c = plan.c
    dtype = np.dtype(f"f{c.itemsize}")
    deep, high, wide = shape.inputs
    lines = arena.part(2, (high, wide, deep, c.channels), dtype)
    d, h, w = (slice(*span) for span in shape.placed)
    inner = lines[h, w, d].transpose(3, 2, 0, 1)
    into, _ = bands(WIDTH, plan.across, dtype.str)
    into = into.reshape(-1, plan.across * WIDTH + TAPS - 1)
    found = arena.part(1, (high, columns, len(into), deep * c.channels), dtype)
    under = _windows(lines.reshape(high, wide, -1), plan.across * WIDTH, columns, 1)
    down, back = bands_by_point(plan.height, plan.down, dtype.str)
    moved = arena.part(0, (strips, 1, len(down), found[0].size), dtype)
    rows = _windows(found.reshape(1, high, -1), plan.down * plan.height, strips, 1)
    heights, widths = plan.height + TAPS - 1, WIDTH + TAPS - 1
    tiles = plan.down * columns * plan.across
    made = arena.part(1, (strips, heights, tiles, widths, depths, c.outputs), dtype)
    parts = made.reshape(*made.shape[:-1], -1, plan.together).transpose(0, 1, 3, 4, 5, 2, 6)
    sums = arena.part(0, (strips, 1, len(back), made[0, 0, 0].size * tiles // plan.down), dtype)
    # Planes may lie apart by a power of two, and then share the lines of the cache.
    results = spaced((c.outputs, *shape.outputs), dtype, WRITTEN, partial(arena.part, 2))
    ending = sums.reshape(strips * len(back), columns, -1, depths, c.outputs)
    return Views(
        shape,
        Lines(lines, inner, spaced(inner.shape, dtype, READ, partial(arena.part, 0)), 0),
        ((into, under, found), *products(down[None], rows.swapaxes(0, 1), moved)),
        _deep_rows(plan, moved.reshape(strips, heights, tiles, widths, -1), depths),
        parts,
        made.reshape(-1),
        tuple(products(back[None], made.reshape(strips, 1, len(down), -1), sums)),
        ending,
        results,
        tuple(_last(plan, ending, results)),
    )


def _windows(a: Array, step: int, count: int, axis: int) -> Array:
    """Windows of `step` + 2 that begin `step` apart along an axis of a, as one axis more before it."""
    shape = (*a.shape[:axis], count, step + TAPS - 1, *a.shape[axis + 1 :])
    strides = (*a.strides[:axis], step * a.strides[axis], *a.strides[axis:])
    return np.ndarray(shape, a.dtype, a, 0, strides)


def _deep_rows(plan: Tiling, moved: Array, depths: int) -> Array:
    """The inputs (s, n, T, 6, D·C) under each output along depth: (s, n, 6, depths, 1, T, K·C)."""
    s, i, t, j, one = moved.strides
    channels = plan.c.channels
    strips, heights, tiles, widths, _ = moved.shape
    shape = (strips, heights, widths, depths, 1, tiles, plan.depth.kernel * channels)
    return np.ndarray(shape, moved.dtype, moved, 0, (s, i, j, channels * one, 0, t, one))


def _last(plan: Tiling, sums: Array, y: Array) -> Iterator[Product]:
    """The products that make y (O, D, rows, P) of the sums (rows, strips, tiles·6, D, O)."""
    step = plan.across * WIDTH
    back = bands(WIDTH, plan.across, sums.dtype.str)[1].reshape(-1, step)
    sums = sums[: y.shape[2]]
    whole = y.shape[3] // step
    if whole:
        full = y[..., : whole * step].reshape(*y.shape[:3], whole, step, copy=False)
        yield _strips(back, sums[:, :whole], full)
    if whole < sums.shape[1]:
        rest = np.ascontiguousarray(back[:, : y.shape[3] - whole * step])
        yield _strips(rest, sums[:, whole:], y[:, :, :, None, whole * step :])


def _strips(back: Array, sums: Array, y: Array) -> Product:
    """The product that makes y (O, D, rows, strips, P) of the sums (rows, strips, tiles·6, D, O)."""
    target = y.transpose(2, 3, 1, 0, 4)
    if target.strides[4] == target.itemsize:
        return sums.transpose(0, 1, 3, 4, 2), back, target
    return back.T, sums.swapaxes(2, 3), target.swapaxes(3, 4)

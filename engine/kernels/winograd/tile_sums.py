"""Views of a thread's scratch for all steps of a piece of a filter's gradient by tiles.

Both operands of a piece are laid out channels last and transformed along columns, then along rows. Then one
product over the tiles for each point is added to a total, which at last is made into filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena
from engine.geometry import even, ranges
from engine.kernels.kept import kept
from engine.kernels.products import Product, run
from engine.kernels.spacing import READ, spaced
from engine.kernels.winograd.evenness import exceeds
from engine.kernels.winograd.lines import Lines
from engine.kernels.winograd.pieces import SIDES, Shape, Spans
from engine.kernels.winograd.tiling import TAPS, transforms

Array = NDArray[Any]
Pair = tuple[Array, Array]

POINTS = tuple(side + TAPS - 1 for side in SIDES)

DEPTH = 64
"""Tiles of one product: sums of sums lose fewer digits than long ones do."""


@cache
def _matrices(dtype: str) -> tuple[Pair, Pair, Array]:
    """Bᵀ (n, n) and A (n, m) down and across, and (G ⊗ G)ᵀ (9, 24)."""
    output, filters, inputs = zip(*map(transforms, SIDES), strict=True)
    into = inputs[0].astype(dtype), inputs[1].astype(dtype)
    up = output[0].T.astype(dtype, "C"), output[1].T.astype(dtype, "C")
    return into, up, np.kron(*filters).T.astype(dtype, "C")


@dataclass(frozen=True)
class Transform:
    """Views for one operand of a piece, of K channels.

    Attributes:
        lines: the numbers (n, K, h, w) under the tiles with their padding.
        steps: the products that transform along columns and along rows.
        found: the transformed tiles, (4, T, 6, K).
    """

    lines: Lines
    steps: tuple[Product, Product]
    found: Array

    def load(self, numbers: Array, limit: float) -> bool:
        """Transform numbers (n, K, h, w) of a map, if none is above the limit; true if so."""
        self.lines.load(numbers)
        if exceeds(self.lines.padded, limit):
            return False
        run(self.steps)
        return True


@dataclass(frozen=True)
class Views:
    """Views of the scratch for pieces of one shape, of some channels and filters.

    Attributes:
        inputs, upstream: what transforms the two operands.
        total: sums for every point, (4, 6, C, O).
        made: as many products.
        factors: the operands of each product.
        back: the product that makes filters of the total.
        filters: those, (O, C, 3, 3).
    """

    inputs: Transform
    upstream: Transform
    total: Array
    made: Array
    factors: tuple[tuple[Array, Array], ...]
    back: Product
    filters: Array

    def add(self, first: bool) -> None:
        """Add the piece's products to the total, or begin it with the first."""
        for left, right in self.factors:
            np.matmul(left, right, out=self.total if first else self.made)
            if not first:
                np.add(self.total, self.made, out=self.total)
            first = False

    def summed(self) -> Array:
        """The filters (O, C, 3, 3) that the total makes."""
        run((self.back,))
        return self.filters

    def squares(self) -> tuple[float, float]:
        """The sums of the squares of the total and of the filters made of it."""
        total, filters = self.total.reshape(-1), self.back[2].reshape(-1)
        return float(np.dot(total, total)), float(np.dot(filters, filters))


@kept
def views(shape: Shape, channels: int, outputs: int, dtype: str) -> Views:
    """This thread's views for pieces of a shape.

    Those of as many channels and filters have one total, at the beginning of the scratch.
    """
    arena = Arena()
    into, up, back = _matrices(dtype)
    total = arena.take((*POINTS, channels, outputs), np.dtype(dtype))
    mark = arena.used
    inputs = _transform(arena, into, channels, shape.counts, shape.inputs, shape.placed)
    upstream = _transform(arena, up, outputs, shape.counts, shape.outputs, shape.made)
    made = arena.take(total.shape, total.dtype)
    left, right = inputs.found.transpose(0, 2, 3, 1), upstream.found.swapaxes(1, 2)
    tiles = right.shape[2]
    # They are made when no piece is left.
    arena.used = mark
    filters = arena.take((TAPS, TAPS, channels, outputs), total.dtype)
    return Views(
        inputs,
        upstream,
        total,
        made,
        tuple(
            (left[..., lo:hi], right[..., lo:hi, :]) for lo, hi in ranges(tiles, even(tiles, DEPTH))
        ),
        (back, total.reshape(prod(POINTS), -1), filters.reshape(TAPS**2, -1)),
        filters.transpose(3, 2, 0, 1),
    )


def _transform(
    arena: Arena,
    matrices: Pair,
    size: int,
    counts: tuple[int, ...],
    lengths: tuple[int, ...],
    placed: Spans,
) -> Transform:
    """Views that transform the operand of `size` channels with matrices (points, numbers under a tile)."""
    samples, rows, columns = counts
    dtype, (heights, widths) = matrices[0].dtype, (matrix.shape[1] for matrix in matrices)
    found = arena.take((POINTS[0], samples * rows * columns, POINTS[1], size), dtype)
    mark = arena.used
    lines = arena.take((samples, *lengths, size), dtype)
    inner = lines[:, slice(*placed[0]), slice(*placed[1])].transpose(0, 3, 1, 2)
    loaded = arena.used
    # Planes may lie apart by a power of two, and then share the lines of the cache.
    together = spaced(inner.shape, dtype, READ, arena.take, 2)
    arena.used = loaded
    down = arena.take((samples, rows, POINTS[0], lines.shape[2] * size), dtype)
    n, h, w, one = lines.strides
    strips = np.ndarray(
        (samples, rows, heights, down.shape[3]), dtype, lines, 0, (n, SIDES[0] * h, h, one)
    )
    shape = (*down.shape[:3], columns, widths, size)
    tiles = np.ndarray(shape, dtype, down, 0, (*down.strides[:3], SIDES[1] * w, w, one))
    out = found.reshape(POINTS[0], samples, rows, columns, POINTS[1], size)
    out = out.transpose(1, 2, 0, 3, 4, 5)
    arena.used = mark
    steps = (matrices[0], strips, down), (matrices[1], tiles, out)
    return Transform(Lines(lines, inner, together, 1), steps, found)

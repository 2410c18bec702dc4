"""Products of weights with columns, cut so that BLAS multiplies them where they lie.

OpenBLAS copies the operands of a large product into panels of its own, which pays for itself only where
both are long. Its kernels for 512-bit vectors read them in place up to `UNPACKED` multiplications, at a
higher rate if the columns stay in the second-level cache. So there a product is cut into tiles of `COLUMNS`
columns by as many rows as stay below that, all of them views that one call of `matmul` goes through. Its
other kernels copy operands whatever their size, so that products are left whole. How one is cut depends on
its own three sizes and on these kernels alone, and so do the bits of its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import blas
from engine.geometry import COLUMNS, even

Array = NDArray[Any]

UNPACKED = 1_000_000 if blas.multiplies_in_place() else 0
"""Multiplications up to which BLAS does not copy operands."""

IN_PLACE = 1 << 18
"""Weights that stay in the second-level cache. More are read faster from panels."""

STEP = 8
"""Rows that the registers take at a time."""

WORTHWHILE = 200_000
"""Multiplications of one tile for which starting a product costs little."""

FIRST_LEVEL = 8192
"""Numbers of the right operand of a product in place: its rows stay in the first-level cache."""

MOST_WEIGHTS = 1 << 17
"""Weights that products of so few rows read well where they lie. More are read faster from panels."""

LEAST_ROWS = 24
"""Rows of a product in place, whose weights are read once for all of them."""

MOST_ROWS = 112
"""Rows of a product in place that stay in the first-level cache."""

LINE = 16
"""Numbers of float32 in a cache line."""

Product = tuple[Array, Array, Array]
"""Two operands of a product, and where it goes."""

Span = tuple[int, int, int]
"""A range and the length of the equal pieces that it is cut into."""


def spans(size: int, step: int) -> Iterator[Span]:
    """[0, size) as one range of whole steps, then one of the rest."""
    whole = size - size % step
    if whole:
        yield 0, whole, step
    if whole < size:
        yield whole, size, size - whole


@lru_cache(maxsize=4096)
def pieces(rows: int, depth: int, columns: int) -> tuple[tuple[Span, ...], tuple[Span, ...]] | None:
    """How a product of (rows, depth) and (depth, columns) is cut along both, or None if it is not."""
    fitting = UNPACKED // (depth * min(COLUMNS, columns))
    if rows * depth * columns <= UNPACKED or rows * depth > IN_PLACE or fitting < STEP:
        return None
    each = min(rows, fitting - fitting % STEP)
    if rows > each:
        each = -(-rows // (-(-rows // each) * STEP)) * STEP
    tile = COLUMNS * max(1, WORTHWHILE // (each * depth * COLUMNS))
    return tuple(spans(rows, each)), tuple(spans(columns, tile))


def multiply(weights: Array, columns: Array, out: Array, packed: bool = False) -> None:
    """out (n, g, O, T) = weights (g, O, K) · columns (n, g, K, T), in either memory order of T and O.

    `packed` leaves it to BLAS to copy operands.
    """
    run(products(weights, columns, out, packed))


def run(found: Iterable[Product]) -> None:
    """Make products, one after another."""
    for left, right, out in found:
        np.matmul(left, right, out=out)


def products(weights: Array, columns: Array, out: Array, packed: bool = False) -> Iterator[Product]:
    """The products that `multiply` consists of, as views: two operands, and where the result goes."""
    if out.strides[-1] != out.itemsize:
        yield from _products_last(
            columns.swapaxes(-1, -2), weights.swapaxes(-1, -2), out.swapaxes(-1, -2)
        )
        return
    cut = None if packed else pieces(*weights.shape[1:], columns.shape[3])
    if cut is None:
        yield weights, columns, out
        return
    n, g, depth, _ = columns.shape
    for top, bottom, rows in cut[0]:
        left = weights[:, top:bottom].reshape(1, g, 1, -1, rows, depth)
        for lo, hi, tile in cut[1]:
            right = columns[..., lo:hi].reshape(n, g, 1, depth, -1, tile)
            target = out[:, :, top:bottom, lo:hi].reshape(n, g, left.shape[3], rows, -1, tile)
            yield left, right.transpose(0, 1, 4, 2, 3, 5), target.transpose(0, 1, 4, 2, 3, 5)


def _products_last(rows: Array, weights: Array, out: Array) -> Iterator[Product]:
    """out (n, g, T, O) = rows (n, g, T, K) · weights (g, K, O)."""
    n, g, count, depth = rows.shape
    each = widest(weights.shape[2], depth)
    if not each or count * depth * weights.shape[2] <= UNPACKED:
        yield rows, weights, out
        return
    right = weights.reshape(1, g, 1, depth, -1, each).swapaxes(3, 4)
    for lo, hi, tile in spans(count, tall(count, each * depth)):
        left = rows[:, :, lo:hi].reshape(n, g, -1, 1, tile, depth)
        target = out[:, :, lo:hi].reshape(n, g, left.shape[2], tile, -1, each)
        yield left, right, target.swapaxes(3, 4)


def in_place_last(outputs: int, depth: int) -> bool:
    """True where weights may be the right operand of products in place: few, or more of a few columns."""
    return UNPACKED > 0 and depth * outputs <= MOST_WEIGHTS


@lru_cache(maxsize=4096)
def widest(outputs: int, depth: int) -> int:
    """Columns of products in place whose right operand is the weights: they divide all; 0 if none do."""
    if depth * outputs > MOST_WEIGHTS:
        return 0
    return _dividing(outputs, min(outputs, COLUMNS), UNPACKED // (LEAST_ROWS * depth))


@lru_cache(maxsize=4096)
def tall(count: int, work: int) -> int:
    """Rows of each product in place, of `count`, with `work` multiplications for one."""
    most = min(UNPACKED // work, MOST_ROWS) // STEP * STEP
    return -(-even(count, most) // STEP) * STEP


@lru_cache(maxsize=4096)
def shares(outputs: int, depth: int) -> int:
    """Columns of a right operand that stay in the first-level cache and divide all; 0 if none do.

    Nor do any where each product would copy its left operand once more.
    """
    if not UNPACKED:
        return 0
    return _dividing(outputs, LINE, FIRST_LEVEL // depth)


def _dividing(outputs: int, least: int, most: int) -> int:
    """The most columns within two bounds that begin on cache lines and divide all; 0 if none do."""
    fitting = range(-(-least // LINE) * LINE, min(outputs, most) + 1, LINE)
    return max((each for each in fitting if outputs % each == 0), default=0)

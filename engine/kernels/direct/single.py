"""Layers of one window: it is the whole input, as of a fully connected layer written as a convolution.

In memory such a sample is its window, so that the layer is one of 1x1 over a single position, with all
taps as channels: nothing is gathered, and nothing scattered. With channels last they are in the order of
their taps, and weights have to be as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import Axis, slices
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.nan import settle
from engine.kernels.requests import SHARES, samples_of
from engine.kernels.viewing import viewed
from engine.threads import for_each

Array = NDArray[Any]

ROWS = 1 << 18
"""Weights of a product for several samples: they are read from the second-level cache."""

WHOLE = 1 << 22
"""Weights that lie column by column up to which one product reads them all: they stay in the third-level
cache."""

WIDTH = 2048
"""Rows of a product at most where they are more: a part of a column is a run of 8 KiB in memory."""

OUTER = 1 << 16
"""Numbers of one call where there is nothing to sum."""

MOST_WORK = 1 << 28
"""Multiplications of one call, about, so that whoever wants it ended need not wait."""


@lru_cache(maxsize=4096)
def window(c: Correlation) -> Correlation | None:
    """The same as 1x1 over one position; None where there are several windows, or one is not all of x."""
    if c.pointwise or c.mode != "zeros" or c.wanted == "winograd":
        return None
    if c.channels_last and not (c.taps_apart and c.groups == 1):
        return None
    if any(a.out > 1 or a.kernel != a.size or a.dilation > 1 or a.low or a.high for a in c.axes):
        return None
    axes = tuple(Axis(1, 1, 1, 1, 0, 0, 1) for _ in c.axes)
    return replace(c, axes=axes, channels=c.channels * c.taps)


def column(c: Correlation, x: Array) -> Array | None:
    """x (N, G, C, *S) as (N, G, C·K, 1, ...), if it lies in memory so; with channels last K·C."""
    shape = (*x.shape[:2], c.channels * c.taps, *(1 for _ in c.axes))
    if c.channels_last:
        # Weights come in another order then, so that there is no other way; nor do parts of such maps come.
        return x.transpose(0, 1, *range(3, x.ndim), 2).reshape(shape, copy=False)
    return viewed(x, shape)


def suits(c: Correlation) -> bool:
    """True for 1x1 over one position."""
    return c.pointwise and c.places == 1


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, 1, ...) from x (N, G, C, 1, ...), w (G, O, C) and bias (G, O) or None."""
    _multiply(c, w, x, bias, y)


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, 1, ...) from dy (N, G, O, 1, ...), reading weights as they lie."""
    _multiply(c, w.swapaxes(1, 2), dy, None, dx)


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, 1, ...), the adjoint of `forward` in w, for each of R requests.

    `rows` says how many samples each request has: they are one product for some of the lines of dw, which
    threads share. Where each has one sample there are no sums, and several requests are one call.
    """
    right, left = (a.reshape(*a.shape[:3], copy=False) for a in (x, dy))
    found: Array = dw.reshape(dw.shape[:4], copy=False)
    if found.strides[3] != found.itemsize:
        # BLAS writes lines whose numbers lie side by side.
        found, left, right = found.swapaxes(2, 3), right, left
    lines, numbers = found.shape[2:]

    def block(requests: slice, own: slice, span: slice) -> None:
        made = found[requests, :, span]
        if own.stop - own.start == len(made):
            np.multiply(left[own, :, span, None], right[own, :, None], out=made)
            # Of one sample there is nothing to add but 0, for which `matmul` takes 50 times as long.
            made += 0
        else:
            np.matmul(left[own, :, span].transpose(1, 2, 0), right[own].swapaxes(0, 1), out=made[0])

    cuts: Iterable[tuple[slice, slice, slice]]
    if all(count == 1 for count in rows):
        each = slices(len(rows), max(1, OUTER // (c.groups * lines * numbers)))
        spans = list(slices(lines, _lines(c, lines, numbers, 1)))
        cuts = ((requests, requests, span) for requests in each for span in spans)
    else:
        cuts = (
            (slice(request, request + 1), own, span)
            for request, own in enumerate(samples_of(rows))
            for span in slices(lines, _lines(c, lines, numbers, own.stop - own.start))
        )
    for_each(block, cuts, c.flops * len(x))


def _lines(c: Correlation, lines: int, numbers: int, samples: int) -> int:
    """Lines, of so many numbers each, of one call of the gradient of the weight."""
    if samples == 1:
        return max(1, OUTER // (c.groups * numbers))
    shared = -(-lines // SHARES) if c.flops * samples >= SHARED_FLOPS else lines
    return max(1, min(shared, MOST_WORK // max(1, c.groups * numbers * samples)))


def gradient(c: Correlation, dw: Array) -> Array | None:
    """dw (R, G, O, C, *K) as (R, G, O, C·K), if it lies in memory so; with channels last K·C."""
    if c.channels_last:
        dw = dw.transpose(0, 1, 2, *range(4, dw.ndim), 3)
    return viewed(dw, (*dw.shape[:3], c.channels * c.taps))


def _multiply(c: Correlation, matrix: Array, x: Array, add: Array | None, y: Array) -> None:
    """y = matrix · x + add, a product for each sample and some of the rows and columns of the matrix.

    Those of all samples come one after the other, so that all but the first read them from the cache.
    """
    first = (..., *(0 for _ in c.axes), None)
    factors, results = x[first], y[first]
    samples, (size, depth) = y.shape[0], _sizes(matrix, PART_BYTES // (c.groups * c.itemsize))
    columns = list(slices(matrix.shape[2], depth))

    def block(n: slice, rows: slice) -> None:
        total = results[n, :, rows]
        for own in columns:
            made = arena.part(0, total.shape, total.dtype) if own.start else total
            np.matmul(matrix[:, rows, own], factors[n, :, own], out=made)
            if own.start:
                total += made
        if add is not None:
            total += add[:, rows, None]
        settle(total)

    apart = c.flops * samples >= SHARED_FLOPS and matrix.shape[1] <= size
    each = -(-samples // SHARES) if apart else samples
    each = min(each, MOST_WORK // (c.groups * size * matrix.shape[2]))
    if len(columns) > 1:
        each = min(each, PART_BYTES // (c.groups * size * c.itemsize))
    cuts = product(slices(samples, max(1, each)), slices(matrix.shape[1], size))
    for_each(block, cuts, c.flops * samples)


def _sizes(matrix: Array, most: int) -> tuple[int, int]:
    """Rows and columns of one product: what stays in the second-level cache, in runs that memory likes.

    `most` are the rows whose results a part of the scratch holds, where they are added up.
    """
    groups, rows, columns = matrix.shape
    if matrix.strides[1] > matrix.strides[2]:
        return max(1, ROWS // (groups * columns)), columns
    # Here a column's numbers lie side by side.
    if groups * rows * columns <= WHOLE:
        return rows, columns
    width = max(1, min(rows, WIDTH, most))
    return width, max(1, ROWS // (groups * width))

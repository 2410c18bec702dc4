"""Layers of one window: it is the whole input, as of a fully connected layer written as a convolution.

In memory such a sample is its window, so that the layer is one of 1x1 over a single position, with all
taps as channels: nothing is gathered, and nothing scattered. With channels last they are in the order of
their taps, and weights have to be as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis
from engine.kernels import direct
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.nan import settle
from engine.kernels.requests import SHARES, samples_of
from engine.kernels.viewing import viewed
from engine.threads import for_each

Array = NDArray[Any]

ROWS = 1 << 18
"""Weights in the rows of a product for several samples: they are read from the second-level cache."""

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
    """Write dw (R, G, O, C), the adjoint of `forward` in w, for each of R requests.

    `rows` says how many samples each request has: they are one product for some of the outputs, which
    threads share.
    """
    inputs, upstream = (a.reshape(*a.shape[:3], copy=False).swapaxes(0, 1) for a in (x, dy))

    def block(request: int, own: slice, g: int, o: slice) -> None:
        made, left, right = dw[request, g, o], upstream[g, own, o].T, inputs[g, own]
        if made.strides[-1] != made.itemsize:
            # BLAS writes rows whose numbers lie side by side.
            made, left, right = made.T, right.T, left.T
        if left.shape[1] != 1:
            np.matmul(left, right, out=made)
            return
        # Of one sample there is nothing to add but 0, for which `matmul` takes 50 times as long.
        np.multiply(left, right, out=made)
        made += 0

    cuts = (
        (request, own, g, o)
        for request, own in enumerate(samples_of(rows))
        for g in range(c.groups)
        for o in direct.slices(c.outputs, _outputs(c, own.stop - own.start))
    )
    for_each(block, cuts, c.flops * len(x))


def _outputs(c: Correlation, samples: int) -> int:
    """Outputs of one product of the gradient of the weight."""
    fitting = MOST_WORK // max(1, c.channels * samples)
    return max(1, min(-(-c.outputs // SHARES), fitting))


def gradient(c: Correlation, dw: Array) -> Array | None:
    """dw (R, G, O, C, *K) as (R, G, O, C·K), if it lies in memory so; with channels last K·C."""
    if c.channels_last:
        dw = dw.transpose(0, 1, 2, *range(4, dw.ndim), 3)
    return viewed(dw, (*dw.shape[:3], c.channels * c.taps))


def _multiply(c: Correlation, matrix: Array, x: Array, add: Array | None, y: Array) -> None:
    """y = matrix · x + add, a product for each sample and group, and some of the rows."""
    first = (..., *(0 for _ in c.axes), None)
    factors, results = x[first], y[first]

    def block(n: slice, rows: slice) -> None:
        made = results[n, :, rows]
        np.matmul(matrix[:, rows], factors[n], out=made)
        if add is not None:
            made += add[:, rows, None]
        settle(made)

    samples, size = y.shape[0], matrix.shape[1]
    # Columns that lie side by side are read as they lie, by all rows.
    if matrix.strides[1] > matrix.strides[2]:
        size = max(1, ROWS // (c.groups * matrix.shape[2]))
    each = samples if c.flops * samples < SHARED_FLOPS else -(-samples // SHARES)
    each = min(each, MOST_WORK // (c.groups * size * matrix.shape[2]))
    cuts = product(direct.slices(samples, max(1, each)), direct.slices(matrix.shape[1], size))
    for_each(block, cuts, c.flops * samples)

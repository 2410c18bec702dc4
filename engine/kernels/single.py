"""Layers of one window: it is the whole input, as of a fully connected layer written as a convolution.

In memory such a sample is its window, so that the layer is one of 1x1 over a single position, with all
taps as channels: nothing is gathered, and nothing scattered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis
from engine.kernels import direct
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.nan import settle
from engine.kernels.requests import SHARES
from engine.threads import for_each

Array = NDArray[Any]


@lru_cache(maxsize=4096)
def window(c: Correlation) -> Correlation | None:
    """The same as 1x1 over one position; None where there are several windows, or one is not all of x."""
    if c.pointwise or c.channels_last or c.mode != "zeros" or c.wanted == "winograd":
        return None
    if any(a.out > 1 or a.kernel != a.size or a.dilation > 1 or a.low or a.high for a in c.axes):
        return None
    axes = tuple(Axis(1, 1, 1, 1, 0, 0, 1) for _ in c.axes)
    return replace(c, axes=axes, channels=c.channels * c.taps)


def column(c: Correlation, x: Array) -> Array | None:
    """x (N, G, C, *S) as (N, G, C·K, 1, ...), if it lies in memory so."""
    shape = (*x.shape[:2], c.channels * c.taps, *(1 for _ in c.axes))
    try:
        return x.reshape(shape, copy=False)
    except ValueError:
        return None


def suits(c: Correlation) -> bool:
    """True for 1x1 over one position."""
    return c.pointwise and c.places == 1


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, 1, ...) from x (N, G, C, 1, ...), w (G, O, C) and bias (G, O) or None."""
    _multiply(c, w, x, bias, y)


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, 1, ...) from dy (N, G, O, 1, ...), reading weights as they lie."""
    _multiply(c, w.swapaxes(1, 2), dy, None, dx)


def _multiply(c: Correlation, matrix: Array, x: Array, add: Array | None, y: Array) -> None:
    """y = matrix · x + add, a product for each sample and group."""
    first = (..., *(0 for _ in c.axes), None)
    factors, results = x[first], y[first]

    def block(n: slice) -> None:
        made = results[n]
        np.matmul(matrix, factors[n], out=made)
        if add is not None:
            made += add[..., None]
        settle(made)

    samples = y.shape[0]
    each = samples if c.flops * samples < SHARED_FLOPS else -(-samples // SHARES)
    for_each(block, ((n,) for n in direct.slices(samples, max(1, each))), c.flops * samples)

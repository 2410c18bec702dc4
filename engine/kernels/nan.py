"""One bit pattern for every NaN: sign and payload depend on where in a vector it was made."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import block_tile, ranges, tiles
from engine.threads import for_each

Array = NDArray[Any]

BLOCK = 1 << 18
"""Numbers looked over at a time."""

LOOKING = 3
"""Work that takes as long as looking at one number."""


def settle_nan(array: Array) -> None:
    """Give every NaN of a contiguous array the same bits; integers have none."""
    if array.dtype.kind != "f" or array.size == 0:
        return
    numbers = array.reshape(-1, copy=False)
    if numbers.size <= BLOCK:
        settle(numbers)
        return
    cuts = ranges(numbers.size, BLOCK)
    for_each(lambda lo, hi: settle(numbers[lo:hi]), cuts, LOOKING * numbers.size)


def settle(numbers: Array) -> None:
    """`settle_nan` for a block of floats of any strides, which is quickest while it is in the cache."""
    if has_nan(numbers):
        for box in tiles(numbers.shape, block_tile(numbers.shape, BLOCK)):
            part = numbers[tuple(slice(*span) for span in box)]
            part[np.isnan(part)] = np.nan


def squares(numbers: Array) -> float:
    """The sum of the squares, infinite or NaN if any of these floats is."""
    return float(np.vecdot(numbers, numbers).sum())


def may_be_nan(weights: float, inputs: float, dtype: np.dtype[Any]) -> bool:
    """False if no sum of products of weights and inputs can be NaN, nor with a bias among the weights.

    Both are sums of `squares`. The root of their product bounds each such sum, and each part of it (Cauchy
    and Schwarz); a fourth of the largest number leaves room for how all of these are rounded.
    """
    return not sqrt(weights) * sqrt(max(inputs, 1)) <= np.finfo(dtype).max / 4


def has_nan(numbers: Array) -> bool:
    """True if any of these floats is NaN."""
    # A NaN is the minimum of whatever it is among, and differs from itself; sums would take twice as long.
    least = np.minimum.reduce(numbers, axis=None, initial=np.inf)
    return bool(least != least)

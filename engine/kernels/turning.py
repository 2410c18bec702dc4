"""Weights in another order of their axes, laid out by several threads.

Layouts as HWIO have rows of outputs where correlations read rows of taps. Numbers that are a power of two
apart in memory, as those of 512 channels, share lines of the cache, each of which is then read anew for
every number on it. So such weights go by way of the scratch, where rows lie an odd number of lines apart.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.direct import part, slices
from engine.kernels.gathering import as_items
from engine.kernels.products import LINE
from engine.threads import aligned, for_each

Array = NDArray[Any]

COPIED = 64
"""Channels whose weights are laid out anew in one call."""

COPYING = 96
"""Work that takes as long as copying one number from a place of its own."""

BLOCK = 1 << 16
"""Weights that one copy lays out in as short a time as several."""

ROWS_BYTES = 1 << 19
"""Rows in the scratch, of some channels and all taps: they stay in the second-level cache."""

LEAST = 4
"""Channels of these, for which rows are rather shorter."""


def in_rows(weights: Array) -> Array:
    """A view of weights (G, C, O, *K) as an array of its own, each thread copying some channels."""
    found = aligned(weights.shape, weights.dtype)
    _copy(weights.swapaxes(0, 1), found.swapaxes(0, 1), COPIED, weights.size)
    return found


def laid_out(weights: Array) -> Array:
    """A view (O, C, *K) of contiguous weights as an array in the order of its axes; itself if it is one."""
    if weights.flags.c_contiguous or weights.size <= BLOCK:
        return np.ascontiguousarray(weights)
    found = aligned(weights.shape, weights.dtype)
    source, target = weights, found
    flat, one = _flat(weights), weights.itemsize
    if flat is not None:  # taps lie apart, or in another order, in no layout of any library
        lain = found.reshape(flat.shape)
        if flat.strides[0] == one and flat[0, 0].nbytes * LINE < ROWS_BYTES:
            _turn(flat, lain)
            return found
        if flat.strides[2] == one:
            # All taps of a filter as one.
            source, target = as_items(flat), as_items(lain)
    _copy(source, target, max(1, BLOCK * len(weights) // weights.size), weights.size)
    return found


def _copy(source: Array, target: Array, each: int, size: int) -> None:
    """Copy weights, `size` in all, so many along the first axis at a time."""

    def block(some: slice) -> None:
        target[some] = source[some]

    for_each(block, ((some,) for some in slices(len(source), each)), COPYING * size)


def _flat(weights: Array) -> Array | None:
    """A view (O, C, K), if taps lie so."""
    try:
        return weights.reshape(*weights.shape[:2], -1, copy=False)
    except ValueError:
        return None


def _turn(source: Array, target: Array) -> None:
    """Copy weights (O, C, K) that lie side by side along O to where they do along K."""
    outputs, channels, taps = source.shape
    row = taps * source.itemsize
    wide = min(outputs, max(1, ROWS_BYTES // (LEAST * row)))
    high = min(COPIED, max(1, ROWS_BYTES // (row * (wide + LINE))))
    # Whole lines of the memory in which taps lie side by side.
    high -= high % LINE if high > LINE else 0

    def block(o: slice, c: slice) -> None:
        numbers, place = source[o, c], target[o, c]
        shape = (numbers.shape[1], taps, numbers.shape[0] + LINE)
        rows = part(0, shape, source.dtype)[..., : numbers.shape[0]].transpose(2, 0, 1)
        np.copyto(rows, numbers)
        np.copyto(place, rows)

    cuts = product(slices(outputs, wide), slices(channels, high))
    for_each(block, cuts, COPYING * source.size)

"""Weights in another order of their axes, laid out by several threads.

Layouts as HWIO have rows of outputs where correlations read rows of taps. Numbers that are a power of two
apart in memory, as those of 512 channels, share lines of the cache, each of which is then read anew for
every number on it. So such weights go by way of the scratch, where rows lie an odd number of lines apart.

The residues of a strided layer have some taps of each filter, in runs of a few that lie apart, and each of
them would read all weights. They too go by way of the scratch, once, and from there tap by tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import aligned, part
from engine.geometry import slices
from engine.kernels.gathering import Index, as_items
from engine.kernels.patches import within
from engine.kernels.products import LINE
from engine.kernels.viewing import viewed
from engine.threads import for_each

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

STREWN = 1 << 17
"""Weights of which residues have taps that lie too far apart to be read again and again."""

MANY = 256
"""Numbers of a tap in the scratch from which copying them takes longer than a call."""


def in_rows(weights: Array, residues: Sequence[Index]) -> list[Array]:
    """The taps of weights (G, O, C, *K) that each residue has, as arrays (G, C, O, *taps) of their own.

    Each thread copies some channels.
    """
    views = [weights[within(taps)].swapaxes(1, 2) for taps in residues]
    found = _like(views, weights.dtype)
    if len(residues) > 1 and len(weights) == 1 and weights.size >= STREWN:
        taps, outputs = prod(weights.shape[3:]), weights.shape[1]
        channels = min(weights.shape[2], ROWS_BYTES // (taps * outputs * weights.itemsize))
        if channels * outputs >= MANY and channels * taps >= LINE:
            _part(weights[0], residues, [target[0] for target in found], channels)
            return found
    for view, target in zip(views, found, strict=True):
        _copy(view.swapaxes(0, 1), target.swapaxes(0, 1), COPIED, view.size)
    return found


def taps_before_outputs(
    weights: Array, residues: Sequence[Index], *, channels_last: bool
) -> list[Array]:
    """The taps of weights (O, C, *K) that each residue has, as (C, *taps, O) in memory of their own.

    With channels last they lie there as (*taps, O, C).
    """
    outer = (-2, -1) if channels_last else (-1, 0)
    taken = [np.moveaxis(weights[within(taps)], (0, 1), outer) for taps in residues]
    found = _like(taken, weights.dtype)
    outputs, channels, *kernel = weights.shape
    wide = min(channels, ROWS_BYTES // (outputs * prod(kernel) * weights.itemsize))
    # Channels that lie side by side already need no detour by the scratch.
    runs = channels_last and weights.strides[1] == weights.itemsize
    # Nor do a few numbers, whose rows there would be mostly what they are apart.
    if wide * prod(kernel) >= LINE and not runs:
        _part(weights, residues, [np.moveaxis(each, outer, (1, 0)) for each in found], wide)
    else:
        for view, target in zip(taken, found, strict=True):
            _copy(view, target, 1, view.size)
    return [np.moveaxis(each, -1, 0) for each in found] if channels_last else found


def _like(views: Sequence[Array], dtype: np.dtype[Any]) -> list[Array]:
    """New arrays of the shapes of others, all in one piece of memory: that is more often had again."""
    memory, found = aligned((sum(view.size for view in views),), dtype), []
    for view in views:
        found.append(memory[: view.size].reshape(view.shape))
        memory = memory[view.size :]
    return found


def tap_by_tap(weights: Array) -> Array:
    """Weights (O, C, *K) with an axis of channels last in memory, as (1, O, K·C): a view if they lie so."""
    taps = weights.transpose(0, *range(2, weights.ndim), 1)
    shape = (1, len(weights), weights[0].size)
    found = viewed(taps, shape)
    if found is not None and min(found.strides) > 0:  # BLAS reads nothing backwards
        return found
    turned = taps.strides[0] < taps.strides[-1]
    source = np.moveaxis(taps, 0, -1) if turned else taps
    found = aligned(source.shape, source.dtype)
    _copy(source, found, max(1, BLOCK * len(source) // source.size), source.size)
    return found.reshape(-1, len(weights)).T[None] if turned else found.reshape(shape)


def _part(weights: Array, residues: Sequence[Index], found: Sequence[Array], wide: int) -> None:
    """Copy taps of weights (O, C, *K) to an array (C, O, *taps) for each residue, some channels at once."""

    def block(channels: slice) -> None:
        some = weights[:, channels]
        row = some[0].size
        pitch = (-(-row // LINE) | 1) * LINE
        lain = part(0, (len(some), pitch), some.dtype)[:, :row].reshape(some.shape, copy=False)
        np.copyto(lain, some)
        for taps, target in zip(residues, found, strict=True):
            source, own = lain[within(taps)].swapaxes(0, 1), target[channels]
            for tap in np.ndindex(own.shape[2:]):
                own[:, :, *tap] = source[:, :, *tap]

    cuts = ((some,) for some in slices(weights.shape[1], wide))
    for_each(block, cuts, COPYING * weights.size)


def laid_out(weights: Array) -> Array:
    """A view (O, C, *K) of contiguous weights as an array in the order of its axes; itself if it is one."""
    if weights.flags.c_contiguous or weights.size <= BLOCK:
        return np.ascontiguousarray(weights)
    found = aligned(weights.shape, weights.dtype)
    source, target = weights, found
    flat, one = viewed(weights, (*weights.shape[:2], -1)), weights.itemsize
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

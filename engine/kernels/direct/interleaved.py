"""The gradient of the input of strided images: all residues from one set of copies.

    dx[n, c, a + s·q] = Σ_{m, o} w[o, c, k(a, m)] · dy[n, o, q + d(a, m)]

Inputs of one residue a modulo the stride s meet taps of their own (`phases`), but all of them read the
gradient of the output shifted by the same few places d. So a band of its rows is copied once for each
shift across, not once for each residue, and a shift down is a number of rows further on in the same copies:

    copies (D, O, R + …, Q)   for D shifts across, and bands of R rows of Q inputs of a residue

Each row of taps of a residue is one product, of its taps across side by side as so many copies are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES, part
from engine.geometry import Axis, even, ranges
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.direct.joined import MOST_COLUMNS
from engine.kernels.nan import settle
from engine.kernels.phases import Residue, residues
from engine.kernels.products import UNPACKED, multiply
from engine.kernels.turning import taps_before_outputs
from engine.threads import for_each, get_threads

Array = NDArray[Any]

BAND_BYTES = 1 << 20
"""Of the copies of a band, which the second-level cache holds most of."""

LEAST_COLUMNS = 1024
"""Of a product, in bands for threads: with fewer they rather share the residues of one band."""

LEAST_FLOPS = 24_000_000
"""Of a sample: residues of less work are gathered for several samples at once."""

LEAST_OUTPUTS = 16
"""Of fewer, products have too few numbers for each result, and results of all rows of taps are added."""


class _Shared(NamedTuple):
    """What all residues along an axis share.

    Attributes:
        met: residues that meet any tap, and their windows.
        first: the least shift. shifts: how many there are.
        length: inputs of the longest residue.
    """

    met: tuple[tuple[Residue, Axis], ...]
    first: int
    shifts: int
    length: int


@lru_cache(maxsize=4096)
def _shared(c: Correlation) -> tuple[_Shared, ...]:
    found = []
    for axis in c.axes:
        met = tuple((r, r.window) for r in residues(axis) if r.window is not None)
        first = min(-window.low for _, window in met)
        last = max(window.kernel - 1 - window.low for _, window in met)
        length = max(window.out for _, window in met)
        found.append(_Shared(met, first, last - first + 1, length))
    return tuple(found)


@lru_cache(maxsize=4096)
def suits(c: Correlation) -> bool:
    """True where residues read the same shifts, and a row of all of them fits the scratch."""
    plain = len(c.axes) == 2 and c.groups == 1 and not c.channels_last
    # Where taps lie apart, those of a residue read shifts that do, too.
    if not plain or c.phase_count < 2 or any(axis.dilation != 1 for axis in c.axes):
        return False
    met = all(any(r.window is not None for r in residues(axis)) for axis in c.axes)
    return met and _rows(c) > 0


def pay(c: Correlation) -> bool:
    """True where it takes less time than residues by themselves: measured where BLAS copies operands.

    Those of the smallest maps share products among samples.
    """
    much = c.flops >= LEAST_FLOPS and c.outputs >= LEAST_OUTPUTS
    return much and c.places > MOST_COLUMNS and not UNPACKED


@lru_cache(maxsize=4096)
def _rows(c: Correlation) -> int:
    """Rows of a band, of as many in each as there can be alike; 0 where not even one fits."""
    down, across = _shared(c)
    each = across.length * c.itemsize
    rows = BAND_BYTES // (each * across.shifts * c.outputs) - (down.shifts - 1)
    rows = min(rows, PART_BYTES // (each * c.channels))
    if rows < 1:
        return 0
    halved = c.flops >= SHARED_FLOPS and down.length * across.length >= 2 * LEAST_COLUMNS
    return even(down.length, min(rows, -(-down.length // (2 if halved else 1))))


class _Pair(NamedTuple):
    """A residue down and one across, which meet some inputs.

    Attributes:
        taps: of the window. inputs: of the image.
        rows: of taps, each of which is a product.
        copies: those that the taps across read.
        down: rows of these from the first one on to the first that the first row of taps reads.
    """

    taps: tuple[slice, slice]
    inputs: tuple[slice, slice]
    rows: int
    copies: slice
    down: int

    @property
    def work(self) -> int:
        """Numbers that are read for each input."""
        return self.rows * (self.copies.stop - self.copies.start)


@lru_cache(maxsize=1024)
def _pairs(c: Correlation) -> tuple[_Pair, ...]:
    """The pairs of residues that meet any tap."""
    down, across = _shared(c)
    found = []
    for (row, tall), (column, wide) in product(down.met, across.met):
        first = -wide.low - across.first
        copies = slice(first * c.outputs, (first + wide.kernel) * c.outputs)
        taps, inputs = (row.taps, column.taps), (row.inputs, column.inputs)
        found.append(_Pair(taps, inputs, tall.kernel, copies, -tall.low - down.first))
    return tuple(found)


@lru_cache(maxsize=1024)
def _shares(c: Correlation) -> tuple[tuple[int, ...], ...]:
    """Pairs that a thread goes through: half of the work where a sample is one band and enough for two."""
    pairs = _pairs(c)
    if _rows(c) < _shared(c)[0].length or c.flops < SHARED_FLOPS:
        return (tuple(range(len(pairs))),)
    halves: tuple[list[int], list[int]] = ([], [])
    for number in sorted(range(len(pairs)), key=lambda each: -pairs[each].work):
        min(halves, key=lambda half: sum(pairs[each].work for each in half)).append(number)
    return tuple(map(tuple, halves))


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, 1, C, *S), the adjoint of a correlation in x, from dy (N, 1, O, *P), w (1, O, C·K).

    Zeros are multiplied beside dy, so that a weight that is not finite spoils all inputs of its residues.
    """
    pairs, length = _pairs(c), _shared(c)[0].length
    if len(pairs) < c.phase_count:
        # In order once, which takes less time than every so many numbers for each of those.
        dx[...] = 0
    unfolded = w[0].reshape(c.outputs, c.channels, *c.kernel)
    weights = taps_before_outputs(unfolded, [pair.taps for pair in pairs])

    def block(n: int, lo: int, hi: int, some: Sequence[int]) -> None:
        copies = _copies(c, dy[n, 0], lo, hi)
        for number in some:
            sums = _sums(pairs[number], weights[number], copies, hi - lo)
            settle(sums)
            target = dx[n, 0, :, *pairs[number].inputs][:, lo:hi]
            target[...] = sums[:, : target.shape[1], : target.shape[2]]

    bands = ranges(length, _rows(c))
    samples, shares = dx.shape[0], _shares(c)
    if samples * len(bands) >= get_threads():
        shares = (tuple(range(len(pairs))),)
    blocks = ((n, *band, some) for n in range(samples) for band in bands for some in shares)
    for_each(block, blocks, c.flops * samples)


def _copies(c: Correlation, dy: Array, lo: int, hi: int) -> Array:
    """What the inputs [lo, hi) of residues down read of dy (O, *P): (shifts, O, rows, inputs across)."""
    down, across = _shared(c)
    rows = hi - lo + down.shifts - 1
    found = part(0, (across.shifts, c.outputs, rows, across.length), dy.dtype)
    # All windows along an axis are over the same outputs.
    (_, tall), (_, wide) = down.met[0], across.met[0]
    first = lo + down.first
    read, placed = tall.placed(first, first + rows)
    found[:, :, : placed.start] = 0
    found[:, :, placed.stop :] = 0
    for first, copy in enumerate(found[:, :, placed], across.first):
        columns, own = wide.placed(first, first + across.length)
        copy[..., : own.start] = 0
        copy[..., own.stop :] = 0
        copy[..., own] = dy[:, read, columns]
    return found


def _sums(pair: _Pair, filters: Array, copies: Array, rows: int) -> Array:
    """The gradient (C, rows, inputs across) of a band's inputs of a pair of residues."""
    channels, wide = len(filters), copies.shape[3]
    read = copies.reshape(-1, copies.shape[2] * wide)
    shape = (1, 1, channels, rows * wide)
    sums = part(2, shape, copies.dtype)
    for tap in range(pair.rows):
        start = (pair.down + tap) * wide
        columns = read[None, None, pair.copies, start : start + shape[3]]
        made = part(1, shape, copies.dtype) if tap else sums
        multiply(filters[:, tap].reshape(1, channels, -1), columns, made)
        if tap:
            np.add(sums, made, out=sums)
    return sums.reshape(channels, rows, wide)

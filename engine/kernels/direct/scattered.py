"""The gradient of the input of small maps under many weights: columns of some samples, added tap by tap.

    dx[n, c, i] = Σ_{k, p} m[c, k, n, p]   over p·stride + k·dilation − low = i
    m[c, k, n, p] = Σ_o w[o, c, k] · dy[n, o, p]

Residues turn the weights first, which takes longer than multiplying by them where each has few outputs.
Here one product reads them as they lie, once for all samples that share it, as in `joined`; the columns
that it makes for each channel and tap are few, as outputs are. No zeros are multiplied, so that numbers
that are not finite reach what they are added to and nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES, part
from engine.geometry import even, lengths, ranges
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.direct.joined import SAMPLES, Sizes, agree, compared_bytes
from engine.kernels.nan import settle
from engine.kernels.patches import scatter
from engine.kernels.products import UNPACKED
from engine.threads import for_each, get_threads

Array = NDArray[Any]

LEAST_WEIGHTS = 1 << 17
"""Weights from which turning them takes longer than starting to add column by column."""

LEAST_CHANNELS = 32
"""Channels below which planes that are folded are few enough."""

FEWER = 8
"""Filters for each place from which adding columns takes less time than turning weights, in float32."""

DEEP = 128
"""Filters from which half as many for each place are enough, with channels first: products are most of the
time."""


@lru_cache(maxsize=1024)
def _cut(c: Correlation) -> tuple[int, int]:
    """Samples and channels of one block; no channels where not even one fits the scratch."""
    return next(
        ((samples, found) for samples in (SAMPLES, 1) if (found := _fitting(c, samples))), (0, 0)
    )


def _fitting(c: Correlation, samples: int) -> int:
    """Channels of a block of some samples: at most half of them where two threads share a sample."""
    capacity = PART_BYTES // (samples * c.places * c.itemsize)
    if capacity < max(c.taps, c.outputs):
        return 0
    shares = 2 if c.flops >= SHARED_FLOPS else 1
    return even(c.channels, min(capacity // c.taps, -(-c.channels // shares)))


def suits(c: Correlation) -> bool:
    """True where the columns of all outputs fit the scratch, and windows overlap, on zeros."""
    plain = c.groups == 1 and c.mode == "zeros" and not (c.pointwise or c.disjoint)
    return plain and c.wanted != "winograd" and _cut(c)[1] > 0


def pay(c: Correlation) -> bool:
    """True where it takes less time than what turns the weights."""
    weights = c.outputs * c.channels * c.taps
    if weights < LEAST_WEIGHTS or c.channels < LEAST_CHANNELS:
        return False
    if c.phase_count > 1 and c.itemsize == 4:
        deep = c.outputs >= DEEP and not c.channels_last
        return c.outputs >= FEWER * c.places // (2 if deep else 1)
    # One residue is turned in longer runs, and samples share no product of float64.
    return c.outputs >= 2 * FEWER * c.places


@lru_cache(maxsize=1024)
def _products(c: Correlation) -> frozenset[Sizes]:
    """What `same_bits` is asked of all products that samples may share; none where they may not."""
    samples, channels = _cut(c)
    sizes = [each * c.taps for each in lengths(c.channels, channels)]
    # Smaller products are made in place, and bits then depend on their width.
    large = min(sizes) * c.outputs * c.places > UNPACKED
    if samples == 1 or c.places == 1 or c.itemsize != 4 or not large:
        return frozenset()
    return frozenset((rows, c.outputs, c.places, True) for rows in sizes)


def probe_bytes(c: Correlation) -> int:
    """What comparing the bits of products takes."""
    return compared_bytes(_products(c))


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, 1, C, *S), the adjoint of a correlation in x, from dy (N, 1, O, *P), w (1, O, C·K)."""
    most, each = _cut(c)
    samples, sizes = dx.shape[0], _products(c)
    joint = samples > 1 and bool(sizes) and agree(sizes)
    turned, tile = w[0].T, tuple((0, size) for size in c.positions)

    def block(lo: int, hi: int, first: int, last: int) -> None:
        rows = turned[first * c.taps : last * c.taps]
        columns = (_together if joint else _apart)(c, rows, dy[lo:hi, 0])
        target = dx[lo:hi, :, first:last]
        target[...] = 0
        scatter(columns[:, None], c.axes, tile, c.mode, target)
        settle(target)

    together = ranges(samples, even(samples, min(most, -(-samples // get_threads()))))
    channels = ranges(c.channels, each)
    for_each(block, [(*n, *some) for n in together for some in channels], c.flops * samples)


def _together(c: Correlation, rows: Array, dy: Array) -> Array:
    """Columns (n, c, *K, *P) of some rows of weights (c·K, O) and of dy (n, O, *P), by one product."""
    n, outputs, *positions = dy.shape
    upstream = part(2, (outputs, n, *positions), dy.dtype)
    np.copyto(upstream, dy.swapaxes(0, 1))
    made = part(0, (rows.shape[0], n * c.places), dy.dtype)
    np.matmul(rows, upstream.reshape(outputs, -1), out=made)
    return np.moveaxis(made.reshape(-1, *c.kernel, n, *positions), 1 + len(c.axes), 0)


def _apart(c: Correlation, rows: Array, dy: Array) -> Array:
    """The same by a product for each sample."""
    n, outputs, *positions = dy.shape
    upstream = part(2, dy.shape, dy.dtype)
    np.copyto(upstream, dy)
    made = part(0, (n, rows.shape[0], c.places), dy.dtype)
    np.matmul(rows, upstream.reshape(n, outputs, -1), out=made)
    return made.reshape(n, -1, *c.kernel, *positions)

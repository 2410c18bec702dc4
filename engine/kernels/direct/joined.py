"""Correlation of small maps under many weights, several samples to a product.

A map of 7×7 gives a product 49 columns, and reading the weights into panels then takes as long as
multiplying by them. Columns of several samples side by side share the panels. But the last bits of a
product may depend on its width, and a sample's bits must not depend on its neighbours. BLAS takes columns
a register at a time and adds up each of them in an order of its own; only its kernels for the last few
columns may have another. OpenBLAS's for float32 and 512-bit vectors have the same; those for Haswell and
Zen do not, nor do those for float64.

That is what this BLAS does, and no promise of BLAS. So before the first product of a size, `same_bits`
multiplies random numbers, each sample alone and any number of them together, and compares all bits. Samples
share products only where they agree: the results are those of single products in any case. Where kernels
are known to differ, such layers are gathered as all others are, in fewer and shorter copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import blas
from engine.arena import PART_BYTES, part
from engine.geometry import even, lengths, ranges
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.nan import settle
from engine.kernels.patches import inside, within
from engine.kernels.products import IN_PLACE, UNPACKED
from engine.threads import check_stop, for_each, get_threads

Array = NDArray[Any]
Range = tuple[int, int]
Sizes = tuple[int, int, int] | tuple[int, int, int, bool]
"""Of a product, as `same_bits` takes them."""

SAMPLES = 4
"""Samples of a product: more gain little, and leave less to share among threads."""

MOST_COLUMNS = 64
"""Columns of a sample above which its own products are nearly as fast."""

UNLIKE = blas.columns_are_unlike()
"""Whether products of several samples need not be compared with those of each, since they differ."""

DRAWN = 65_521
"""Random weights, over and over: a prime, so that no two rows are alike."""


@lru_cache(maxsize=4096)
def suits(c: Correlation) -> bool:
    """True where a sample has few columns, and samples may share the panels BLAS reads weights through."""
    if UNLIKE:
        return False
    columns = c.places
    plain = c.groups == 1 and c.itemsize == 4 and c.mode == "zeros" and not c.pointwise
    plain = plain and 1 < columns <= MOST_COLUMNS and all(a.stride <= a.kernel for a in c.axes)
    if not plain or c.outputs * c.channels * c.taps <= IN_PLACE:
        return False
    fits = max(c.taps, c.outputs) * SAMPLES * columns * c.itemsize <= PART_BYTES
    return fits and min(map(prod, _products(c))) * columns > UNPACKED


def _chunk(c: Correlation) -> int:
    """Channels of one product, so that the patches of all its samples fit the scratch."""
    return even(c.channels, PART_BYTES // (c.taps * SAMPLES * c.places * c.itemsize))


def _shares(c: Correlation) -> tuple[Range, ...]:
    """Outputs of one product: halves where a sample is work enough for two threads."""
    return ranges(c.outputs, -(-c.outputs // 2) if c.flops >= SHARED_FLOPS else c.outputs)


def _products(c: Correlation) -> set[tuple[int, int]]:
    """Rows and depths of all products."""
    depths = lengths(c.channels, _chunk(c))
    return {(bottom - top, depth * c.taps) for top, bottom in _shares(c) for depth in depths}


def probe_bytes(c: Correlation) -> int:
    """What comparing the bits of products takes."""
    return compared_bytes((*sizes, c.places) for sizes in _products(c))


def compared_bytes(products: Iterable[Sizes]) -> int:
    """What `agree` takes."""
    if UNLIKE:
        return 0
    numbers = (r * d + (r + d) * 2 * SAMPLES * n for r, d, n, *_ in products)
    return max(numbers, default=0) * 4


def agree(products: Iterable[Sizes]) -> bool:
    """True if `same_bits` is of all these products."""
    return not UNLIKE and all(same_bits(*sizes) for sizes in products)


@lru_cache(maxsize=256)
def same_bits(rows: int, depth: int, columns: int, turned: bool = False) -> bool:
    """True if products of 1 to SAMPLES times as many columns have the same bits in each of them.

    `turned` tells that the left operand is read across its memory.
    """
    rng = np.random.default_rng(0)
    # Drawing a number for each weight would take longer than some of the products.
    shape = (depth, rows) if turned else (rows, depth)
    left = np.resize(rng.standard_normal(DRAWN, np.float32), shape)
    left = left.T if turned else left
    right = rng.standard_normal((depth, SAMPLES, columns), np.float32)
    alone = [_product(left, right[:, n]) for n in range(SAMPLES)]
    return all(
        together[:, k].tobytes() == alone[k].tobytes()
        for n in range(2, SAMPLES + 1)
        for together in [_product(left, right[:, :n].reshape(depth, -1)).reshape(rows, n, -1)]
        for k in range(n)
    )


def _product(left: Array, right: Array) -> Array:
    # All of them together may be the work of ten requests.
    check_stop()
    return np.matmul(left, right)


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, 1, O, *P) from x (N, 1, C, *S), w (1, O, C·K) and bias (1, O) or None."""
    columns, samples = c.places, x.shape[0]
    joint = samples > 1 and agree((*sizes, columns) for sizes in _products(c))
    offset = None if bias is None else bias[0].reshape(-1, *(1,) * len(c.axes))

    def block(lo: int, hi: int, shares: tuple[Range, ...]) -> None:
        bottom = shares[-1][1]
        sums = part(2, (bottom - shares[0][0], (hi - lo) * columns), y.dtype)
        for first, last in ranges(c.channels, _chunk(c)):
            gathered = _gathered(c, x[lo:hi, :, first:last])
            made = sums if first == 0 else part(1, sums.shape, y.dtype)
            for one, end in shares:
                target = made[one - shares[0][0] : end - shares[0][0]]
                weights = w[0, one:end, first * c.taps : last * c.taps]
                for each in _together(hi - lo, columns, joint):
                    np.matmul(weights, gathered[:, each], out=target[:, each])
            if first:
                np.add(sums, made, out=sums)
        found = sums.reshape(-1, hi - lo, *c.positions).swapaxes(0, 1)
        outputs = slice(shares[0][0], bottom)
        target = y[lo:hi, 0, outputs]
        if offset is None:
            target[...] = found
        else:
            np.add(found, offset[outputs], out=target)
        settle(target)

    together = ranges(samples, even(samples, min(SAMPLES, -(-samples // get_threads()))))
    shares = _shares(c)
    groups = [shares] if len(together) >= get_threads() else [(share,) for share in shares]
    for_each(block, [(*n, group) for n in together for group in groups], c.flops * samples)


def _gathered(c: Correlation, x: Array) -> Array:
    """The windows of x (n, 1, C, *S) side by side: (C·K, n·P).

    Each tap of the last axis has a plane of its own, in which all others then are longer runs.
    """
    samples, _, channels = x.shape[:3]
    *leading, last = c.axes
    lengths = [(a.out - 1) * a.stride + a.extent for a in leading]
    planes = part(1, (channels, last.kernel, samples, *lengths, last.out), x.dtype)
    planes.fill(0)
    targets, sources = [], []
    for a, length in zip(leading, lengths, strict=True):
        source, target = a.placed(-a.low, length - a.low)
        sources.append(source)
        targets.append(target)
    inputs = x[:, 0].swapaxes(0, 1)
    for tap in range(last.kernel):
        start, stop, read = inside(last, tap, 0, last.out)
        planes[:, tap][within((*targets, slice(start, stop)))] = inputs[within((*sources, read))]
    gathered = part(0, (channels, *c.kernel, samples, *c.positions), x.dtype)
    channel, tap_, sample, *steps, one = planes.strides
    taps = [a.dilation * step for a, step in zip(leading, steps, strict=True)]
    moves = [a.stride * step for a, step in zip(leading, steps, strict=True)]
    strides = (channel, *taps, tap_, sample, *moves, one)
    np.copyto(gathered, np.ndarray(gathered.shape, x.dtype, planes, 0, strides))
    return gathered.reshape(channels * c.taps, -1)


def _together(samples: int, columns: int, joint: bool) -> Iterator[slice]:
    """The columns of one product: all of them, or those of each sample."""
    step = samples * columns if joint else columns
    return (slice(lo, hi) for lo, hi in ranges(samples * columns, step))

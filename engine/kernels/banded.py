"""Correlation of few channels with few filters, as products with banded matrices.

A product of one filter with gathered patches leaves most of the machine idle. Here a strip of T rows
of outputs of a group is one product. Its right side has the rows of inputs under the strip, each once
for every tap across, moved to where that tap reads. Its left side holds the filters at every place
they take within the strip, a band of them:

    Y[(o, t), p] = Σ_{l, c, j} B[(o, t), (l, c, j)] · X[(l, c, j), p]
    X[(l, c, j), p] = x[c, first + l, p·stride + j·dilation − low]
    B[(o, t), (l, c, j)] = w[o, c, i, j] where l = t·stride + i·dilation, and 0 elsewhere

Rows are gathered once: strips that share some are overlapping views of them. The zeros of the band
cost multiplications, but those run at full rate, and add nothing to a sum of finite numbers. A number
that is not finite would spread over its strip. So one row of each strip is looked over, and where it
is not finite, the sample is done again without such numbers, and what they touch as a plain sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.slabs import Row, row
from engine.threads import PART_BYTES, for_each

Array = NDArray[Any]

STRIP = 4
"""Rows of a strip: higher ones multiply more zeros, lower ones fill fewer vectors."""

BLOCK_BYTES = 3 << 19
"""What is gathered for a block, which is to stay in the second-level cache."""


@dataclass(frozen=True)
class Banding:
    """How a correlation is cut: strips of `height` rows of outputs, which read `reach` of inputs.

    `groups` and `rows` (of outputs) make one block. `index` (O·T, L·C·J) says which of a group's
    weights stands where in the band; one past the last is none. `across` is a row of the slab.
    """

    height: int
    reach: int
    groups: int
    rows: int
    index: NDArray[np.intp]
    across: Row


def suits(c: Correlation) -> bool:
    """True for depthwise correlations of an image of which one strip fits the scratch."""
    plain = len(c.axes) == 2 and c.mode == "zeros" and c.taps > 1
    return plain and c.channels == c.outputs == 1 and _line(c) * _reach(c) <= PART_BYTES


@lru_cache(maxsize=256)
def banding(c: Correlation) -> Banding:
    """How a correlation is cut, from its integers alone."""
    down, height, reach, line = c.axes[0], _height(c), _reach(c), _line(c)
    index = _index(c, height, reach)
    whole = line * ((down.out - 1) * down.stride + down.extent)
    fitting = min(BLOCK_BYTES // whole, PART_BYTES // (index.size * c.itemsize))
    parts = -(-c.groups // max(1, fitting))
    # Blocks alike, and as many as two or four threads share evenly.
    groups = -(-c.groups // (-(-parts // 4) * 4))
    strips = max(1, (PART_BYTES // (line * groups) - reach) // (height * down.stride) + 1)
    return Banding(height, reach, groups, min(down.out, strips * height), index, row(c.axes[1]))


def _height(c: Correlation) -> int:
    return -(-c.axes[0].out // -(-c.axes[0].out // STRIP))


def _reach(c: Correlation) -> int:
    return (_height(c) - 1) * c.axes[0].stride + c.axes[0].extent


def _line(c: Correlation) -> int:
    """Bytes of a group that come of one row of inputs: in the slab, and gathered."""
    laid, across = row(c.axes[1]), c.axes[1]
    return c.channels * (across.kernel * across.out + laid.residues * laid.width) * c.itemsize


def _index(c: Correlation, height: int, reach: int) -> NDArray[np.intp]:
    down, across = c.axes
    offset = np.arange(reach) - np.arange(height)[:, None] * down.stride
    fits = (offset >= 0) & (offset < down.extent) & (offset % down.dilation == 0)
    filters = np.arange(c.outputs * c.channels).reshape(c.outputs, 1, 1, c.channels, 1)
    tap = (offset // down.dilation)[None, :, :, None, None]
    index = (filters * down.kernel + tap) * across.kernel + np.arange(across.kernel)
    index = np.where(fits[None, :, :, None, None], index, c.outputs * c.channels * c.taps)
    return index.reshape(c.outputs * height, reach * c.channels * across.kernel)


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    b = banding(c)

    def block(g: slice, lo: int, hi: int) -> None:
        weights, added = w[g], None if bias is None else bias[g]
        target = y[:, g, :, lo:hi]
        _samples(c, b, x[:, g], weights, added, target, lo)
        for n in () if _finite(b, target) else range(x.shape[0]):
            if not _finite(b, target[n : n + 1]):
                alone = slice(n, n + 1)
                _samples(c, b, x[alone, g], weights, added, target[alone], lo, only_finite=True)
                _settle(c, x[alone, g], weights, added, target[alone], lo)

    cuts = [
        (g, max(0, min(lo, hi - b.height)), hi)
        for g in direct.slices(c.groups, b.groups)
        for lo, hi in ranges(c.positions[0], b.rows)
    ]
    for_each(block, cuts, c.flops * x.shape[0])


def _finite(b: Banding, y: Array) -> bool:
    """False where a row that stands for its strip is not finite; may be for very large numbers."""
    return bool(np.isfinite(np.add.reduce(y[..., :: b.height, :], axis=None)))


def _settle(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array, first: int) -> None:
    """Write into rows [first, …) of y (1, g, O, P, W) what is not finite in a plain sum."""
    last = first + y.shape[3]
    plain = np.empty((*y.shape[:3], *c.positions), y.dtype)
    for tile in c.forward_tiles:
        if tile[0][0] < last and first < tile[0][1]:
            direct.forward_block(c, x, w, bias, plain, tile)
    plain = plain[:, :, :, first:last]
    np.copyto(y, plain, where=~np.isfinite(plain))


def _samples(
    c: Correlation,
    b: Banding,
    x: Array,
    w: Array,
    bias: Array | None,
    y: Array,
    first: int,
    only_finite: bool = False,
) -> None:
    """Write rows [first, …) of y, as (N, g, O, P, W), from x (N, g, C, *S) and w (g, O, C·K).

    With `only_finite`, 0 stands for every input that is not.
    """
    groups, down = x.shape[1], c.axes[0]
    count = (y.shape[3] - 1) * down.stride + down.extent
    start = first * down.stride - down.low
    lo, hi = min(max(0, start), down.size), min(max(0, start + count), down.size)
    rows = direct.part(0, (groups, count, c.channels, c.axes[1].kernel, c.axes[1].out), x.dtype)
    slab = direct.part(1, (groups, c.channels, count, b.across.residues, b.across.width), x.dtype)
    slab.fill(0)
    moves = [
        (slab[:, :, lo - start : hi - start, residue, place], x[..., lo:hi, inputs])
        for residue, place, inputs in b.across.moves
    ]
    copies = list(_copies(b, slab, rows))
    products = list(_products(c, b, _band(b, w), rows, y))
    for n in range(x.shape[0]):
        for target, source in moves:
            target[...] = source[n]
        for target, source in copies:
            np.copyto(target, source)
        if only_finite:
            rows[~np.isfinite(rows)] = 0
        for band, inputs, out in products:
            np.matmul(band, inputs, out=out[n])
        if bias is not None:
            y[n] += bias[:, :, None, None]


def _copies(b: Banding, slab: Array, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Views of rows (g, L, C, J, W), and of the slab (g, C, L, residues, width) that fills them."""
    for t in b.across.taps:
        source, target = slab[:, :, :, t.residue, t.first :], rows[:, :, :, t.taps]
        group, channel, line, one = source.strides
        strides = (group, line, channel, t.step * one, one)
        yield target, as_strided(source, target.shape, strides, writeable=False)


def _band(b: Banding, w: Array) -> Array:
    """The bands (g, O·T, L·C·J) of weights (g, O, C·K)."""
    padded = np.zeros((w.shape[0], w.shape[1] * w.shape[2] + 1), w.dtype)
    padded[:, :-1] = w.reshape(w.shape[0], -1)
    band = direct.part(2, (w.shape[0], *b.index.shape), w.dtype)
    return np.take(padded, b.index, axis=1, out=band, mode="clip")


def _products(
    c: Correlation, b: Banding, band: Array, rows: Array, y: Array
) -> Iterator[tuple[Array, Array, Array]]:
    """Bands, inputs and outputs of the products that write y (N, g, O, P, W) from its `rows`.

    The last strip begins early where strips do not fill the rows of y.
    """
    strips, rest = divmod(y.shape[3], b.height)
    cuts = [(0, strips), *([(y.shape[3] - b.height, 1)] if rest else [])]
    for first, count in cuts:
        inputs = rows[:, first * c.axes[0].stride :]
        step = b.height * c.axes[0].stride * rows.strides[1]
        shape = (rows.shape[0], 1, count, band.shape[2], rows.shape[4])
        moves = (rows.strides[0], 0, step, *rows.strides[-2:])
        out = y[:, :, :, first : first + count * b.height]
        out = out.reshape(*y.shape[:3], count, b.height, y.shape[4], copy=False)
        bands = band.reshape(band.shape[0], c.outputs, 1, b.height, -1)
        yield bands, as_strided(inputs, shape, moves, writeable=False), out

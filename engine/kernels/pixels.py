"""Depthwise correlation of channels-last images, and the gradient of its filters, pixel by pixel.

    y[n, o, p, g] = Σ_{i, j} w[i, j, g] · x[n, o·stride + i·dilation − low, p·stride + j·dilation − low, g]

All channels of a pixel, and of the pixels after it, are consecutive. So a tap is a run of products,
and `einsum` multiplies and adds it in one pass. Padding comes with a slab of the inputs under some
rows of outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.nan import settle
from engine.threads import PART_BYTES, check_stop, for_each

Array = NDArray[Any]

RUN = 1024
"""Numbers that one tap multiplies at a time, about: their sums stay in the first-level cache."""

BLOCK_BYTES = 1 << 20
"""The slab of a block, at most, where one row of outputs needs no more."""

MOST_TAPS = 25
"""Taps above which products with banded matrices are faster."""

LEAST_GROUPS = 8
"""Channels below which a pixel is too short a run."""

SHARES = 4
"""Parts into which the sums of a request are cut, for threads to share."""


def suits(c: Correlation) -> bool:
    """True for depthwise images with channels last of which one row of outputs fits the scratch."""
    plain = len(c.axes) == 2 and c.mode == "zeros" and c.channels_last
    plain = plain and c.channels == c.outputs == 1 and c.taps <= MOST_TAPS
    plain = plain and c.groups >= LEAST_GROUPS
    filters = c.taps * max(RUN, c.groups) * c.itemsize
    return plain and max(filters, _line(c) * c.axes[0].extent) <= PART_BYTES


def _line(c: Correlation) -> int:
    """Bytes of a row of the slab."""
    return _width(c) * c.groups * c.itemsize


def _width(c: Correlation) -> int:
    return (c.axes[1].out - 1) * c.axes[1].stride + c.axes[1].extent


def _rows(c: Correlation) -> int:
    """Rows of outputs of a block."""
    down = c.axes[0]
    return max(1, (min(BLOCK_BYTES, PART_BYTES) // _line(c) - down.extent) // down.stride + 1)


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, 1, *P) from x (N, G, 1, *S), w (G, 1, K) and bias (G, 1) or None."""
    pixels, results = _pixels(x), _pixels(y)
    joined = c.axes[1].stride == 1 and results.strides[2] == c.groups * y.itemsize
    each = max(1, min(RUN // c.groups, c.axes[1].out)) if joined else 1
    filters = np.ascontiguousarray(w.reshape(c.groups, *c.kernel).transpose(1, 2, 0))

    def block(n: int, lo: int, hi: int) -> None:
        slab = _slab(c, pixels[n], lo, hi)
        tiled = direct.part(1, (*c.kernel, each, c.groups), x.dtype)
        tiled[...] = filters[:, :, None]
        whole, rest = divmod(c.axes[1].out, each)
        for first, count, run in ((0, whole, each), (whole * each, 1, rest)):
            if run:
                taps = _taps(c, slab[:, first * c.axes[1].stride :], hi - lo, count, run)
                factors = tiled[:, :, :run].reshape(*c.kernel, -1)
                target = results[n, lo:hi, first : first + count * run]
                target = target.reshape(hi - lo, count, -1, copy=False)
                np.einsum("ijopr,ijr->opr", taps, factors, out=target)
        if bias is not None:
            results[n, lo:hi] += bias[:, 0]
        settle(results[n, lo:hi])

    cuts = [(n, *rows) for n in range(x.shape[0]) for rows in ranges(c.positions[0], _rows(c))]
    for_each(block, cuts, c.flops * x.shape[0])


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, 1, 1, *K), the adjoint of `forward` in w, for each of R requests."""
    pixels, upstream = _pixels(x), _pixels(dy)
    sums = np.zeros((len(rows), SHARES, *c.kernel, c.groups), dw.dtype)

    def block(request: int, share: int, pieces: Sequence[tuple[int, int, int]]) -> None:
        partial = direct.part(1, sums.shape[2:], dw.dtype)
        for n, lo, hi in pieces:
            check_stop()
            slab = _slab(c, pixels[n], lo, hi)
            taps = _taps(c, slab, hi - lo, c.axes[1].out, 1)
            np.einsum("ijopr,opr->ijr", taps, upstream[n, lo:hi], out=partial)
            sums[request, share] += partial

    cuts, start = [], 0
    for request, count in enumerate(rows):
        samples = range(start, start + count)
        pieces = [(n, *r) for n in samples for r in ranges(c.positions[0], _rows(c))]
        shares = ranges(len(pieces), max(1, -(-len(pieces) // SHARES)))
        cuts += [(request, share, pieces[lo:hi]) for share, (lo, hi) in enumerate(shares)]
        start += count
    for_each(block, cuts, c.flops * x.shape[0])
    total = np.add.reduce(sums, axis=1)
    dw[...] = np.moveaxis(total, -1, 1).reshape(dw.shape)


def _pixels(a: Array) -> Array:
    """(N, G, 1, H, W) as (N, H, W, G)."""
    return a[:, :, 0].transpose(0, 2, 3, 1)


def _slab(c: Correlation, x: Array, lo: int, hi: int) -> Array:
    """The inputs of x (H, W, G) under the rows [lo, hi) of outputs, with their padding."""
    down, across = c.axes
    height = (hi - 1 - lo) * down.stride + down.extent
    slab = direct.part(0, (height, _width(c), c.groups), x.dtype)
    slab.fill(0)
    starts = down.input_of(0, lo), across.input_of(0, 0)
    rows, columns = (
        axis.placed(start, start + size)
        for axis, start, size in zip(c.axes, starts, slab.shape, strict=False)
    )
    slab[rows[1], columns[1]] = x[rows[0], columns[0]]
    return slab


def _taps(c: Correlation, slab: Array, rows: int, count: int, run: int) -> Array:
    """Views of the slab: (taps down, taps across, rows, count, numbers of `run` pixels)."""
    down, across = c.axes
    line, pixel, one = slab.strides
    shape = (*c.kernel, rows, count, run * c.groups)
    steps = (down.dilation * line, across.dilation * pixel, down.stride * line)
    return as_strided(slab, shape, (*steps, across.stride * run * pixel, one), writeable=False)

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
that is not finite would spread over its strip, but only as NaN. So results are looked over for NaN while
they are in the cache, and where there is one, the sample is done again without such numbers, and what
they touch as a plain sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import slices
from engine.kernels.correlation import Correlation
from engine.kernels.depthwise.banding import Banding, Part, banding, parts, row_blocks
from engine.kernels.depthwise.bands import views
from engine.kernels.direct import gathered
from engine.kernels.nan import has_nan, settle
from engine.threads import check_stop, for_each

Array = NDArray[Any]


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""

    def block(part: Part, b: Banding, g: slice, spans: Sequence[tuple[int, int]]) -> None:
        inputs, weights, added = x[:, g, ..., part.inputs], w[g], None if bias is None else bias[g]
        for lo, hi in spans:
            outputs = y[:, g, :, lo:hi, part.outputs]
            _rows(part.correlation, b, inputs, weights, added, outputs, lo)

    for_each(block, [cut for part in parts(c) for cut in _cuts(part)], c.flops * x.shape[0])


def _cuts(part: Part) -> list[tuple[Part, Banding, slice, Sequence[tuple[int, int]]]]:
    """Blocks of a part: groups, and ranges of rows of outputs."""
    own = part.correlation
    b, each = banding(own), row_blocks(own)
    return [(part, b, g, spans) for g in slices(own.groups, b.groups) for spans in each]


def _rows(
    c: Correlation, b: Banding, x: Array, w: Array, bias: Array | None, y: Array, first: int
) -> None:
    """Write rows [first, …) of y, as (N, g, O, P, W), from x (N, g, C, *S) and w (g, O, C·K)."""
    for n in _samples(c, b, x, w, bias, y, first):
        alone = slice(n, n + 1)
        _samples(c, b, x[alone], w, bias, y[alone], first, only_finite=True)
        _settle(c, x[alone], w, bias, y[alone], first)
        settle(y[n])


def _settle(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array, first: int) -> None:
    """Write into rows [first, …) of y (1, g, O, P, W) what is not finite in a plain sum."""
    last = first + y.shape[3]
    groups = slices(x.shape[1], c.forward_blocks.groups)
    for g, (down, across) in product(groups, c.forward_tiles):
        lo, hi = max(first, down[0]), min(last, down[1])
        if lo < hi:
            target = y[:, g, :, lo - first : hi - first, slice(*across)]
            plain = np.empty(target.shape, y.dtype)
            added = None if bias is None else bias[g]
            gathered.forward_block(c, x[:, g], w[g], added, plain, ((lo, hi), across))
            np.copyto(target, plain, where=~np.isfinite(plain))


def _samples(
    c: Correlation,
    b: Banding,
    x: Array,
    w: Array,
    bias: Array | None,
    y: Array,
    first: int,
    only_finite: bool = False,
) -> list[int]:
    """Write rows [first, …) of y, as (N, g, O, P, W), from x (N, g, C, *S) and w (g, O, C·K).

    With `only_finite`, 0 stands for every input that is not. Returns the samples with a NaN.
    """
    v = views(c, x.shape[1], first, y.shape[3], x.strides[-1] == x.itemsize)
    v.begin(b, w)
    moves = v.sources(x)
    itself = c.outputs == 1 and y.strides[-1] == y.itemsize
    results = [(each, each.target(y)) for each in v.strips]
    spoilt = []
    for n in range(x.shape[0]):
        check_stop()
        for target, source in moves:
            np.copyto(target, source[n])
        for target, source in v.gathered:
            np.copyto(target, source)
        if only_finite:
            v.rows[~np.isfinite(v.rows)] = 0
        for one, result in results:
            if itself:
                np.matmul(one.band, one.inputs, out=result[n, :, 0])
            else:
                np.matmul(one.band, one.inputs, out=one.made)
                np.copyto(result[n], one.ordered)
        if bias is not None:
            y[n] += bias[:, :, None, None]
        if has_nan(y[n]):
            spoilt.append(n)
    return spoilt

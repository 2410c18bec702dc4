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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import Axis
from engine.kernels import direct
from engine.kernels.banding import Banding, banding, row_blocks
from engine.kernels.correlation import Correlation
from engine.kernels.nan import has_nan, settle
from engine.kernels.patches import inside
from engine.kernels.slabs import copies
from engine.threads import check_stop, for_each

Array = NDArray[Any]


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    b = banding(c)

    def block(g: slice, spans: Sequence[tuple[int, int]]) -> None:
        weights, added = w[g], None if bias is None else bias[g]
        for lo, hi in spans:
            _rows(c, b, x[:, g], weights, added, y[:, g, :, lo:hi], lo)

    cuts = [(g, spans) for g in direct.slices(c.groups, b.groups) for spans in row_blocks(c)]
    for_each(block, cuts, c.flops * x.shape[0])


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
    groups = direct.slices(x.shape[1], c.forward_blocks.groups)
    for g, (down, across) in product(groups, c.forward_tiles):
        lo, hi = max(first, down[0]), min(last, down[1])
        if lo < hi:
            target = y[:, g, :, lo - first : hi - first, slice(*across)]
            plain = np.empty(target.shape, y.dtype)
            added = None if bias is None else bias[g]
            direct.forward_block(c, x[:, g], w[g], added, plain, ((lo, hi), across))
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
    groups, down = x.shape[1], c.axes[0]
    count = (y.shape[3] - 1) * down.stride + down.extent
    start = first * down.stride - down.low
    lo, hi = min(max(0, start), down.size), min(max(0, start + count), down.size)
    rows = direct.part(0, (groups, count, c.channels, c.axes[1].kernel, c.axes[1].out), x.dtype)
    shape = (groups, c.channels, count, b.across.residues, b.across.width)
    beside = direct.part(1, (prod(shape) + groups * prod(y.shape[2:]),), x.dtype)
    slab, out = beside[: prod(shape)].reshape(shape), beside[prod(shape) :]
    taken, placed = x[:, :, :, lo:hi], slice(lo - start, hi - start)
    if b.by_taps:
        rows[:, : placed.start] = rows[:, placed.stop :] = 0
        moves, gathered = list(_moves(c.axes[1], taken.swapaxes(2, 3), rows[:, placed])), []
    else:
        slab.fill(0)
        moves = [
            move
            for residue, place, inputs in b.across.moves
            for move in copies(slab[:, :, placed, residue, place], taken, inputs)
        ]
        gathered = list(_copies(b, slab, rows))
    products = list(_products(c, b, _band(b, w), rows, y, out))
    spoilt = []
    for n in range(x.shape[0]):
        check_stop()
        for target, source in moves:
            target[...] = source[n]
        for target, source in gathered:
            np.copyto(target, source)
        if only_finite:
            rows[~np.isfinite(rows)] = 0
        for one in products:
            one.run(n)
        if bias is not None:
            y[n] += bias[:, :, None, None]
        if has_nan(y[n]):
            spoilt.append(n)
    return spoilt


def _moves(across: Axis, x: Array, rows: Array) -> Iterator[tuple[Array, Array]]:
    """For each tap across, where it stands in rows (g, L, C, J, W), and the inputs it reads there.

    Where it reads none, rows are set to 0.
    """
    for tap in range(across.kernel):
        lo, hi, inputs = inside(across, tap, 0, across.out)
        rows[:, :, :, tap, :lo] = rows[:, :, :, tap, hi:] = 0
        if lo < hi:
            yield from copies(rows[:, :, :, tap, lo:hi], x, inputs)


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


@dataclass(frozen=True, slots=True)
class _Product:
    """Strips of all groups of a block: a product (g, S, O·T, W), and where it goes in each sample.

    `ordered` is the product as (g, O, S, T, W), or None where it is written into the target itself.
    """

    band: Array
    inputs: Array
    product: Array
    ordered: Array | None
    target: Array

    def run(self, n: int) -> None:
        """Write the strips of sample n."""
        if self.ordered is None:
            np.matmul(self.band, self.inputs, out=self.target[n, :, 0])
        else:
            np.matmul(self.band, self.inputs, out=self.product)
            self.target[n] = self.ordered


def _products(
    c: Correlation, b: Banding, band: Array, rows: Array, y: Array, out: Array
) -> Iterator[_Product]:
    """The products that make y (N, g, O, P, W) from its `rows`; `out` has room for one sample.

    The last strip begins early where strips do not fill the rows of y.
    """
    groups, width = rows.shape[0], rows.shape[4]
    strips, rest = divmod(y.shape[3], b.height)
    itself = c.outputs == 1 and y.strides[-1] == y.itemsize
    for first, count in [(0, strips), (y.shape[3] - b.height, 1)][: 2 if rest else 1]:
        inputs = rows[:, first * c.axes[0].stride :]
        step = b.height * c.axes[0].stride * rows.strides[1]
        moves = (rows.strides[0], step, *rows.strides[-2:])
        shape = (groups, count, band.shape[2], width)
        inputs = as_strided(inputs, shape, moves, writeable=False)
        target = y[:, :, :, first : first + count * b.height]
        target = target.reshape(*y.shape[:3], count, b.height, width, copy=False)
        made = out[: prod(target.shape[1:])].reshape(groups, count, -1, width)
        ordered = made.reshape(groups, count, c.outputs, b.height, width).swapaxes(1, 2)
        yield _Product(band[:, None], inputs, made, None if itself else ordered, target)

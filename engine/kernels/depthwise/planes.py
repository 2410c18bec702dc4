"""The gradient of depthwise filters as dot products of planes.

    dw[g, i, j] = Σ_{n, o, p} x[n, g, o·stride + i·dilation − low, p·stride + j·dilation − low]
                              · dy[n, g, o, p]

Inputs lie in a slab with their padding, residues modulo the strides apart. The outputs' gradient lies
in rows of the same pitch, with zeros between them. A tap then is a constant offset, and its sum is
one dot product of two runs of consecutive numbers. Where a zero between rows meets a number that is
not finite, neither is the sum: such sums are made again tap by tap.

NumPy keeps the interpreter's lock for a call of few products, so that threads would take turns. So where
there are several, a call has as many samples as it takes; each product is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import ranges, slices, tiles
from engine.kernels.correlation import Correlation
from engine.kernels.direct.patch_sums import piece_sums
from engine.kernels.kept import kept
from engine.kernels.products import Product
from engine.kernels.requests import samples_of
from engine.kernels.slabs import Copy, copies, in_row, row
from engine.threads import check_stop, for_each, get_threads

Array = NDArray[Any]

LEAST_WORK = 400_000
"""Products of a sample below which patches, or flat planes, take fewer calls and less time."""

FREE = 501
"""Products of a call from which on NumPy gives up the interpreter's lock."""


def suits(c: Correlation) -> bool:
    """True for depthwise correlations of an image of which one row of outputs fits the scratch."""
    plain = len(c.axes) == 2 and c.mode == "zeros" and c.channels == c.outputs == 1
    plain = plain and all(map(in_row, c.axes))
    return plain and _line(c) * c.axes[0].extent <= PART_BYTES


def pay(c: Correlation) -> bool:
    """True where dot products of planes take less time than what else there is, by random layers."""
    return c.flops >= 2 * LEAST_WORK


@lru_cache(maxsize=256)
def blocks(c: Correlation) -> tuple[int, int, int]:
    """Groups and rows of outputs that make one block, and samples of a call."""
    line, height = _line(c), row(c.axes[0]).width
    groups = max(1, min(-(-c.groups // 4), PART_BYTES // (line * height)))
    rows = PART_BYTES // (line * groups) - (height - c.axes[0].out)
    fitting = max(1, PART_BYTES // (line * height * groups))
    samples = min(fitting, -(-FREE // (groups * c.taps)))
    return groups, max(1, min(c.axes[0].out, rows)), samples


def _line(c: Correlation) -> int:
    """Bytes of the slab of a group for one row of outputs."""
    return row(c.axes[1]).width * c.axes[1].stride * c.axes[0].stride * c.itemsize


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, 1, 1, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, G, 1, *S), dy (N, G, 1, *P); `rows` says how many samples each request has.
    """
    groups, height, samples = blocks(c)
    together = samples if get_threads() > 1 else 1

    def block(request: int, n: slice, g: slice) -> None:
        inputs, upstream, target = x[n, g], dy[n, g], dw[request, g]
        target[...] = 0
        for lo, hi in ranges(c.positions[0], height):
            _add_sums(c, inputs[:, :, 0], upstream[:, :, 0, lo:hi], lo, together, target[:, 0, 0])
        if not np.isfinite(target).all():
            target[...] = 0
            _add_plainly(c, inputs, upstream, target)

    cuts = product(enumerate(samples_of(rows)), slices(c.groups, groups))
    for_each(block, ((*own, g) for own, g in cuts), c.flops * x.shape[0])


@dataclass(frozen=True, slots=True)
class Views:
    """Views of the scratch for some samples (n) of a block.

    Attributes:
        slab: the inputs with their padding, residues apart.
        copies: the rows of x of which inputs are copied, and how.
        upstream: the outputs' gradient (n, g, P, W'), of which `outputs` are its rows, `between` zeros.
        products: two operands each, and where the sums go.
        partial: all sums, (n, g, *K).
    """

    slab: Array
    copies: tuple[tuple[slice, Copy], ...]
    outputs: Array
    between: Array
    products: tuple[Product, ...]
    partial: Array

    def begin(self) -> None:
        """Set to 0 what neither inputs nor gradients are copied to."""
        self.slab.fill(0)
        self.between.fill(0)


@kept
def views(c: Correlation, groups: int, first: int, height: int, samples: int, runs: bool) -> Views:
    """This thread's views for rows [first, first + height) of the outputs.

    `runs` is whether rows of x are runs of consecutive numbers.
    """
    down, dtype = c.axes[0], np.dtype(f"f{c.itemsize}")
    v = row(replace(down, low=down.low - first * down.stride, out=height))
    h, outs = row(c.axes[1]), c.axes[1].out
    shape = (samples, groups, v.residues, h.residues, v.width, h.width)
    slab = arena.part(0, shape, dtype)
    upstream = arena.part(1, (samples, groups, height, h.width), dtype)
    partial = arena.part(2, (samples, groups, *c.kernel), dtype)
    run = (height - 1) * h.width + outs
    flat = upstream.reshape(samples, groups, 1, 1, -1)[..., :run]
    moves = tuple(
        (take, copy)
        for (a, place, take), (b, lay, pick) in product(v.moves, h.moves)
        for copy in copies(slab[:, :, a, b, place, lay], c.axes[1].size, pick, runs=runs)
    )
    products = []
    for i, j in product(v.taps, h.taps):
        sums = partial[:, :, i.taps, j.taps]
        source = slab[:, :, i.residue, j.residue, i.first :, j.first :]
        steps = (*source.strides[:2], i.step * source.strides[2], j.step * c.itemsize, c.itemsize)
        products.append((as_strided(source, (*sums.shape, run), steps), flat, sums))
    return Views(slab, moves, upstream[..., :outs], upstream[..., outs:], tuple(products), partial)


def _add_sums(c: Correlation, x: Array, dy: Array, first: int, together: int, dw: Array) -> None:
    """Add to dw (g, *K) what rows [first, …) of the outputs, as dy (N, g, P, W), give with x.

    A call has up to `together` samples, whose sums are added one after another.
    """
    groups, height = dy.shape[1:3]
    for lo, hi in ranges(x.shape[0], together):
        check_stop()
        if lo == 0 or hi - lo < together:
            v = views(c, groups, first, height, hi - lo, x.strides[-1] == x.itemsize)
            v.begin()
        for rows, copy in v.copies:
            np.copyto(copy.target, copy.source(x[lo:hi, :, rows]))
        np.copyto(v.outputs, dy[lo:hi])
        for taps, upstream, sums in v.products:
            np.vecdot(taps, upstream, out=sums)
        for sample in v.partial:
            dw += sample


def _add_plainly(c: Correlation, x: Array, dy: Array, dw: Array) -> None:
    """Add to dw (g, 1, 1, *K) the sums of x (N, g, 1, *S) and dy (N, g, 1, *P), tap by tap."""
    cut = c.weight_blocks
    for g in slices(x.shape[1], cut.groups):
        for n in range(x.shape[0]):
            for tile in tiles(c.positions, cut.tile):
                one = slice(n, n + 1)
                sums = piece_sums(c, x[one, g], dy[one, g], tile)
                dw[g] += sums.reshape(dw[g].shape)

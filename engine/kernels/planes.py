"""The gradient of depthwise filters as dot products of planes.

    dw[g, i, j] = Σ_{n, o, p} x[n, g, o·stride + i·dilation − low, p·stride + j·dilation − low]
                              · dy[n, g, o, p]

Inputs lie in a slab with their padding, residues modulo the strides apart. The outputs' gradient lies
in rows of the same pitch, with zeros between them. A tap then is a constant offset, and its sum is
one dot product of two runs of consecutive numbers. Where a zero between rows meets a number that is
not finite, neither is the sum: such sums are made again tap by tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import ranges, tiles
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.slabs import row
from engine.threads import PART_BYTES, check_stop, for_each

Array = NDArray[Any]


def suits(c: Correlation) -> bool:
    """True for depthwise correlations of an image of which one row of outputs fits the scratch."""
    plain = len(c.axes) == 2 and c.mode == "zeros" and c.channels == c.outputs == 1
    return plain and _line(c) * c.axes[0].extent <= PART_BYTES


@lru_cache(maxsize=256)
def blocks(c: Correlation) -> tuple[int, int]:
    """Groups and rows of outputs that make one block."""
    line, height = _line(c), row(c.axes[0]).width
    groups = max(1, min(-(-c.groups // 4), PART_BYTES // (line * height)))
    rows = PART_BYTES // (line * groups) - (height - c.axes[0].out)
    return groups, max(1, min(c.axes[0].out, rows))


def _line(c: Correlation) -> int:
    """Bytes of the slab of a group for one row of outputs."""
    return row(c.axes[1]).width * c.axes[1].stride * c.axes[0].stride * c.itemsize


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, 1, 1, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, G, 1, *S), dy (N, G, 1, *P); `rows` says how many samples each request has.
    """
    groups, height = blocks(c)

    def block(request: int, samples: slice, g: slice) -> None:
        inputs, upstream, target = x[samples, g], dy[samples, g], dw[request, g]
        target[...] = 0
        for lo, hi in ranges(c.positions[0], height):
            _add_sums(c, inputs[:, :, 0], upstream[:, :, 0, lo:hi], lo, target[:, 0, 0])
        if not np.isfinite(target).all():
            target[...] = 0
            _add_plainly(c, inputs, upstream, target)

    cuts, start = [], 0
    for request, count in enumerate(rows):
        samples = slice(start, start + count)
        cuts += [(request, samples, g) for g in direct.slices(c.groups, groups)]
        start += count
    for_each(block, cuts, c.flops * x.shape[0])


def _add_sums(c: Correlation, x: Array, dy: Array, first: int, dw: Array) -> None:
    """Add to dw (g, *K) what rows [first, …) of the outputs, as dy (N, g, P, W), give with x."""
    groups, height, outs = dy.shape[1:]
    down = replace(c.axes[0], low=c.axes[0].low - first * c.axes[0].stride, out=height)
    v, h = row(down), row(c.axes[1])
    slab = direct.part(0, (groups, v.residues, h.residues, v.width, h.width), x.dtype)
    upstream = direct.part(1, (groups, height, h.width), x.dtype)
    partial = direct.part(2, dw.shape, x.dtype)
    slab.fill(0)
    upstream[:, :, outs:] = 0
    run = (height - 1) * h.width + outs
    flat = upstream.reshape(groups, 1, 1, -1)[..., :run]
    moves = [
        (slab[:, a, b, place, lay], x[:, :, take, pick])
        for (a, place, take), (b, lay, pick) in product(v.moves, h.moves)
    ]
    runs = []
    for i, j in product(v.taps, h.taps):
        sums = partial[:, i.taps, j.taps]
        source = slab[:, i.residue, j.residue, i.first :, j.first :]
        steps = (source.strides[0], i.step * source.strides[1], j.step * x.itemsize, x.itemsize)
        runs.append((as_strided(source, (*sums.shape, run), steps), sums))
    for n in range(x.shape[0]):
        check_stop()
        for target, inputs in moves:
            target[...] = inputs[n]
        upstream[:, :, :outs] = dy[n]
        for taps, sums in runs:
            np.vecdot(taps, flat, out=sums)
        dw += partial


def _add_plainly(c: Correlation, x: Array, dy: Array, dw: Array) -> None:
    """Add to dw (g, 1, 1, *K) the sums of x (N, g, 1, *S) and dy (N, g, 1, *P), tap by tap."""
    cut = c.weight_blocks
    for g in direct.slices(x.shape[1], cut.groups):
        for n in range(x.shape[0]):
            for tile in tiles(c.positions, cut.tile):
                one = slice(n, n + 1)
                sums = direct.weight_sums(c, x[one, g], dy[one, g], tile)
                dw[g] += sums.reshape(dw[g].shape)

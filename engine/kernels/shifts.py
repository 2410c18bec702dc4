"""The gradient of the weight, with the taps of the first axis as shifts of one matrix.

    dw[o, c, i, j…] = Σ_{n, p} dy[n, o, p] · x[n, c, p₀·stride₀ + i·dilation₀ − low₀, …]

Inputs are gathered for the taps of all axes but the first, row by row of the first axis, residues
modulo its stride apart. What its tap i reads for all outputs then is one run of each such row of
numbers, so that its product has a view for an operand, and a fraction of the copies is left.

Products add up a few hundred positions each, which BLAS multiplies where they lie, many in one call of
`matmul`, and their results are added up. With dy turned, positions first, both operands are read as
the registers take them. The order of all sums is the plan's: a request's blocks are summed in shares
that depend on its own samples alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Tile, block_tile, ranges, tiles
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.patches import gather, within
from engine.kernels.products import UNPACKED, spans
from engine.kernels.requests import SHARES, in_shares
from engine.kernels.slabs import Taps, row
from engine.threads import PART_BYTES, check_stop, for_each

Array = NDArray[Any]

MOST_SUMS = 1 << 13
"""Results of a product above which too few positions are added up before they are written."""

LEAST_ROWS = 8
"""Rows of a tile for each row beyond it, which the next tile gathers again."""

LEAST_TURNED = 16
"""Outputs from which turning dy pays for itself."""


@dataclass(frozen=True)
class Shifts:
    """How the gradient is cut: all integers.

    Attributes:
        axes: the axes that are gathered; along the first, taps are residues and outputs rows of inputs.
        taps: the taps of the first axis by residue.
        reach: rows beyond a tile's own that its last taps read.
        groups: groups of one block.
        parts: shares of a request's sums, so that there is work for some threads.
        tile: outputs of one block along each axis.
    """

    axes: tuple[Axis, ...]
    taps: tuple[Taps, ...]
    reach: int
    groups: int
    parts: int
    tile: tuple[int, ...]


@lru_cache(maxsize=1024)
def plan(c: Correlation) -> Shifts | None:
    """How the gradient of a correlation's weight is cut; None where not even one group fits the scratch."""
    first, capacity = c.axes[0], PART_BYTES // c.itemsize
    reach = (first.extent - 1) // first.stride
    held, results = _depth(c) * first.stride, first.kernel * _depth(c) * c.outputs
    # Positions whose products fit the scratch; two more may come of what is left over.
    most = max(0, capacity // results - 2) * _most(c)
    wanted = min(first.out, LEAST_ROWS * max(1, reach))
    fitting = capacity // max(held * (wanted + reach), c.outputs * wanted)
    rest = block_tile(c.positions[1:], max(1, min(fitting, most // wanted)))
    line = prod(rest)
    rows = min(capacity // (held * line) - reach, capacity // (c.outputs * line), most // line)
    rows = min(first.out, rows)
    if rows < 1:
        return None
    rows = -(-first.out // -(-first.out // rows))
    alike = capacity // max(held * line * (rows + reach), c.outputs * line * rows, results)
    groups = min(alike, -(-c.groups // SHARES))
    down = Axis(first.size, first.stride, first.stride, 1, first.low, first.high, first.out + reach)
    return Shifts(
        (down, *c.axes[1:]),
        row(first).taps,
        reach,
        groups,
        max(1, SHARES * groups // c.groups),
        (rows, *rest),
    )


def _depth(c: Correlation) -> int:
    """Rows of one product: the channels and all taps but those of the first axis."""
    return c.channels * c.taps // c.axes[0].kernel


def _most(c: Correlation) -> int:
    """Positions that one product adds up, at most."""
    return UNPACKED // (_depth(c) * c.outputs)


@lru_cache(maxsize=1024)
def _length(positions: int, most: int) -> int:
    """Positions that one product adds up: at most `most`, and a divisor of all if one is near."""
    count = -(-positions // most)
    found = (n for n in range(count, 2 * count) if positions % n == 0)
    return -(-positions // next(found, count))


def suits(c: Correlation) -> bool:
    """True where taps of the first axis are many, products small, and padding is zeros."""
    first = c.axes[0]
    plain = c.mode == "zeros" and 1 < first.kernel >= first.stride and not c.weight_joins
    return plain and _depth(c) * c.outputs <= MOST_SUMS and plan(c) is not None


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, G, C, *S), dy (N, G, O, *P); `rows` says how many samples each request has.
    """
    found = plan(c)
    assert found is not None
    held = c.groups * c.outputs * c.channels * c.taps * found.parts * c.itemsize
    start = 0
    # Sums of many requests at once would be more than a plan counts.
    for lo, hi in ranges(len(rows), max(1, PART_BYTES // held)):
        own = slice(start, start + sum(rows[lo:hi]))
        _requests(c, found, x[own], dy[own], rows[lo:hi], dw[lo:hi])
        start = own.stop


def _requests(
    c: Correlation, found: Shifts, x: Array, dy: Array, rows: Sequence[int], dw: Array
) -> None:
    """`backward_weight` for as many requests as are summed at once."""
    kernel = c.kernel
    shape = (c.groups, kernel[0], _depth(c), c.outputs)
    sums = np.zeros((len(rows), found.parts, *shape), dw.dtype)

    def block(request: int, share: int, g: slice, pieces: Sequence[tuple[int, Tile]]) -> None:
        for n, tile in pieces:
            check_stop()
            _add(c, found, x[n, g], dy[n, g], tile, sums[request, share, g])

    cuts, start, cut = [], 0, list(tiles(c.positions, found.tile))
    for request, count in enumerate(rows):
        pieces = [(n, tile) for n in range(start, start + count) for tile in cut]
        for share, own in enumerate(in_shares(pieces, found.parts)):
            cuts += [(request, share, g, own) for g in direct.slices(c.groups, found.groups)]
        start += count
    for_each(block, cuts, c.flops * x.shape[0])
    total = sums[:, 0] if found.parts == 1 else np.add.reduce(sums, axis=1)
    split = total.reshape(len(rows), c.groups, kernel[0], c.channels, *kernel[1:], c.outputs)
    dw[...] = np.moveaxis(split, (-1, 2), (2, 4))


def _add(c: Correlation, found: Shifts, x: Array, dy: Array, tile: Tile, sums: Array) -> None:
    """Add to sums (g, K₀, C·K', O) what a tile of dy (g, O, *P) gives with x (g, C, *S)."""
    groups, channels = x.shape[:2]
    (lo, hi), *rest = tile
    wide = ((lo, hi + found.reach), *rest)
    sizes = [hi - lo for lo, hi in wide]
    line = prod(sizes[1:])
    columns = direct.part(0, (groups, c.axes[0].stride, channels, *c.kernel[1:], *sizes), x.dtype)
    gather(x[None], found.axes, wide, c.mode, columns.swapaxes(1, 2)[None])
    right = _upstream(dy, tile)
    positions = right.shape[1]
    length = _length(positions, _most(c))
    depth, pitch = sums.shape[2], line * sizes[0] * x.itemsize
    for taps in found.taps:
        own = sums[:, taps.taps]
        for first, last, each in spans(positions, length):
            start = (taps.first * line + first) * x.itemsize + taps.residue * columns.strides[1]
            steps = (columns.strides[0], taps.step * line * x.itemsize, each * x.itemsize)
            shape = (*own.shape[:2], (last - first) // each, depth, each)
            left = np.ndarray(shape, x.dtype, columns, start, (*steps, pitch, x.itemsize))
            factors = right[:, first:last].reshape(groups, 1, shape[2], each, -1)
            out = direct.part(1, (*shape[:4], c.outputs), x.dtype)
            np.matmul(left, factors, out=out)
            own += out[:, :, 0] if shape[2] == 1 else np.add.reduce(out, axis=2)


def _upstream(dy: Array, tile: Tile) -> Array:
    """A tile of dy (g, O, *P) as (g, T, O), turned in memory where that pays for itself."""
    block = np.moveaxis(dy[within(slice(lo, hi) for lo, hi in tile)], 1, -1)
    width = prod(block.shape[1:-1])
    if block.shape[-1] >= LEAST_TURNED:
        turned = direct.part(2, (block.shape[0], width, block.shape[-1]), dy.dtype)
        turned.reshape(block.shape)[...] = block
        return turned
    plain = direct.part(2, (block.shape[0], block.shape[-1], width), dy.dtype)
    np.moveaxis(plain.reshape(*plain.shape[:2], *block.shape[1:-1]), 1, -1)[...] = block
    return plain.swapaxes(1, 2)

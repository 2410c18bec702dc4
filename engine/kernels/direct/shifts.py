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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.blas import multiplies_in_place
from engine.geometry import Axis, ranges, slices
from engine.kernels.correlation import Correlation
from engine.kernels.direct.shifting import Cut, Shifts, cuts, depth, length, most, plan
from engine.kernels.gathering import Gathering, gathering, recipe
from engine.kernels.kept import kept
from engine.kernels.patches import gather
from engine.kernels.products import Product, spans
from engine.kernels.requests import request_shares, samples_of
from engine.kernels.slabs import Taps
from engine.kernels.spacing import READ
from engine.threads import check_stop, for_each

Array = NDArray[Any]

MOST_SUMS = 1 << 13
"""Results of a product above which too few positions are added up before they are written."""

LEAST_GATHERED = 13_000_000
"""Numbers of a sample's patches, times how many there are for one of dy, from which gathering a part of
them saves more than turning dy takes, where BLAS copies operands."""

LEAST_IN_PLACE = 100_000
"""Numbers of a sample's patches from which it does where BLAS multiplies in place."""

LEAST_TURNED = 16
"""Outputs from which turning dy pays for itself."""

LEAST_ROWS = 16
"""Rows of a product from which turning dy pays for itself, where BLAS multiplies in place."""

FEW_ROWS = 2
"""Rows of a product that are too few beside dy, which every product reads again."""

MOST_UNTURNED = 1200
"""Results of a product above which BLAS reads dy unturned more slowly than turned, or packed."""

MOST_ROWS = 64
"""Rows of a product from which multiplying is most of the time, wherever planes of dy lie."""

MANY_OUTPUTS = 32
"""Planes of dy from which they evict each other from the cache, where they share its sets."""


def suits(c: Correlation) -> bool:
    """True where taps of the first axis are many, products small, and padding is zeros."""
    first = c.axes[0]
    plain = c.mode == "zeros" and 1 < first.kernel >= first.stride and not c.weight_joins
    return plain and depth(c) * c.outputs <= MOST_SUMS and plan(c) is not None


def pay(c: Correlation) -> bool:
    """True where shifts take less time than gathered patches, by random layers."""
    if not multiplies_in_place():
        return c.gathered * c.channels * c.taps >= LEAST_GATHERED * c.outputs
    return c.gathered >= LEAST_IN_PLACE and not _low(c)


def _low(c: Correlation) -> bool:
    """True where products have few rows, beside which turning dy, or reading it, takes most of the time."""
    if c.channels_last or c.outputs < LEAST_TURNED:
        return False
    rows, apart = depth(c), c.places * c.itemsize % READ == 0
    if rows < LEAST_ROWS:
        return rows <= FEW_ROWS or (not _reads(c) and (apart or c.itemsize == 4))
    return apart and rows < MOST_ROWS and c.outputs >= MANY_OUTPUTS


def _turned(c: Correlation) -> bool:
    """True where turning dy pays for itself; with channels last it comes turned."""
    if c.outputs < LEAST_TURNED:
        return False
    return c.channels_last or not multiplies_in_place() or not _reads(c)


def _reads(c: Correlation) -> bool:
    """True where products are so small that BLAS reads dy as it lies in less time than turning it takes."""
    return depth(c) < LEAST_ROWS and depth(c) * c.outputs <= MOST_UNTURNED


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, G, C, *S), dy (N, G, O, *P); `rows` says how many samples each request has.
    """
    found = plan(c)
    assert found is not None
    held = c.groups * c.outputs * c.channels * c.taps * found.parts * c.itemsize
    samples = samples_of(rows)
    # Sums of many requests at once would be more than a plan counts.
    for lo, hi in ranges(len(rows), max(1, PART_BYTES // held)):
        own = slice(samples[lo].start, samples[hi - 1].stop)
        _requests(c, found, x[own], dy[own], rows[lo:hi], dw[lo:hi])


def _requests(
    c: Correlation, found: Shifts, x: Array, dy: Array, rows: Sequence[int], dw: Array
) -> None:
    """`backward_weight` for as many requests as are summed at once."""
    kernel = c.kernel
    shape = (c.groups, kernel[0], depth(c), c.outputs)
    sums = np.zeros((len(rows), found.parts, *shape), dw.dtype)

    def block(request: int, share: int, pieces: Sequence[tuple[int, Cut]], g: slice) -> None:
        own = sums[request, share, g]
        for n, cut in pieces:
            check_stop()
            _add(c, found, x[n, g], dy[n, g], cut, own)

    shares = request_shares(rows, cuts(c), found.parts)
    blocks = product(shares, slices(c.groups, found.groups))
    for_each(block, ((*share, g) for share, g in blocks), c.flops * x.shape[0])
    total = sums[:, 0] if found.parts == 1 else np.add.reduce(sums, axis=1)
    split = total.reshape(len(rows), c.groups, kernel[0], c.channels, *kernel[1:], c.outputs)
    dw[...] = np.moveaxis(split, (-1, 2), (2, 4))


def _add(c: Correlation, found: Shifts, x: Array, dy: Array, cut: Cut, sums: Array) -> None:
    """Add to sums (g, K₀, C·K', O) what a tile of dy (g, O, *P) gives with x (g, C, *S)."""
    v = _views(c, cut.axes, x.shape[0], x.strides[-1] == x.itemsize)
    if v.gathering is None:
        gather(x[None], found.axes, cut.inputs, c.mode, v.windows)
    else:
        v.gathering.load(x[cut.source][None])
    np.copyto(v.upstream, dy[cut.upstream])
    for taps, products in v.products:
        own = sums[:, taps]
        for left, right, out in products:
            np.matmul(left, right, out=out)
            own += out[:, :, 0] if out.shape[2] == 1 else np.add.reduce(out, axis=2)


@dataclass(frozen=True)
class _Views:
    """Views of the scratch for tiles of one shape.

    Attributes:
        windows: the inputs of the tile, (1, g, C, stride, *K', *T).
        gathering: what fills them, where they go by way of a slab.
        upstream: the outputs of the tile, (g, O, *T).
        products: for some taps of the first axis each, operands that give their sums (g, taps, n, C·K', O)
            over n runs of positions.
    """

    windows: Array
    gathering: Gathering | None
    upstream: Array
    products: tuple[tuple[slice, tuple[Product, ...]], ...]


@kept
def _views(c: Correlation, axes: tuple[Axis, ...], groups: int, in_rows: bool) -> _Views:
    """This thread's views for tiles that gather `axes`; `in_rows` says that rows of x are consecutive."""
    found, dtype = plan(c), np.dtype(f"f{c.itemsize}")
    assert found is not None
    sizes = tuple(axis.out for axis in axes)
    columns = arena.part(0, (groups, axes[0].kernel, c.channels, *c.kernel[1:], *sizes), dtype)
    windows = columns.swapaxes(1, 2)[None]
    form = recipe(axes, tuple((0, n) for n in sizes), c.itemsize, c.mode)
    slab = not (form.direct and in_rows) and form.slab is not None
    tile = (groups, c.outputs, sizes[0] - found.reach, *sizes[1:])
    upstream, right = _upstream(tile, dtype, _turned(c))
    return _Views(
        windows,
        gathering(form, windows) if slab else None,
        upstream,
        tuple((taps.taps, tuple(_products(c, columns, taps, right))) for taps in found.taps),
    )


def _products(c: Correlation, columns: Array, taps: Taps, right: Array) -> Iterator[Product]:
    """The products of the columns that some taps read, and dy (g, T, O), some positions at a time."""
    groups, sizes, item = columns.shape[0], columns.shape[-len(c.axes) :], columns.itemsize
    count, line = len(range(c.axes[0].kernel)[taps.taps]), prod(sizes[1:]) * item
    for first, last, each in spans(right.shape[1], length(right.shape[1], most(c))):
        start = taps.residue * columns.strides[1] + taps.first * line + first * item
        steps = (columns.strides[0], taps.step * line, each * item, sizes[0] * line, item)
        shape = (groups, count, (last - first) // each, depth(c))
        left = np.ndarray((*shape, each), columns.dtype, columns, start, steps)
        factors = right[:, first:last].reshape(groups, 1, shape[2], each, c.outputs, copy=False)
        yield left, factors, arena.part(1, (*shape, c.outputs), columns.dtype)


def _upstream(shape: tuple[int, ...], dtype: np.dtype[Any], turned: bool) -> tuple[Array, Array]:
    """A place for a tile (g, O, *T) of dy, and the same as (g, T, O): the order in memory if `turned`."""
    groups, outputs, *sizes = shape
    width = prod(sizes)
    if turned:
        matrix = arena.part(2, (groups, width, outputs), dtype)
        return np.moveaxis(matrix.reshape(groups, *sizes, outputs), -1, 1), matrix
    plain = arena.part(2, (groups, outputs, width), dtype)
    return plain.reshape(shape), plain.swapaxes(1, 2)

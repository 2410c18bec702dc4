"""Correlation where channels are last: windows and filters are read as they lie.

    y[n, p, o] = Σ_{k, c} x[n, p·stride + k·dilation − low, c] · w[k, c, o]

A row of the product is a window in the order of memory: all channels of one tap after the other. Weights
are read in that order too, which is how they lie in HWIO and OHWI, and results are pixels. So nothing is
turned number by number, where for rows of channels inputs, weights and results all are. The same rows make
the gradient of the weight, in its own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import Tile, ranges, slices
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.direct import gathered
from engine.kernels.kept import kept
from engine.kernels.nan import settle
from engine.kernels.requests import SHARES, in_shares, samples_of
from engine.kernels.viewing import viewed
from engine.threads import check_stop, for_each, samples_each

Array = NDArray[Any]

LEAST_CHANNELS = 16
"""Channels below which those of a tap are too few to copy as one."""

LEAST_STRIDED = 6
"""The same for strides, where nothing else copies long runs."""

MOST_TAPS = 16
"""Taps of strided windows above which gathering all of them, for products of few outputs, takes longer than
`shifts` do. Of others it always does."""

MANY_OUTPUTS = 64
"""Outputs from which it does not."""

SUMS_FOR_EACH = 1 << 14
"""Weights for each position of a map above which adding their sums takes as long as making them."""


def suits(c: Correlation) -> bool:
    """True for maps with channels last, in one group, of which tiles with all channels fit the scratch."""
    plain = c.channels_last and c.groups == 1 and c.mode == "zeros" and not c.pointwise
    if not plain or c.wanted == "winograd":
        return False
    return c.forward_blocks.channels == c.channels and _samples(c) > 0


@lru_cache(maxsize=4096)
def _samples(c: Correlation) -> int:
    """Samples of a block, at most; none where the inputs under a tile do not fit the scratch."""
    blocks = c.forward_blocks
    under = prod((t - 1) * a.stride + a.extent for a, t in zip(c.axes, blocks.tile, strict=True))
    return min(blocks.samples, PART_BYTES // (under * c.channels * c.itemsize))


def pay(c: Correlation) -> bool:
    """True where it takes less time than rows of channels, by random layers."""
    return c.channels >= (LEAST_STRIDED if _strided(c) else LEAST_CHANNELS) and not _skips(c)


def _skips(c: Correlation) -> bool:
    """Whether inputs lie between windows, which would be copied for nothing."""
    return any(axis.stride > axis.extent for axis in c.axes)


def _strided(c: Correlation) -> bool:
    return any(axis.stride > 1 for axis in c.axes)


def pay_for_weight(c: Correlation) -> bool:
    """True where the gradient of the weight takes less time so."""
    gathers = (_strided(c) and c.taps <= MOST_TAPS) or c.outputs >= MANY_OUTPUTS
    few = c.taps * c.channels * c.outputs <= SUMS_FOR_EACH * c.places
    return c.channels >= LEAST_CHANNELS and gathers and few and not _skips(c)


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, 1, O, *P) from x (N, 1, C, *S), w (1, O, K·C) and bias (1, O) or None.

    x and y have their channels last in memory.
    """
    pixels, results = _pixels(x), _pixels(y)
    columns, most = w[0].T, _samples(c)

    def block(n: slice, tile: Tile, o: slice) -> None:
        target = results[(n, *(slice(lo, hi) for lo, hi in tile), o)]
        v = views(c, tile, len(target))
        v.load(pixels[n])
        made = viewed(target, (len(target), -1, target.shape[-1]))
        out = made
        if out is None:
            out = arena.part(2, (*v.rows.shape[:2], target.shape[-1]), y.dtype)
        for own in slices(target.shape[-1], c.share):
            np.matmul(v.rows, columns[:, o][:, own], out=out[..., own])
        if bias is not None:
            out += bias[0, o]
        settle(out)
        if made is None:
            np.copyto(target, out.reshape(target.shape))

    samples = most if c.flops * len(x) < SHARED_FLOPS else samples_each(len(x), most)
    cuts = list(product(slices(len(x), samples), c.forward_tiles))
    for_each(block, gathered.with_outputs(c, cuts), c.flops * len(x))


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, 1, O, C, *K), the adjoint of `forward` in w, for each of R requests.

    x is (N, 1, C, *S), dy (N, 1, O, *P), both with their channels last in memory; `rows` says how many
    samples each request has.
    """
    samples, pixels, upstream = samples_of(rows), _pixels(x), _pixels(dy)
    # Sums of many requests at once would be more than a plan counts.
    most = PART_BYTES // (SHARES * c.taps * c.channels * c.outputs * c.itemsize)
    for lo, hi in ranges(len(rows), max(1, most)):
        _add(c, pixels, upstream, samples[lo:hi], dw[lo:hi, 0])


def _add(
    c: Correlation, pixels: Array, upstream: Array, samples: Sequence[slice], dw: Array
) -> None:
    """`backward_weight` of pixels (N, *S, C) and upstream (N, *P, O) for requests: dw (R, O, C, *K)."""
    found = dw.transpose(0, *range(3, dw.ndim), 2, 1)
    turned = found.strides[-1] != found.itemsize  # rows of filters, as in OHWI
    size = c.taps * c.channels
    shared = [in_shares(_pieces(c, span), SHARES) for span in samples]
    sums = [
        [_place(c, out, turned), *(_room(c, dw.dtype, turned) for _ in shares[1:])]
        for out, shares in zip(found, shared, strict=True)
    ]

    def block(request: int, share: int, o: slice, pieces: Sequence[tuple[slice, Tile]]) -> None:
        own = sums[request][share]
        own = own[o] if turned else own[:, o]
        for number, (n, tile) in enumerate(pieces):
            check_stop()
            v = views(c, tile, n.stop - n.start)
            v.load(pixels[n])
            left, right = v.rows.reshape(-1, size, copy=False), _passed(upstream, n, tile, o)
            left, right = (right, left) if turned else (left, right)
            for some in slices(len(own), max(1, PART_BYTES // own[0].nbytes)):
                made = arena.part(1, own[some].shape, own.dtype) if number else own[some]
                np.matmul(left.T[some], right, out=made)
                if number:
                    own[some] += made

    jobs = [
        (request, share, o, pieces)
        for request, shares in enumerate(shared)
        for share, pieces in enumerate(shares)
        for o in slices(c.outputs, c.share)
    ]
    for_each(block, jobs, c.flops * sum(span.stop - span.start for span in samples))
    for (whole, *others), shares, out in zip(sums, shared, found, strict=True):
        if not shares:
            out[...] = 0
            continue
        for other in others:
            whole += other
        if not np.may_share_memory(whole, out):
            np.copyto(out, (whole.T if turned else whole).reshape(out.shape, copy=False))


def _place(c: Correlation, out: Array, turned: bool) -> Array:
    """Where sums for out (*K, C, O) go, as (K·C, O) or turned: there, if its rows are runs of numbers."""
    shape = c.taps * c.channels, c.outputs
    there = viewed(out, shape)
    if there is not None:
        there = there.T if turned else there
        if there.strides[0] > there.strides[1] == out.itemsize:
            return there
    return _room(c, out.dtype, turned)


def _room(c: Correlation, dtype: np.dtype[Any], turned: bool) -> Array:
    shape = c.taps * c.channels, c.outputs
    return np.empty(shape[::-1] if turned else shape, dtype)


def _pieces(c: Correlation, span: slice) -> list[tuple[slice, Tile]]:
    """Some samples of a request and a tile of outputs of each, in the request's own order."""
    cuts = ranges(span.stop - span.start, _samples(c))
    return [
        (slice(span.start + lo, span.start + hi), tile)
        for lo, hi in cuts
        for tile in c.forward_tiles
    ]


def _passed(upstream: Array, n: slice, tile: Tile, o: slice) -> Array:
    """Some outputs of a tile of upstream (N, *P, O) as (n·T, o)."""
    given = upstream[(n, *(slice(lo, hi) for lo, hi in tile), o)]
    shape = (prod(given.shape[:-1]), given.shape[-1])
    passed = viewed(given, shape)
    if passed is None:
        passed = arena.part(2, shape, given.dtype)
        passed.reshape(given.shape)[...] = given
    return passed


def _pixels(a: Array) -> Array:
    """A view (N, *S, C) of (N, 1, C, *S)."""
    return a[:, 0].transpose(0, *range(2, a.ndim - 1), 1)


@dataclass(frozen=True, slots=True)
class Views:
    """Views of the scratch for a tile of outputs of n samples.

    Attributes:
        source: where in samples (n, *S, C) the inputs under the tile are. inner: where they go.
        padding: what lies around those.
        under: their windows, (n, *T, *K, C). windows: where these go.
        rows: the same as (n, T, K·C).
    """

    source: tuple[slice, ...]
    inner: Array
    padding: tuple[Array, ...]
    under: Array
    windows: Array
    rows: Array

    def load(self, samples: Array) -> None:
        """Gather the windows of samples (n, *S, C)."""
        for each in self.padding:
            each.fill(0)
        np.copyto(self.inner, samples[self.source])
        np.copyto(self.windows, self.under)


@kept
def views(c: Correlation, tile: Tile, samples: int) -> Views:
    """This thread's views for a tile of outputs of some samples."""
    dtype, sizes = np.dtype(f"f{c.itemsize}"), [hi - lo for lo, hi in tile]
    starts = [axis.input_of(0, lo) for axis, (lo, _) in zip(c.axes, tile, strict=True)]
    lengths = [(size - 1) * a.stride + a.extent for a, size in zip(c.axes, sizes, strict=True)]
    slab = arena.part(1, (samples, *lengths, c.channels), dtype)
    source, padding, inner = [slice(None)], [], slab
    for number, (axis, start) in enumerate(zip(c.axes, starts, strict=True), start=1):
        inputs, place = axis.placed(start, start + lengths[number - 1])
        before = (slice(None),) * number
        around = slice(None, place.start), slice(place.stop, None)
        padding += [inner[(*before, side)] for side in around]
        inner = inner[(*before, place)]
        source.append(inputs)
    n, *along, one = slab.strides
    strides = (
        *(axis.stride * step for axis, step in zip(c.axes, along, strict=True)),
        *(axis.dilation * step for axis, step in zip(c.axes, along, strict=True)),
    )
    shape = (samples, *sizes, *c.kernel, c.channels)
    rows = arena.part(0, (samples, prod(sizes), c.taps * c.channels), dtype)
    return Views(
        tuple(source),
        inner,
        tuple(side for side in padding if side.size),
        as_strided(slab, shape, (n, *strides, one), writeable=False),
        rows.reshape(shape),
        rows,
    )

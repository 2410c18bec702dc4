"""Depthwise correlation of images and volumes, and the gradient of its filters, pixel by pixel.

    y[n, o, p, g] = Σ_{i, j} w[i, j, g] · x[n, o·stride + i·dilation − low, p·stride + j·dilation − low, g]

All channels of a pixel, and of the pixels after it, are consecutive. So a tap is a run of products,
and `einsum` multiplies and adds it in one pass. Padding comes with a slab of the inputs under some
rows of outputs, or planes of them.

Small maps of many channels are worth it where channels come first, too: on their way into the slab
inputs are turned, and results on their way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import ranges, slices
from engine.kernels.correlation import Correlation
from engine.kernels.depthwise.cuts import Cut, cuts, line, span, together, width
from engine.kernels.kept import kept
from engine.kernels.nan import settle
from engine.kernels.requests import SHARES, add_shares, at_once, request_shares
from engine.kernels.spacing import READ, pitch
from engine.threads import check_stop, for_each

Array = NDArray[Any]

TAP_RUN = 1024
"""Numbers that one tap multiplies at a time, about: their sums stay in the first-level cache."""

LEAST_GROUPS = 8
"""Channels below which a pixel is too short a run."""

FORWARD = {2: "ijnopr,ijr->nopr", 3: "ijknopqr,ijkr->nopqr"}
"""Sums over the taps of images, and of volumes; see `Run`."""

WEIGHT = {2: "ijnopr,nopr->nijr", 3: "ijknopqr,nopqr->nijkr"}
"""Sums over the outputs of each."""

WORK = 4
"""Work of an operation beside one of a product, which goes at several times the rate."""

TURNED = 256
"""Channels that are turned at a time, so that their lines are in the cache until each is used up."""


def suits(c: Correlation) -> bool:
    """True for depthwise images and volumes of which one row of outputs fits the scratch."""
    plain = len(c.axes) in FORWARD and c.mode == "zeros"
    plain = plain and c.channels == c.outputs == 1 and c.groups >= LEAST_GROUPS
    filters = c.taps * max(TAP_RUN, c.groups) * c.itemsize
    slab = line(c) * prod(axis.extent for axis in c.axes[:-1])
    return plain and max(filters, slab) <= PART_BYTES


def _apart(c: Correlation) -> int:
    """Numbers from a pixel of turned results to the next."""
    return pitch(c.groups, c.itemsize, READ)


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, 1, *P) from x (N, G, 1, *S), w (G, 1, K) and bias (G, 1) or None."""
    pixels, results = _pixels(x), _pixels(y)
    apart = results.strides[-2] if c.channels_last else _apart(c) * c.itemsize
    joined = c.axes[-1].stride == 1 and apart == c.groups * y.itemsize
    each = max(1, min(TAP_RUN // c.groups, c.axes[-1].out)) if joined else 1
    filters = np.ascontiguousarray(np.moveaxis(w.reshape(c.groups, *c.kernel), 0, -1))
    summing = FORWARD[len(c.axes)]

    def block(n: slice, cut: Cut) -> None:
        v = views(c, n.stop - n.start, cut.outputs, cut.stands, each)
        v.load(pixels[n, *cut.source])
        np.copyto(v.tiled, filters[..., None, :])
        target = results[n, *cut.target]
        made = target if v.made is None else v.made
        for run in v.runs:
            sums = made[..., run.pixels, :].reshape(run.shape, copy=False)
            np.einsum(summing, run.taps, run.factors, out=sums)
        if bias is not None:
            made += bias[:, 0]
        settle(made)
        if made is not target:
            np.copyto(target, made)

    blocks = product(slices(x.shape[0], together(c, x.shape[0])), cuts(c))
    for_each(block, blocks, WORK * c.flops * x.shape[0])


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, 1, 1, *K), the adjoint of `forward` in w, for each of R requests."""
    for requests, own in at_once(rows, SHARES * dw[:1].nbytes):
        _summed(c, x[own], dy[own], rows[requests], dw[requests])


def _summed(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """`backward_weight` for as many requests as are summed at once."""
    pixels, upstream = _pixels(x), _pixels(dy)
    sums = np.zeros((len(rows), SHARES, *c.kernel, c.groups), dw.dtype)
    summing = WEIGHT[len(c.axes)]
    some = together(c, dy.shape[0])

    def block(request: int, share: int, pieces: Sequence[tuple[int, Cut]]) -> None:
        for lo, hi in ranges(len(pieces), some):
            check_stop()
            first, cut = pieces[lo]
            n = slice(first, first + hi - lo)
            v = views(c, hi - lo, cut.outputs, cut.stands, 1)
            v.load(pixels[n, *cut.source])
            (run,) = v.runs
            passed = v.turned(upstream[n, *cut.target])
            partial = arena.part(1, (hi - lo, *c.kernel, c.groups), sums.dtype)
            np.einsum(summing, run.taps, passed, out=partial)
            for each in partial:
                sums[request, share] += each

    for_each(block, request_shares(rows, cuts(c), SHARES), WORK * c.flops * x.shape[0])
    np.copyto(np.moveaxis(dw[:, :, 0, 0], 1, -1), add_shares(sums))


def _pixels(a: Array) -> Array:
    """(N, G, 1, *S) as (N, *S, G)."""
    return np.moveaxis(a[:, :, 0], 1, -1)


@dataclass(frozen=True, slots=True)
class Run:
    """Runs of pixels alike.

    Attributes:
        taps: what they read, (*taps along each axis, n, *outputs along each but the last, count, numbers).
        factors: what each is multiplied with, (*taps along each axis, numbers of a run).
        pixels: where in a row of outputs they lie.
        shape: of their outputs, (n, *outputs along each axis but the last, count, numbers of a run).
    """

    taps: Array
    factors: Array
    pixels: slice
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Views:
    """Views of the scratch for blocks of one shape.

    Attributes:
        inner: the inputs in the slab, (n, *S, G).
        padding: what lies around them.
        tiled: the filters, once for each pixel of a run.
        runs: all runs of a row, and those that are left over.
        made: room for results that are to be turned, (n, *P, G); None where channels are last.
        parts: channels that are turned at a time.
    """

    inner: Array
    padding: tuple[Array, ...]
    tiled: Array
    runs: tuple[Run, ...]
    made: Array | None
    parts: tuple[slice, ...]

    def load(self, inputs: Array) -> None:
        """Lay the inputs (n, *S, G) of a block out."""
        for each in self.padding:
            each.fill(0)
        self._copy(self.inner, inputs)

    def turned(self, passed: Array) -> Array:
        """Gradients (n, *P, G) of a block, with channels last in memory."""
        if self.made is None:
            return passed
        self._copy(self.made, passed)
        return self.made

    def _copy(self, target: Array, source: Array) -> None:
        for channels in self.parts:
            np.copyto(target[..., channels], source[..., channels])


@kept
def views(
    c: Correlation,
    samples: int,
    outputs: tuple[int, ...],
    stands: tuple[tuple[int, int], ...],
    each: int,
) -> Views:
    """This thread's views for so many samples, and outputs of each along each axis but the last.

    Runs have `each` pixels. Inputs stand in the parts `stands` of the slab, along those axes.
    """
    across, dtype = c.axes[-1], np.dtype(f"f{c.itemsize}")
    spans = [span(axis, number) for axis, number in zip(c.axes, outputs, strict=False)]
    slab = arena.part(0, (samples, *spans, width(c), c.groups), dtype)
    _, place = across.placed(-across.low, width(c) - across.low)
    inner, padding = slab, []
    for axis, (start, stop) in enumerate((*stands, (place.start, place.stop))):
        before = (slice(None),) * (1 + axis)
        padding += [inner[*before, :start], inner[*before, stop:]]
        inner = inner[*before, start:stop]
    tiled = arena.part(1, (*c.kernel, each, c.groups), dtype)
    whole, rest = divmod(across.out, each)
    runs = tuple(
        _run(c, slab, tiled[..., :run, :], outputs, first, count)
        for first, count, run in ((0, whole, each), (whole * each, 1, rest))
        if run
    )
    made: Array | None = None
    parts: tuple[slice, ...] = (slice(None),)
    if not c.channels_last:
        made = arena.part(2, (samples, *outputs, across.out, _apart(c)), dtype)[..., : c.groups]
        parts = tuple(slices(c.groups, TURNED))
    return Views(inner, tuple(part for part in padding if part.size), tiled, runs, made, parts)


def _run(
    c: Correlation, slab: Array, tiled: Array, outputs: tuple[int, ...], first: int, count: int
) -> Run:
    """Views for `count` runs of a row, from the pixel `first` on; `tiled` is their filters."""
    each = tiled.shape[-2]
    inputs = slab[..., first * c.axes[-1].stride :, :]
    sample, *steps, one = slab.strides
    taps_apart = (axis.dilation * step for axis, step in zip(c.axes, steps, strict=True))
    *outputs_apart, pixel = (axis.stride * step for axis, step in zip(c.axes, steps, strict=True))
    shape = (slab.shape[0], *outputs, count, each * c.groups)
    strides = (*taps_apart, sample, *outputs_apart, each * pixel, one)
    taps = as_strided(inputs, (*c.kernel, *shape), strides, writeable=False)
    factors = tiled.reshape(*c.kernel, -1, copy=False)
    return Run(taps, factors, slice(first, first + count * each), shape)

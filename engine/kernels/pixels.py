"""Depthwise correlation of images, and the gradient of its filters, pixel by pixel.

    y[n, o, p, g] = Σ_{i, j} w[i, j, g] · x[n, o·stride + i·dilation − low, p·stride + j·dilation − low, g]

All channels of a pixel, and of the pixels after it, are consecutive. So a tap is a run of products,
and `einsum` multiplies and adds it in one pass. Padding comes with a slab of the inputs under some
rows of outputs.

Small maps of many channels are worth it where channels come first, too: on their way into the slab
inputs are turned, and results on their way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.arena import PART_BYTES
from engine.geometry import ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.kept import kept
from engine.kernels.nan import settle
from engine.kernels.requests import SHARES, request_shares
from engine.kernels.spacing import READ, pitch
from engine.threads import check_stop, for_each

Array = NDArray[Any]

RUN = 1024
"""Numbers that one tap multiplies at a time, about: their sums stay in the first-level cache."""

BLOCK_BYTES = 1 << 20
"""The slab of a block, at most, where one row of outputs needs no more."""

LEAST_GROUPS = 8
"""Channels below which a pixel is too short a run."""

WORK = 4
"""Work of an operation beside one of a product, which goes at several times the rate."""

TURNED = 256
"""Channels that are turned at a time, so that their lines are in the cache until each is used up."""


def suits(c: Correlation) -> bool:
    """True for depthwise images of which one row of outputs fits the scratch."""
    plain = len(c.axes) == 2 and c.mode == "zeros"
    plain = plain and c.channels == c.outputs == 1 and c.groups >= LEAST_GROUPS
    filters = c.taps * max(RUN, c.groups) * c.itemsize
    return plain and max(filters, _line(c) * c.axes[0].extent) <= PART_BYTES


def _line(c: Correlation) -> int:
    """Bytes of a row of the slab."""
    return _width(c) * c.groups * c.itemsize


def _width(c: Correlation) -> int:
    return (c.axes[1].out - 1) * c.axes[1].stride + c.axes[1].extent


def _apart(c: Correlation) -> int:
    """Numbers from a pixel of turned results to the next."""
    return pitch(c.groups, c.itemsize, READ)


def _rows(c: Correlation) -> int:
    """Rows of outputs of a block."""
    down = c.axes[0]
    return max(1, (min(BLOCK_BYTES, PART_BYTES) // _line(c) - down.extent) // down.stride + 1)


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, 1, *P) from x (N, G, 1, *S), w (G, 1, K) and bias (G, 1) or None."""
    pixels, results = _pixels(x), _pixels(y)
    apart = results.strides[2] if c.channels_last else _apart(c) * c.itemsize
    joined = c.axes[1].stride == 1 and apart == c.groups * y.itemsize
    each = max(1, min(RUN // c.groups, c.axes[1].out)) if joined else 1
    filters = np.ascontiguousarray(w.reshape(c.groups, *c.kernel).transpose(1, 2, 0))

    def block(n: int, cut: Cut) -> None:
        v = views(c, cut.rows, cut.above, cut.below, each)
        v.load(pixels[n, *cut.source])
        np.copyto(v.tiled, filters[:, :, None])
        target = results[n, cut.target]
        made = target if v.made is None else v.made
        for run in v.runs:
            sums = made[:, run.pixels].reshape(run.shape, copy=False)
            np.einsum("ijopr,ijr->opr", run.taps, run.factors, out=sums)
        if bias is not None:
            made += bias[:, 0]
        settle(made)
        if made is not target:
            np.copyto(target, made)

    blocks = [(n, cut) for n in range(x.shape[0]) for cut in cuts(c)]
    for_each(block, blocks, WORK * c.flops * x.shape[0])


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, 1, 1, *K), the adjoint of `forward` in w, for each of R requests."""
    pixels, upstream = _pixels(x), _pixels(dy)
    sums = np.zeros((len(rows), SHARES, *c.kernel, c.groups), dw.dtype)

    def block(request: int, share: int, pieces: Sequence[tuple[int, Cut]]) -> None:
        for n, cut in pieces:
            check_stop()
            v = views(c, cut.rows, cut.above, cut.below, 1)
            v.load(pixels[n, *cut.source])
            (run,) = v.runs
            passed = v.turned(upstream[n, cut.target])
            np.einsum("ijopr,opr->ijr", run.taps, passed, out=run.factors)
            sums[request, share] += run.factors

    for_each(block, request_shares(rows, cuts(c), SHARES), WORK * c.flops * x.shape[0])
    total = np.add.reduce(sums, axis=1)
    dw[...] = np.moveaxis(total, -1, 1).reshape(dw.shape)


def _pixels(a: Array) -> Array:
    """(N, G, 1, H, W) as (N, H, W, G)."""
    return a[:, :, 0].transpose(0, 2, 3, 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of outputs that make one block.

    Attributes:
        target: the rows; `rows` is how many.
        source: the inputs (H, W) that they read.
        above, below: rows of the slab at which those begin, and end.
    """

    target: slice
    rows: int
    source: tuple[slice, slice]
    above: int
    below: int


@lru_cache(maxsize=256)
def cuts(c: Correlation) -> tuple[Cut, ...]:
    """All blocks of a sample."""
    return tuple(_cut(c, lo, hi) for lo, hi in ranges(c.positions[0], _rows(c)))


def _cut(c: Correlation, lo: int, hi: int) -> Cut:
    down, across = c.axes
    start = down.input_of(0, lo)
    rows, place = down.placed(start, start + (hi - lo - 1) * down.stride + down.extent)
    columns, _ = across.placed(-across.low, _width(c) - across.low)
    return Cut(slice(lo, hi), hi - lo, (rows, columns), place.start, place.stop)


@dataclass(frozen=True, slots=True)
class Run:
    """Runs of pixels alike.

    Attributes:
        taps: what they read, (taps down, taps across, rows, count, numbers of a run).
        factors: what each is multiplied with, (taps down, taps across, numbers of a run).
        pixels: where in a row of outputs they lie.
        shape: of their outputs, (rows, count, numbers of a run).
    """

    taps: Array
    factors: Array
    pixels: slice
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Views:
    """Views of the scratch for blocks of one shape.

    Attributes:
        inner: the inputs in the slab, (H, W, G).
        padding: what lies around them.
        tiled: the filters, once for each pixel of a run.
        runs: all runs of a row, and those that are left over.
        made: room for results that are to be turned, (rows, W, G); None where channels are last.
        parts: channels that are turned at a time.
    """

    inner: Array
    padding: tuple[Array, ...]
    tiled: Array
    runs: tuple[Run, ...]
    made: Array | None
    parts: tuple[slice, ...]

    def load(self, inputs: Array) -> None:
        """Lay the inputs (H, W, G) of a block out."""
        for each in self.padding:
            each.fill(0)
        self._copy(self.inner, inputs)

    def turned(self, passed: Array) -> Array:
        """Gradients (rows, W, G) of a block, with channels last in memory."""
        if self.made is None:
            return passed
        self._copy(self.made, passed)
        return self.made

    def _copy(self, target: Array, source: Array) -> None:
        for channels in self.parts:
            np.copyto(target[..., channels], source[..., channels])


@kept
def views(c: Correlation, rows: int, above: int, below: int, each: int) -> Views:
    """This thread's views for a number of rows of outputs, in runs of `each` pixels.

    Inputs stand in the rows [above, below) of the slab.
    """
    (down, across), dtype = c.axes, np.dtype(f"f{c.itemsize}")
    slab = direct.part(0, ((rows - 1) * down.stride + down.extent, _width(c), c.groups), dtype)
    _, place = across.placed(-across.low, _width(c) - across.low)
    inner = slab[above:below]
    around = (slab[:above], slab[below:], inner[:, : place.start], inner[:, place.stop :])
    tiled = direct.part(1, (*c.kernel, each, c.groups), dtype)
    whole, rest = divmod(across.out, each)
    runs = tuple(
        _run(c, slab, tiled[:, :, :run], rows, first, count)
        for first, count, run in ((0, whole, each), (whole * each, 1, rest))
        if run
    )
    made: Array | None = None
    parts: tuple[slice, ...] = (slice(None),)
    if not c.channels_last:
        made = direct.part(2, (rows, across.out, _apart(c)), dtype)[..., : c.groups]
        parts = tuple(direct.slices(c.groups, TURNED))
    padding = tuple(part for part in around if part.size)
    return Views(inner[:, place], padding, tiled, runs, made, parts)


def _run(c: Correlation, slab: Array, tiled: Array, rows: int, first: int, count: int) -> Run:
    """Views for `count` runs of a row, from the pixel `first` on; `tiled` is their filters."""
    down, across = c.axes
    each = tiled.shape[2]
    inputs = slab[:, first * across.stride :]
    line, pixel, one = slab.strides
    shape = (rows, count, each * c.groups)
    steps = (down.dilation * line, across.dilation * pixel, down.stride * line)
    strides = (*steps, across.stride * each * pixel, one)
    taps = as_strided(inputs, (*c.kernel, *shape), strides, writeable=False)
    return Run(
        taps, tiled.reshape(*c.kernel, -1, copy=False), slice(first, first + count * each), shape
    )

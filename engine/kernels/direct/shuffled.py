"""The gradient of an input under windows of whole strides: all residues of a block by one product.

    dx[c, i] = Σ_{o, a} w[o, c, a·stride + r] · dy[o, q − a]   with i + low = q·stride + r

Padded inputs are taken as blocks as long as the stride, and a window as blocks of taps. A row of a product
has the outputs that reach into one block, a column the taps of one channel and place, so that a product
gives all numbers of some blocks; each is then copied to where it belongs. This is a convolution at
stride 1 followed by what is known as pixel shuffle (Shi et al., 2016, arXiv:1609.05158).

Outputs beside dy are zeros. Where a weight is not finite they would spoil what they meet, so with such
weights windows are added one by one (`overlapped`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES, part
from engine.geometry import Axis, ranges, slices
from engine.kernels.correlation import Correlation
from engine.kernels.direct import overlapped
from engine.kernels.nan import settle
from engine.kernels.patches import within
from engine.threads import for_each

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Cut:
    """How many samples, groups, channels and blocks along the first axis are made at one go."""

    samples: int
    groups: int
    channels: int
    blocks: int


def suits(c: Correlation) -> bool:
    """True where `overlapped` suits, windows are whole strides, and blocks fit the scratch."""
    whole = all(axis.kernel % axis.stride == 0 for axis in c.axes)
    return whole and overlapped.suits(c) and _cut(c) is not None


def reached(c: Correlation) -> int:
    """Outputs that reach into one block, of one channel."""
    return prod(map(_span, c.axes))


def made(c: Correlation) -> int:
    """Numbers of all blocks of one channel, those in the padding included."""
    return prod(len(_blocks(axis)) * axis.stride for axis in c.axes)


def _span(axis: Axis) -> int:
    """Blocks that a window is."""
    return axis.kernel // axis.stride


def _blocks(axis: Axis) -> range:
    """The blocks along an axis that have inputs."""
    return range(axis.low // axis.stride, (axis.size - 1 + axis.low) // axis.stride + 1)


@lru_cache(maxsize=4096)
def _cut(c: Correlation) -> Cut | None:
    """As much at one go as fits the three parts of the scratch; None where one row of blocks does not."""
    room, first = PART_BYTES // c.itemsize, c.axes[0]
    count, row = len(_blocks(first)), prod(len(_blocks(axis)) for axis in c.axes[1:])
    places, depth = prod(axis.stride for axis in c.axes), c.outputs * reached(c)
    upstream = c.outputs * prod(len(_blocks(axis)) + _span(axis) - 1 for axis in c.axes[1:])
    if row * max(places, depth) > room or upstream * _span(first) > room:
        return None
    channels = min(c.channels, room // (row * places))
    each = row * max(channels * places, depth)
    blocks = min(count, room // each, room // upstream - _span(first) + 1)
    alike = 1
    if blocks == count and channels == c.channels:
        alike = min(room // (blocks * each), room // ((blocks + _span(first) - 1) * upstream))
    return Cut(max(1, alike // c.groups), min(alike, c.groups), channels, blocks)


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of a correlation in x, from dy (N, G, O, *P).

    w is (G, O, C·K).
    """
    if not isfinite(np.add.reduce(w, axis=None)):
        overlapped.backward_input(c, dy, w, dx)
        return
    cut = _cut(c)
    assert cut is not None
    weights = _by_blocks(c, w)
    first = _blocks(c.axes[0])

    def block(n: slice, g: slice, channels: tuple[int, int], lo: int, hi: int) -> None:
        along = (range(first[lo], first[hi - 1] + 1), *map(_blocks, c.axes[1:]))
        columns = _columns(c, dy[n, g], along)
        taps = weights[g, :, channels[0] : channels[1]].reshape(*columns.shape[1:3], -1)
        out = part(1, (*columns.shape[:2], columns.shape[3], taps.shape[2]), dx.dtype)
        np.matmul(columns.swapaxes(2, 3), taps, out=out)
        settle(out)
        strides = [axis.stride for axis in c.axes]
        shape = (*out.shape[:2], *map(len, along), channels[1] - channels[0], *strides)
        _put(c.axes, along, out.reshape(shape), dx[n, g, channels[0] : channels[1]])

    cuts = [
        (n, g, channels, lo, hi)
        for n in slices(dx.shape[0], cut.samples)
        for g in slices(c.groups, cut.groups)
        for channels in ranges(c.channels, cut.channels)
        for lo, hi in ranges(len(first), cut.blocks)
    ]
    for_each(block, cuts, c.flops * dx.shape[0])


def _by_blocks(c: Correlation, w: Array) -> Array:
    """Weights (G, O·A, C, R): the taps that each output which reaches into a block has there.

    Outputs are in order, so that a window's last block comes first.
    """
    dims = range(len(c.axes))
    split = [size for axis in c.axes for size in (_span(axis), axis.stride)]
    unfolded = w.reshape(c.groups, c.outputs, c.channels, *split)
    last_first = np.flip(unfolded, tuple(3 + 2 * d for d in dims))
    order = (0, 1, *(3 + 2 * d for d in dims), 2, *(4 + 2 * d for d in dims))
    return last_first.transpose(order).reshape(c.groups, c.outputs * reached(c), c.channels, -1)


def _columns(c: Correlation, dy: Array, along: tuple[range, ...]) -> Array:
    """The outputs that reach into some blocks, (n, g, O·A, blocks), from dy (n, g, O, *P)."""
    spans = [_span(axis) for axis in c.axes]
    sizes = [len(q) + m - 1 for q, m in zip(along, spans, strict=True)]
    slab = part(2, (*dy.shape[:3], *sizes), dy.dtype)
    slab.fill(0)
    places, outputs = [], []
    for q, m, size, axis in zip(along, spans, sizes, c.axes, strict=True):
        start = q.start - m + 1
        lo = min(max(0, start), axis.out)
        hi = max(lo, min(axis.out, start + size))
        places.append(slice(lo - start, hi - start))
        outputs.append(slice(lo, hi))
    slab[within(places)] = dy[within(outputs)]
    columns = part(0, (*dy.shape[:2], c.outputs * prod(spans), prod(map(len, along))), dy.dtype)
    shape = (*dy.shape[:3], *spans, *map(len, along))
    steps = slab.strides[3:]
    windows = np.ndarray(shape, slab.dtype, slab, 0, (*slab.strides[:3], *steps, *steps))
    np.copyto(columns.reshape(shape), windows)
    return columns


def _put(axes: tuple[Axis, ...], along: tuple[range, ...], made: Array, x: Array) -> None:
    """Copy blocks (n, g, *Q, c, *R) to the inputs x (n, g, c, *S) that they are."""
    source = overlapped.by_axis(made)
    for boxes in product(*(_boxes(axis, q) for axis, q in zip(axes, along, strict=True))):
        target = x[within(box.inputs for box in boxes)]
        sizes = (size for box in boxes for size in (box.count, box.each))
        split = target.reshape(*x.shape[:3], *sizes, copy=False)
        np.copyto(split, source[within(s for box in boxes for s in (box.blocks, box.places))])


@dataclass(frozen=True, slots=True)
class _Box:
    """Along one axis, some whole blocks or a part of one, and the inputs that they are: `each` in each."""

    blocks: slice
    places: slice
    inputs: slice
    count: int
    each: int


def _boxes(axis: Axis, q: range) -> Iterator[_Box]:
    """The boxes that blocks `q` are: the first and the last may reach into the padding."""
    stride, first, last = axis.stride, 0, len(q)
    begin, end = q.start * stride - axis.low, q.stop * stride - axis.low
    if begin < 0:
        stop = min(stride, axis.size - begin)
        yield _Box(slice(0, 1), slice(-begin, stop), slice(0, begin + stop), 1, begin + stop)
        first = 1
    if end > axis.size and last > first:
        start, last = end - stride, last - 1
        size = axis.size - start
        yield _Box(slice(last, last + 1), slice(0, size), slice(start, axis.size), 1, size)
    if first < last:
        inputs = slice(begin + first * stride, begin + last * stride)
        yield _Box(slice(first, last), slice(None), inputs, last - first, stride)

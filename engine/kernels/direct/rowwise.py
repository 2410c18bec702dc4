"""The gradient of the weight of a 1×1 layer with channels last: positions are rows of both operands.

    dw[o, c] = Σ_{n, p} dy[n, p, o] · x[n, p, c]

All positions of a request, of one sample after another, are consecutive rows of one matrix each. So nothing
is gathered or turned: products of runs of rows read both where they lie, and are added up in order. Each
is of some outputs, which threads share. At strides the rows of x that are read are copied together first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import even, ranges
from engine.kernels.correlation import Correlation
from engine.kernels.direct.pointwise import MOST_RUN, MOST_SUMS
from engine.kernels.requests import SHARES, samples_of
from engine.threads import check_stop, for_each

Array = NDArray[Any]


def suits(c: Correlation) -> bool:
    """True for 1×1 with channels last and more weights than `pointwise` sums up in shares."""
    if not (c.channels_last and c.taps == 1 and c.groups == 1):
        return False
    many = c.channels * c.outputs > MOST_SUMS and c.channels * c.itemsize <= PART_BYTES
    return many and all(axis.low == 0 == axis.high for axis in c.axes)


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, 1, O, C, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, 1, C, *S), dy (N, 1, O, *P), both channels last in memory; `rows` says how many samples each
    request has.
    """
    inputs, upstream = _rows(x), _rows(dy)
    read = None if c.pointwise else _read(c, x.shape[0])
    target = dw.reshape(dw.shape[:4], copy=False)[:, 0]
    width = c.channels * c.itemsize
    each = even(c.outputs, min(-(-c.outputs // SHARES), PART_BYTES // width))
    most = MOST_RUN if read is None else min(MOST_RUN, PART_BYTES // width)

    def block(request: int, own: slice, lo: int, hi: int) -> None:
        out = target[request, lo:hi]
        start, stop = own.start * c.places, own.stop * c.places
        if start == stop:
            out[...] = 0
        for first, last in ranges(stop - start, even(stop - start, most)):
            check_stop()
            run = slice(start + first, start + last)
            right = inputs[run] if read is None else _taken(inputs, read[run])
            made = arena.part(1, (hi - lo, c.channels), dw.dtype) if first else out
            np.matmul(upstream[run, lo:hi].T, right, out=made)
            if first:
                out += made

    blocks = [
        (request, own, *span)
        for request, own in enumerate(samples_of(rows))
        for span in ranges(c.outputs, each)
    ]
    for_each(block, blocks, c.flops * len(x))


def _rows(a: Array) -> Array:
    """(N, 1, C, *S) as (N·S, C), a view."""
    return np.moveaxis(a[:, 0], 1, -1).reshape(-1, a.shape[2], copy=False)


def _read(c: Correlation, samples: int) -> NDArray[np.intp]:
    """Of the rows of all inputs, those that are outputs' one tap, in the order of outputs."""
    rows = np.arange(samples)
    for axis in c.axes:
        rows = np.add.outer(rows * axis.size, np.arange(axis.out) * axis.stride)
    return rows.ravel()


def _taken(inputs: Array, rows: NDArray[np.intp]) -> Array:
    """Some rows of the inputs, in this thread's scratch."""
    taken = arena.part(0, (len(rows), inputs.shape[1]), inputs.dtype)
    # All are there; `raise` would have `take` copy them once more.
    return np.take(inputs, rows, axis=0, out=taken, mode="clip")

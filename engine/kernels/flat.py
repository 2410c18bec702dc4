"""Correlation of small maps at stride 1 on flat planes: a few long copies instead of many short ones.

A channel's padded plane is one row of numbers. At stride 1, what a tap reads for all outputs is then
one run of it, at a constant offset:

    column[k, l] = plane[l + Σ_d k_d · dilation_d · step_d],  output p stands at l = Σ_d p_d · step_d

with `step_d` the numbers from one position along axis d to the next. Runs go on over the ends of rows,
so some columns belong to no output; they are multiplied as well, and dropped. In the adjoints dy is
laid out the same way, with zeros there, and runs are added onto the plane or summed over. A zero times
a number that is not finite would spoil that: where a result is not finite, the columns that belong to
no output are cleared, and the last step is done again.

Each sample is a product of its own, so its bits do not depend on those beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels.correlation import Correlation
from engine.kernels.direct import part
from engine.kernels.patches import within
from engine.kernels.requests import SHARES, RequestBlock, in_shares, request_blocks, sum_samples
from engine.threads import PART_BYTES, for_each

Array = NDArray[Any]

MOST_COLUMNS = 1.5
"""Columns for each output above which multiplying those that are dropped costs more than is saved."""

MOST_OUTPUTS = 64
"""Filters of a group above which copying is little beside multiplying."""

LONGEST_ROW = 64
"""Outputs of a row above which the runs of one row are long enough."""

BLOCK_BYTES = PART_BYTES // 2
"""Columns of the samples that share a block: enough to be worth a call, and a share for each thread."""

SHARED_ROWS = 128
"""Rows of columns from which halves of them are products as good as the whole."""

MOST_VIEWS = 64
"""Shapes whose views of the scratch a thread keeps."""


@dataclass(frozen=True)
class Flat:
    """The planes of a correlation: all integers.

    Attributes:
        padded: a plane's size along each axis, padding included.
        inner: where the inputs stand in it.
        steps: numbers from one position to the next along each axis.
        offsets: where the run of each tap begins.
        length: columns of a product.
        samples: samples of one block; 0 where not even one fits the scratch.
        most: samples that fit the scratch.
    """

    padded: tuple[int, ...]
    inner: tuple[slice, ...]
    steps: tuple[int, ...]
    offsets: tuple[int, ...]
    length: int
    samples: int
    most: int


@lru_cache(maxsize=1024)
def flat(c: Correlation) -> Flat:
    """The planes of a correlation."""
    padded = tuple(a.low + a.size + a.high for a in c.axes)
    steps = tuple(prod(padded[d + 1 :]) for d in range(len(padded)))
    length = 1 + sum((p - 1) * step for p, step in zip(c.positions, steps, strict=True))
    moves = [a.dilation * step for a, step in zip(c.axes, steps, strict=True)]
    taps = np.ndindex(*c.kernel)
    rows = c.groups * max(c.channels * c.taps + 1, c.outputs)
    planes = c.groups * c.channels * max(prod(padded), c.outputs * c.taps)
    largest = max(rows * length, planes) * c.itemsize
    return Flat(
        padded,
        tuple(slice(a.low, a.low + a.size) for a in c.axes),
        steps,
        tuple(sum(t * move for t, move in zip(tap, moves, strict=True)) for tap in taps),
        length,
        max(1, BLOCK_BYTES // largest) if largest <= PART_BYTES else 0,
        PART_BYTES // largest,
    )


@lru_cache(maxsize=4096)
def suits(c: Correlation) -> bool:
    """True for small maps at stride 1 whose columns fit the scratch, most of them being outputs."""
    plain = all(a.stride == 1 and min(a.low, a.high) >= 0 for a in c.axes)
    plain = plain and c.mode == "zeros" and not c.pointwise
    gains = c.outputs <= MOST_OUTPUTS and c.positions[-1] <= LONGEST_ROW
    if not (plain and gains):
        return False
    plan = flat(c)
    return plan.samples > 0 and plan.length <= MOST_COLUMNS * prod(c.positions)


@dataclass(frozen=True)
class Views:
    """Views of a thread's scratch for some samples of one shape.

    Attributes:
        slab: padded planes (n, G, C, *S'); `inner` are the inputs in them.
        taps: the run of every tap in the slab, (n, G, C, *K, L).
        runs: the run of each tap in the slab, (n, G, C, L), one after another.
        columns: (n, G, C, *K, L); `matrix` is the same as (n, G, C·K, L), and `ones` a row after it,
            which makes them `biased` (n, G, C·K + 1, L).
        rows: what stands on the other side, (n, G, O, L); `outputs` are its columns (n, G, O, *P).
        sums: products of columns and rows, (n, G, C·K, O); it lies where the slab does.
    """

    slab: Array
    inner: Array
    taps: Array
    runs: tuple[Array, ...]
    columns: Array
    matrix: Array
    ones: Array
    biased: Array
    rows: Array
    outputs: Array
    sums: Array

    def load(self, x: Array) -> None:
        """Lay the inputs x (n, G, C, *S) out in columns."""
        if self.inner.size < self.slab.size:
            self.slab.fill(0)
        self.inner[...] = x
        np.copyto(self.columns, self.taps)


class _Kept(threading.local):
    def __init__(self) -> None:
        self.views: dict[tuple[Correlation, int], Views] = {}


_kept = _Kept()


def views(c: Correlation, samples: int) -> Views:
    """This thread's views for a number of samples."""
    found = _kept.views.get((c, samples))
    if found is None:
        if len(_kept.views) == MOST_VIEWS:
            _kept.views.clear()
        found = _kept.views[c, samples] = _made(c, samples)
    return found


def _made(c: Correlation, samples: int) -> Views:
    plan, dtype = flat(c), np.dtype(f"f{c.itemsize}")
    lead, other = (samples, c.groups, c.channels), (samples, c.groups, c.outputs)
    slab = part(1, (*lead, *plan.padded), dtype)
    planes = slab.reshape(*lead, -1)
    biased = part(0, (samples, c.groups, c.channels * c.taps + 1, plan.length), dtype)
    matrix = biased[:, :, :-1]
    columns = matrix.reshape(*lead, *c.kernel, plan.length, copy=False)
    rows = part(2, (*other, plan.length), dtype)
    steps = [step * c.itemsize for step in plan.steps]
    moves = [a.dilation * step for a, step in zip(c.axes, steps, strict=True)]
    taps = (*slab.strides[:3], *moves, c.itemsize)
    outputs = (*rows.strides[:3], *steps)
    return Views(
        slab,
        slab[within(plan.inner)],
        np.ndarray(columns.shape, dtype, slab, 0, taps),
        tuple(planes[..., lo : lo + plan.length] for lo in plan.offsets),
        columns,
        matrix,
        biased[:, :, -1],
        biased,
        rows,
        np.ndarray((*other, *c.positions), dtype, rows, 0, outputs),
        part(1, (samples, c.groups, c.channels * c.taps, c.outputs), dtype),
    )


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    # The bias is one more factor of a column of ones: adding it to short rows would take longer.
    weights = w if bias is None else np.concatenate((w, bias[:, :, None]), axis=2)

    def block(lo: int, hi: int) -> None:
        v = views(c, hi - lo)
        v.load(x[lo:hi])
        if bias is not None:
            v.ones.fill(1)
        np.matmul(weights, v.matrix if bias is None else v.biased, out=v.rows)
        y[lo:hi] = v.outputs

    for_each(block, ranges(x.shape[0], flat(c).samples), c.flops * x.shape[0])


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of `forward` in x, from dy (N, G, O, *P)."""
    turned = w.swapaxes(1, 2)

    def block(lo: int, hi: int) -> None:
        v, target = views(c, hi - lo), dx[lo:hi]
        v.rows.fill(0)
        v.outputs[...] = dy[lo:hi]
        np.matmul(turned, v.rows, out=v.matrix)
        _add_runs(c, v, target)
        if not np.isfinite(np.add.reduce(target, axis=None)):
            v.matrix[..., _unused(c)] = 0
            _add_runs(c, v, target)

    # Runs are added in many short calls, where threads wait for each other: the fewer, the better.
    for_each(block, ranges(dx.shape[0], flat(c).most), c.flops * dx.shape[0])


def _add_runs(c: Correlation, v: Views, dx: Array) -> None:
    """Add the columns onto the planes they were taken from, and write what lies on inputs."""
    v.slab.fill(0)
    columns = v.columns.reshape(*v.rows.shape[:2], c.channels, c.taps, -1)
    for tap, run in enumerate(v.runs):
        np.add(run, columns[..., tap, :], out=run)
    dx[...] = v.inner


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of `forward` in w, for each of R requests.

    `rows` says how many consecutive samples belong to each request.
    """
    halves = _halves(c)
    batches = [
        in_shares(batch, SHARES // len(halves)) for batch in request_blocks(rows, flat(c).most)
    ]
    # A request of several blocks sums each share of them in a place of its own.
    places = max(map(len, batches), default=1)
    sums = dw[:, None] if places == 1 else np.empty((len(rows), places, *dw.shape[1:]), dw.dtype)
    sums[...] = 0

    def block(
        blocks: Sequence[RequestBlock], place: int, own: Correlation, channels: slice
    ) -> None:
        for requests, n, each in blocks:
            v = views(own, n.stop - n.start)
            v.load(x[n, :, channels])
            v.rows.fill(0)
            v.outputs[...] = dy[n]
            # In the other order, BLAS takes up to twice as long.
            np.matmul(v.matrix, v.rows.swapaxes(2, 3), out=v.sums)
            if not np.isfinite(np.add.reduce(v.sums, axis=None)):
                v.matrix[..., _unused(own)] = 0
                np.matmul(v.matrix, v.rows.swapaxes(2, 3), out=v.sums)
            target = sums[requests, place, :, :, channels]
            target += sum_samples(v.sums, each).swapaxes(2, 3).reshape(target.shape)

    cuts = [
        (blocks, place, own, channels)
        for shares in batches
        for place, blocks in enumerate(shares)
        for own, channels in halves
    ]
    for_each(block, cuts, c.flops * x.shape[0])
    if places > 1:
        np.add.reduce(sums, axis=1, out=dw)


@lru_cache(maxsize=1024)
def _halves(c: Correlation) -> tuple[tuple[Correlation, slice], ...]:
    """The correlation cut in two along its channels, if they have rows enough, for threads to share."""
    parts = 2 if c.channels * c.taps >= SHARED_ROWS else 1
    return tuple(
        (replace(c, channels=hi - lo), slice(lo, hi))
        for lo, hi in ranges(c.channels, -(-c.channels // parts))
    )


def _unused(c: Correlation) -> NDArray[np.intp]:
    """The columns that belong to no output."""
    plan = flat(c)
    used = np.zeros(plan.length, bool)
    np.ndarray(c.positions, bool, used, 0, plan.steps)[...] = True
    return np.flatnonzero(~used)

"""Correlation of small maps at stride 1 by a few long copies instead of many short ones.

`runs` says how maps are laid out. In the forward map and the gradient of the weight, columns are the
windows of the outputs. In the gradient of the input, rows of dy are as wide as those of the padded inputs,
with zeros at their ends. A zero times a number that is not finite would spoil what is added there: where a
result is not finite, the columns that belong to no output are cleared, and the sum is done again.

Each sample is a product of its own, so its bits do not depend on those beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels.correlation import Correlation
from engine.kernels.direct.runs import columns, flat, spread
from engine.kernels.nan import settle
from engine.kernels.requests import (
    SHARES,
    RequestBlock,
    at_once,
    in_shares,
    request_blocks,
    sum_samples,
)
from engine.kernels.viewing import flat_view
from engine.threads import for_each, samples_each

Array = NDArray[Any]
Cut = tuple[Sequence[RequestBlock], int, Correlation, slice]

MOST_FLOPS = 48_000_000
"""Work of a sample from which threads that share it are quicker: here each has samples of its own."""

FEW_FLOPS = 3_000_000
"""Work of a sample below which the gradient of the weight is quicker so under up to `MOST_OUTPUTS`."""

MOST_COLUMNS = 1.5
"""Columns for each output above which multiplying those that are dropped costs more than is saved."""

MOST_OUTPUTS = 512
"""Filters of a group above which copying is little beside multiplying."""

FEW_OUTPUTS = 64
"""Filters of a group up to which the gradient of the weight is quicker so, however large the layer."""

LONGEST_ROW = 64
"""Outputs of a row up to which it is quicker than by shifts, too."""

MOST_WEIGHTS = 16
"""Filters, or weights of each if these are fewer, for each output: more take longer to add than to make."""

SHARED_ROWS = 128
"""Rows of columns from which halves of them are products as good as the whole."""


@lru_cache(maxsize=4096)
def suits(c: Correlation) -> bool:
    """True for small maps at stride 1 whose columns fit the scratch."""
    plain = all(a.stride == 1 and min(a.low, a.high) >= 0 for a in c.axes)
    return plain and c.mode == "zeros" and not c.pointwise and flat(c).samples > 0


def pay(c: Correlation) -> bool:
    """True where the forward map is quicker so."""
    return c.flops < MOST_FLOPS


def pay_for_input(c: Correlation) -> bool:
    """True where the gradient of the input is quicker so, and its columns fit the scratch."""
    return c.outputs <= MOST_OUTPUTS and flat(c).spread > 0 and _is_dense(c)


def pay_for_weight(c: Correlation) -> bool:
    """True where the gradient of the weight is quicker so than by patches, if not by shifts."""
    sums = min(c.outputs, c.channels * c.taps)
    few = c.outputs <= (MOST_OUTPUTS if c.flops < FEW_FLOPS else FEW_OUTPUTS)
    return few and sums <= MOST_WEIGHTS * c.places


def pay_before_shifts(c: Correlation) -> bool:
    """True where it is quicker so than by shifts, too: short rows under few filters."""
    return c.outputs <= FEW_OUTPUTS and c.positions[-1] <= LONGEST_ROW and _is_dense(c)


def _is_dense(c: Correlation) -> bool:
    """True where most columns of rows as wide as the padded inputs' are outputs."""
    return flat(c).length <= MOST_COLUMNS * c.places


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    # The bias is one more factor of a column of ones: adding it to short rows would take longer.
    weights = w if bias is None else np.concatenate((w, bias[..., None]), -1)
    plan, flat_y = flat(c), flat_view(y, c.places)

    def block(lo: int, hi: int) -> None:
        v = columns(c, hi - lo)
        v.load(x[lo:hi])
        if bias is not None:
            v.ones.fill(1)
        made = v.rows if flat_y is None else flat_y[lo:hi]
        np.matmul(weights, v.matrix if bias is None else v.biased, out=made)
        settle(made)
        if flat_y is None:
            y[lo:hi] = made.reshape(y[lo:hi].shape)

    for_each(block, _blocks(x.shape[0], plan.samples), c.flops * x.shape[0])


def _blocks(samples: int, most: int) -> tuple[tuple[int, int], ...]:
    """One block of at most `most` samples, or some that are alike for each thread."""
    if samples <= most:
        return ((0, samples),) if samples else ()
    return ranges(samples, samples_each(samples, most))


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of `forward` in x, from dy (N, G, O, *P) and w (G, O, C·K)."""
    turned = w.swapaxes(1, 2)

    def block(lo: int, hi: int) -> None:
        v, target = spread(c, hi - lo), dx[lo:hi]
        v.rows.fill(0)
        v.outputs[...] = dy[lo:hi]
        v.before.fill(0)
        np.matmul(turned, v.rows, out=v.made)
        v.after.fill(0)
        v.add()
        target[...] = v.inner
        if not isfinite(np.add.reduce(target, axis=None)):
            v.made[..., _unused(c)] = 0
            v.add()
            target[...] = v.inner
            settle(target)

    for_each(block, _blocks(dx.shape[0], flat(c).spread), c.flops * dx.shape[0])


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of `forward` in w, for each of R requests.

    `rows` says how many consecutive samples belong to each request.
    """
    places, cuts = _cuts(c, tuple(rows), flat(c).most)
    # Beside its places a request holds the sum of its samples in a block, and that in another order.
    parts = list(at_once(rows, (places + 2) * dw[:1].nbytes)) if places > 1 else []
    if len(parts) > 1:
        for requests, samples in parts:
            backward_weight(c, x[samples], dy[samples], rows[requests], dw[requests])
        return
    # A request of several blocks sums each share of them in a place of its own.
    sums = dw[:, None] if places == 1 else np.empty((len(rows), places, *dw.shape[1:]), dw.dtype)
    sums[...] = 0

    def block(
        blocks: Sequence[RequestBlock], place: int, own: Correlation, channels: slice
    ) -> None:
        for requests, n, each in blocks:
            v = columns(own, n.stop - n.start)
            v.load(x[n, :, channels])
            upstream = flat_view(dy[n], v.rows.shape[3])
            if upstream is None:
                upstream = v.rows
                upstream.reshape(dy[n].shape)[...] = dy[n]
            # In the other order, BLAS takes up to twice as long.
            np.matmul(v.matrix, upstream.swapaxes(2, 3), out=v.sums)
            target = sums[requests, place, :, :, channels]
            target += sum_samples(v.sums, each).swapaxes(2, 3).reshape(target.shape)

    for_each(block, cuts, c.flops * x.shape[0])
    if places > 1:
        np.add.reduce(sums, axis=1, out=dw)


@lru_cache(maxsize=1024)
def _cuts(c: Correlation, rows: tuple[int, ...], most: int) -> tuple[int, tuple[Cut, ...]]:
    """Places of a request's sums, and what makes them: blocks of samples in order, a place, a half."""
    halves = _halves(c)
    batches = [in_shares(batch, SHARES // len(halves)) for batch in request_blocks(rows, most)]
    return max(map(len, batches), default=1), tuple(
        (blocks, place, own, channels)
        for shares in batches
        for place, blocks in enumerate(shares)
        for own, channels in halves
    )


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

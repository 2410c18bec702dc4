"""The gradient of the weight of a 1×1 layer with channels last: products of long runs of positions.

    dw[g, o, c] = Σ_p dy[p, g, o] · x[p, g, c]

All positions of a request lie one after another, as rows of channels. So a run of them is one product of
all channels with all outputs, which reads both where they lie, and has no side shorter than it need be. The
order of all sums is the request's own: its positions are cut into shares, and those into runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import even, ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.requests import SHARES, samples_of
from engine.threads import PART_BYTES, check_stop, for_each

Array = NDArray[Any]

LEAST_PLACES = 128
"""Positions of a map below which those of several samples are better summed in one call."""

LEAST_RUN = 256
"""Positions of a share, at least: fewer take less time than writing their sums."""

MOST_RUN = 1024
"""Positions of one product, at most: no sum is longer than those of other kernels."""

MOST_SUMS = 1 << 16
"""Weights whose shares of a gradient stay in the second-level cache."""


def suits(c: Correlation) -> bool:
    """True for 1×1 with channels last, where maps are large and weights are few."""
    few = c.groups * c.channels * c.outputs <= MOST_SUMS
    return c.pointwise and c.channels_last and few and c.places >= LEAST_PLACES


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, G, C, *S), dy (N, G, O, *P); `rows` says how many samples each request has.
    """
    samples = samples_of(rows)
    inputs, upstream = _by_position(x), _by_position(dy)
    # Sums of many requests at once would be more than a plan counts.
    held = SHARES * c.groups * c.channels * c.outputs * c.itemsize
    for lo, hi in ranges(len(rows), max(1, PART_BYTES // held)):
        _requests(c, inputs, upstream, samples[lo:hi], dw[lo:hi])


def _requests(
    c: Correlation, inputs: Array, upstream: Array, samples: Sequence[slice], dw: Array
) -> None:
    """Write dw of some requests from inputs (G, N·P, C) and upstream (G, N·P, O)."""
    sums = np.empty((len(dw), SHARES, c.groups, c.channels, c.outputs), dw.dtype)
    shares = [_shares(own.start * c.places, own.stop * c.places) for own in samples]

    def block(request: int, share: int) -> None:
        own = sums[request, share]
        for number, run in enumerate(shares[request][share]):
            check_stop()
            out = direct.part(1, own.shape, own.dtype) if number else own
            np.matmul(inputs[:, run].swapaxes(1, 2), upstream[:, run], out=out)
            if number:
                own += out

    blocks = [(request, share) for request, own in enumerate(shares) for share in range(len(own))]
    for_each(block, blocks, c.flops * sum(own.stop - own.start for own in samples))
    for request, own in enumerate(shares):
        total = np.add.reduce(sums[request, : len(own)], axis=0)
        dw[request] = total.swapaxes(1, 2).reshape(dw.shape[1:])


def _by_position(a: Array) -> Array:
    """(N, G, C, *S) as (G, N·S, C)."""
    moved = np.moveaxis(a, (1, 2), (-2, -1))
    return moved.reshape(-1, *a.shape[1:3], copy=False).swapaxes(0, 1)


def _shares(first: int, last: int) -> tuple[tuple[slice, ...], ...]:
    """A request's positions in at most `SHARES` shares, each of them in runs."""
    most = max(LEAST_RUN, -(-(last - first) // SHARES))
    return tuple(
        tuple(slice(a, b) for a, b in _cut(lo, hi, MOST_RUN)) for lo, hi in _cut(first, last, most)
    )


def _cut(first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    """[first, last) in as few parts of at most `most` as there can be, about alike."""
    each = even(last - first, most)
    return ((first + lo, first + hi) for lo, hi in ranges(last - first, each))

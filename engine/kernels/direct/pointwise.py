"""The gradient of the weight of a 1×1 layer: products of long runs of positions.

    dw[g, o, c] = Σ_{n, p} dy[n, g, o, p] · x[n, g, c, p]

A run of a sample's positions is one product of all channels with all outputs, which reads both where they
lie, and has no side shorter than it need be. The order of all sums is the request's own: its runs are
summed in shares, and those are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.blas import multiplies_in_place
from engine.geometry import even, ranges
from engine.kernels.correlation import Correlation
from engine.kernels.requests import SHARES, add_shares, at_once, in_shares, samples_of
from engine.threads import check_stop, for_each

Array = NDArray[Any]
Run = tuple[int, int]

LEAST_PLACES = 128
"""Positions of a map below which those of several samples are better summed in one call."""

LEAST_RUN = 256
"""Positions for which a request of few samples is cut: fewer take less time than writing their sums."""

LEAST_CHANNELS = 32
"""Channels from which runs take less time than patches."""

LEAST_FLOPS = 2_000_000
"""Work of a sample from which those of fewer channels do too, where BLAS multiplies in place."""

MOST_RUN = 1024
"""Positions of one product, at most: no sum is longer than those of other kernels."""

MOST_SUMS = 1 << 16
"""Weights whose sums stay in the second-level cache."""

SUMS_FOR_EACH = 256
"""Weights for each position of a map above which adding sums up takes too long beside making them."""


def suits(c: Correlation) -> bool:
    """True for 1×1 where maps are large and weights are few."""
    few = c.groups * c.channels * c.outputs <= min(MOST_SUMS, SUMS_FOR_EACH * c.places)
    return c.pointwise and few and c.places >= LEAST_PLACES


def pay(c: Correlation) -> bool:
    """True where products of runs take less time than patches, by random layers."""
    return c.channels >= LEAST_CHANNELS or (multiplies_in_place() and c.flops >= LEAST_FLOPS)


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, G, C, *S), dy (N, G, O, *P); `rows` says how many samples each request has.
    """
    # BLAS multiplies faster with the longer side on the left.
    turned = c.channels < c.outputs
    left, right = (_flat(c, a) for a in ((dy, x) if turned else (x, dy)))
    found = dw.reshape(dw.shape[:4], copy=False)
    found = found if turned else found.swapaxes(2, 3)
    held = SHARES * c.groups * c.channels * c.outputs * c.itemsize
    for requests, own in at_once(rows, held):
        _requests(c, left[own], right[own], rows[requests], found[requests])


def _flat(c: Correlation, a: Array) -> Array:
    """A view (N, G, C, P) of (N, G, C, *S), in either memory order."""
    return a.reshape(*a.shape[:3], c.places, copy=False)


def _requests(c: Correlation, left: Array, right: Array, rows: Sequence[int], out: Array) -> None:
    """Write out (R, G, A, B) for some requests from left (N, G, A, P) and right (N, G, B, P)."""
    sums = np.zeros((len(rows), SHARES, *out.shape[1:]), out.dtype)

    def block(request: int, share: int, pieces: Sequence[tuple[int, Run]]) -> None:
        own = sums[request, share]
        for number, (n, (lo, hi)) in enumerate(pieces):
            check_stop()
            made = arena.part(1, own.shape, own.dtype) if number else own
            np.matmul(left[n, ..., lo:hi], right[n, ..., lo:hi].swapaxes(1, 2), out=made)
            if number:
                own += made

    blocks = [
        (request, share, pieces)
        for request, own in enumerate(samples_of(rows))
        for share, pieces in enumerate(in_shares(_pieces(c, own), SHARES))
    ]
    for_each(block, blocks, c.flops * left.shape[0])
    np.copyto(out, add_shares(sums))


def _pieces(c: Correlation, samples: slice) -> list[tuple[int, Run]]:
    """The runs of a request, sample by sample: one for each share at least if they are long enough."""
    count = samples.stop - samples.start
    wanted = max(LEAST_RUN, -(-c.places * count // SHARES))
    runs = ranges(c.places, even(c.places, min(wanted, MOST_RUN)))
    return list(product(range(samples.start, samples.stop), runs))

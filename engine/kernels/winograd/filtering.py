"""The gradient of 3×3 filters by Winograd's minimal filtering: the adjoint of `correlating` in the filters.

A tile y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A is linear in the filter g. So with V = Bᵀ d B of the inputs under a
tile and M = A e Aᵀ of the gradient e of its outputs,

    dg = Gᵀ [Σ V ⊙ M] G        summed over tiles and samples

which for all channels and filters is a product over tiles for each of the 24 points, then one transform
for each filter. Tiles are 2×4, as those of the forward map.

The products' results are more numbers than a filter has, so channels and filters are cut into parts whose
sums stay in the second-level cache, while a few tiles at a time are transformed for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES
from engine.blas import multiplies_in_place
from engine.geometry import ranges
from engine.kernels.correlation import Correlation
from engine.kernels.requests import in_shares, samples_of
from engine.kernels.winograd.pieces import Piece, cut, pieces
from engine.kernels.winograd.promise import Limits, request_limits
from engine.kernels.winograd.tile_sums import views
from engine.threads import check_stop, for_each

Array = NDArray[Any]

LEAST_TILES = 48
"""Tiles of a request from which they save more than transforming its sums takes."""

LEAST_WORK = 0 if multiplies_in_place() else 8_000_000
"""Weights of one tap, times tiles of a request, from which they save more than `request_limits` takes."""

SHARED_WEIGHTS = 56 * 56
"""Weights from which on a block's calls are long enough for threads to share the interpreter's lock."""

MOST_GROWTH = 7.0
"""How many times as large as the filters the sums at the points may be, by the root of the mean square.

Normal numbers make 5.4, what is left of them beside their averages 6.0, rectified and smooth ones less.
Where x or dy repeats itself from tile to tile, or both cancel each other from number to number, points add
up what the last transform takes from each other again, while a plain sum stays small all the way.
"""

PlainSum = Callable[[Correlation, Array, Array, Sequence[int], Array], None]


def share_bytes(c: Correlation) -> int:
    """What a call holds of the weights where a request's samples are summed in several shares."""
    shares = cut(c).shares
    return c.outputs * c.channels * c.taps * c.itemsize * (shares if shares > 1 else 0)


def backward_weight(
    c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array, plain: PlainSum
) -> None:
    """Write dw (R, 1, O, C, 3, 3) from x (N, 1, C, H, W) and dy (N, 1, O, *P) for each of R requests.

    `plain` does the same as a plain sum: for requests of few tiles, for those whose numbers `promise` says
    it adds far more exactly, and again for parts with a number that is too large, or sums not finite.
    """
    samples = samples_of(rows)
    least = _least_tiles(c)
    enough = [n for n, count in enumerate(rows) if prod(cut(c).tiles) * count >= least]
    limits: list[Limits] = [(0, 0)] * len(rows)
    found = [(np.inf, np.inf)] * len(enough)
    if c.wanted == "auto":
        found = request_limits(c, x, dy, [samples[n] for n in enough])
    for n, limit in zip(enough, found, strict=True):
        limits[n] = limit

    for by_tiles, alike in groupby(range(len(rows)), lambda n: all(limits[n])):
        group = list(alike)
        # The plan counts the shares of one request: more are held only while they are small.
        most = max(1, PART_BYTES // max(1, share_bytes(c))) if by_tiles else len(group)
        for lo, hi in ranges(len(group), most):
            requests = slice(group[lo], group[hi - 1] + 1)
            own = slice(samples[group[lo]].start, samples[group[hi - 1]].stop)
            given = c, x[own], dy[own], rows[requests], dw[requests]
            if by_tiles:
                _by_tiles(*given, limits[requests], plain)
            else:
                plain(*given)


def _least_tiles(c: Correlation) -> int:
    """The tiles of a request from which they are used."""
    if c.wanted == "winograd":
        return 1
    work = LEAST_WORK if c.wanted == "auto" else 0
    return max(LEAST_TILES, -(-work // (c.channels * c.outputs)))


def _by_tiles(
    c: Correlation,
    x: Array,
    dy: Array,
    rows: Sequence[int],
    dw: Array,
    limits: Sequence[Limits],
    plain: PlainSum,
) -> None:
    plan, samples = cut(c), samples_of(rows)
    parts = [(slice(*o), slice(*k)) for o, k in product(plan.outputs, plan.channels)]
    sums = dw if plan.shares == 1 else np.empty((len(rows), plan.shares, *dw.shape[2:]), dw.dtype)
    jobs: list[tuple[Array, Array, Array, Array, Sequence[Piece], Limits]] = []
    shares = [in_shares(pieces(c, count), plan.shares) for count in rows]
    squares = [np.zeros((len(own), len(parts), 2)) for own in shares]
    for request, own in enumerate(samples):
        for (share, found), (part, (o, k)) in product(enumerate(shares[request]), enumerate(parts)):
            given = x[own, 0, k], dy[own, 0, o], found, limits[request]
            jobs.append((sums[request, share, o, k], squares[request][share, part], *given))
    shared = c.outputs * c.channels >= SHARED_WEIGHTS
    # Of few long blocks one would be left at the end, and of the gradient of x there are many.
    for_each(_sum, jobs, c.flops * x.shape[0] if shared else 0, pressing=True)
    for request, own in enumerate(samples):
        if c.wanted == "auto" and not _steady(squares[request]):
            plain(c, x[own], dy[own], (rows[request],), dw[request : request + 1])
            continue
        if sums is not dw:
            np.add.reduce(sums[request, : len(shares[request])], axis=0, out=dw[request, 0])
        for o, k in parts:
            target = dw[request : request + 1, :, o, k]
            if not np.isfinite(np.add.reduce(target, axis=None)):
                part = replace(c, outputs=target.shape[2], channels=target.shape[3])
                plain(part, x[own, :, k], dy[own, :, o], (rows[request],), target)


def _steady(squares: Array) -> bool:
    """Whether the sums at the points have not grown, by the squares (..., 2) of them and of the filters."""
    points, filters = squares.reshape(-1, 2).sum(0)
    return bool(filters > 0 and points <= MOST_GROWTH**2 * filters < np.inf)


def _sum(
    target: Array, squares: Array, x: Array, dy: Array, found: Sequence[Piece], limits: Limits
) -> None:
    """Write target (O, C, 3, 3) from pieces of x (n, C, H, W) and dy (n, O, *P), and its squares (2).

    It is NaN where one of their numbers is above its limit.
    """
    channels, outputs, dtype = x.shape[1], dy.shape[1], x.dtype.str
    for number, piece in enumerate(found):
        check_stop()
        v = views(piece.shape, channels, outputs, dtype)
        even = v.inputs.load(x[piece.source], limits[0])
        if not (even and v.upstream.load(dy[piece.upstream], limits[1])):
            target.fill(np.nan)
            return
        v.add(number == 0)
    np.copyto(target, v.summed())
    squares[:] = v.squares()

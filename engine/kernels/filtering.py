"""The gradient of 3×3 filters by Winograd's minimal filtering: the adjoint of `winograd` in the filters.

A tile y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A is linear in the filter g. So with V = Bᵀ d B of the inputs under a
tile and M = A e Aᵀ of the gradient e of its outputs,

    dg = Gᵀ [Σ V ⊙ M] G        summed over tiles and samples

which for all channels and filters is a product over tiles for each of the 36 points, then one transform
for each filter. Tiles are 4×4: sums over tiles are long whatever the channels are, and the transforms add
less to their error than they do to the forward map's.

The products' results are more numbers than a filter has, so channels and filters are cut into parts whose
sums stay in the second-level cache, while a few tiles at a time are transformed for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import accumulate, groupby, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, even, ranges
from engine.kernels.correlation import Correlation
from engine.kernels.products import LINE
from engine.kernels.requests import SHARES, in_shares
from engine.kernels.spacing import READ, spaced
from engine.kernels.tiling import TAPS, transforms
from engine.kernels.winograd import dense, is_whole
from engine.threads import PART_BYTES, Arena, check_stop, for_each

Array = NDArray[Any]
Range = tuple[int, int]
Piece = tuple[Range, Range, Range]
"""Samples, and tiles along columns and along rows."""

SIDE = 4
"""Outputs of a tile along either axis."""

POINTS = SIDE + TAPS - 1

MOST = 64
"""Channels, and filters, of a part."""

TILE_BYTES = 512
"""One number of every tile of a piece. The fewer calls, the less threads wait for each other."""

DEPTH = 64
"""Tiles of one product: sums of sums lose fewer digits than long ones do."""

LEAST_TILES = 24
"""Tiles of a request from which they save more than transforming its sums takes."""

LEAST_SIDE = 6
"""Rows, and columns, of a map from which its tiles are full enough to be as exact as promised."""

LEAST_SHARE = 1 / 6
"""Share of products that are not 0 from which tiles are as exact as promised beside a plain sum.

A plain sum rounds nothing where it adds a 0; the transforms of tiles do.
"""

PlainSum = Callable[[Correlation, Array, Array, Sequence[int], Array], None]


@dataclass(frozen=True)
class Cut:
    """How a gradient is cut: parts of channels and filters, and pieces of a request. All integers."""

    c: Correlation

    @cached_property
    def tiles(self) -> tuple[int, int]:
        """Tiles of a sample along columns and along rows."""
        rows, columns = (-(-n // SIDE) for n in self.c.positions)
        return rows, columns

    @cached_property
    def channels(self) -> tuple[Range, ...]:
        """Parts of the channels."""
        return _parts(self.c.channels)

    @cached_property
    def outputs(self) -> tuple[Range, ...]:
        """Parts of the filters."""
        return _parts(self.c.outputs)

    @cached_property
    def shares(self) -> int:
        """Sums of each part: several where there are few parts."""
        return -(-SHARES // (len(self.channels) * len(self.outputs)))

    def pieces(self, samples: Range) -> list[Sequence[Piece]]:
        """The pieces of a request's samples, share by share."""
        rows, columns = self.tiles
        most = TILE_BYTES // self.c.itemsize
        across = even(columns, most)
        down = even(rows, most // across)
        count = samples[1] - samples[0]
        found = [
            ((samples[0] + lo, samples[0] + hi), *box)
            for lo, hi in ranges(count, even(count, most // (rows * columns)))
            for box in product(ranges(rows, down), ranges(columns, across))
        ]
        return in_shares(found, self.shares)


def _parts(size: int) -> tuple[Range, ...]:
    return ranges(size, -(-even(size, MOST) // LINE) * LINE)


@lru_cache(maxsize=256)
def cut(c: Correlation) -> Cut:
    """How a correlation's gradient is cut."""
    return Cut(c)


@cache
def _matrices(dtype: str) -> tuple[Array, Array, Array]:
    """Bᵀ (6, 6), A (6, 4), and (G ⊗ G)ᵀ (9, 36)."""
    output, filters, inputs = transforms(SIDE)
    back = np.kron(filters, filters).T
    return inputs.astype(dtype), output.T.astype(dtype, "C"), back.astype(dtype, "C")


def share_bytes(c: Correlation) -> int:
    """What a call holds of the weights where a request's samples are summed in several shares."""
    shares = cut(c).shares
    return c.outputs * c.channels * c.taps * c.itemsize * (shares if shares > 1 else 0)


def backward_weight(
    c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array, plain: PlainSum
) -> None:
    """Write dw (R, 1, O, C, 3, 3) from x (N, 1, C, H, W) and dy (N, 1, O, *P) for each of R requests.

    `plain` does the same as a plain sum: for requests of few tiles, for those of whole numbers, which it
    adds without an error, for those that are mostly zeros, and again for sums that are not finite.
    """
    ends = tuple(accumulate(rows))
    spans = [(end - count, end) for count, end in zip(rows, ends, strict=True)]
    promised = c.wanted == "auto"

    def summed(request: int) -> bool:
        own = slice(*spans[request])
        few = prod(cut(c).tiles) * rows[request] < (1 if c.wanted == "winograd" else LEAST_TILES)
        if few or not promised:
            return few
        return (
            min(c.positions) < LEAST_SIDE
            or _density(x[own, 0]) * _density(dy[own, 0]) < LEAST_SHARE
            or (all(map(is_whole, x[own, 0])) and all(map(is_whole, dy[own, 0])))
        )

    for by_sum, found in groupby(range(len(rows)), summed):
        group = list(found)
        # The plan counts the shares of one request: more are held only while they are small.
        most = len(group) if by_sum else max(1, PART_BYTES // max(1, share_bytes(c)))
        for lo, hi in ranges(len(group), most):
            requests = slice(group[lo], group[hi - 1] + 1)
            own = slice(spans[group[lo]][0], spans[group[hi - 1]][1])
            given = c, x[own], dy[own], rows[requests], dw[requests]
            if by_sum:
                plain(*given)
            else:
                _by_tiles(*given, plain)


def _density(a: Array) -> float:
    return sum(map(dense, a)) / len(a)


def _by_tiles(
    c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array, plain: PlainSum
) -> None:
    plan, start = cut(c), 0
    parts = [(slice(*o), slice(*k)) for o, k in product(plan.outputs, plan.channels)]
    sums = dw if plan.shares == 1 else np.empty((len(rows), plan.shares, *dw.shape[2:]), dw.dtype)
    jobs: list[tuple[Array, Array, Array, Sequence[Piece]]] = []
    owned: list[tuple[slice, int]] = []
    for request, count in enumerate(rows):
        shares = plan.pieces((start, start + count))
        owned.append((slice(start, start + count), len(shares)))
        start += count
        for (share, pieces), (o, k) in product(enumerate(shares), parts):
            jobs.append((sums[request, share, o, k], x[:, 0, k], dy[:, 0, o], pieces))
    for_each(partial(_sum, c.axes), jobs, c.flops * x.shape[0])
    for request, (own, shared) in enumerate(owned):
        if sums is not dw:
            np.add.reduce(sums[request, :shared], axis=0, out=dw[request, 0])
        for o, k in parts:
            target = dw[request : request + 1, :, o, k]
            if not np.isfinite(np.add.reduce(target, axis=None)):
                part = replace(c, outputs=target.shape[2], channels=target.shape[3])
                plain(part, x[own, :, k], dy[own, :, o], (rows[request],), target)


def _sum(
    axes: tuple[Axis, ...], target: Array, x: Array, dy: Array, pieces: Sequence[Piece]
) -> None:
    """Write target (O, C, 3, 3) from pieces of x (N, C, H, W) and dy (N, O, *P)."""
    into, up, back = _matrices(x.dtype.str)
    channels, outputs = x.shape[1], dy.shape[1]
    flat = tuple(Axis(a.out, 1, 1, 1, 0, 0, a.out) for a in axes)
    arena = Arena()
    total = arena.take((POINTS, POINTS, channels, outputs), x.dtype)
    mark = arena.used
    for number, piece in enumerate(pieces):
        check_stop()
        inputs = _transformed(into, x, axes, piece, arena)
        upstream = _transformed(up, dy, flat, piece, arena)
        left, right = inputs.transpose(0, 2, 3, 1), upstream.swapaxes(1, 2)
        made = arena.take(total.shape, x.dtype)
        for lo, hi in ranges(right.shape[2], even(right.shape[2], DEPTH)):
            first = number == lo == 0
            np.matmul(left[..., lo:hi], right[..., lo:hi, :], out=total if first else made)
            if not first:
                np.add(total, made, out=total)
        arena.used = mark
    found = np.matmul(back, total.reshape(POINTS**2, -1))
    target[...] = found.reshape(TAPS, TAPS, channels, outputs).transpose(3, 2, 0, 1)


def _transformed(
    matrix: Array, a: Array, axes: tuple[Axis, ...], piece: Piece, arena: Arena
) -> Array:
    """The tiles of a piece of a (N, K, H, W), transformed along both axes: (6, T, 6, K)."""
    samples, rows, columns = (hi - lo for lo, hi in piece)
    size, width = a.shape[1], matrix.shape[1]
    found = arena.take((POINTS, samples * rows * columns, POINTS, size), a.dtype)
    mark = arena.used
    lines = _lines(a, axes, piece, width - SIDE, arena)
    down = arena.take((samples, rows, POINTS, lines.shape[2] * size), a.dtype)
    n, h, w, one = lines.strides
    strips = np.ndarray(
        (samples, rows, width, down.shape[3]), a.dtype, lines, 0, (n, SIDE * h, h, one)
    )
    np.matmul(matrix, strips, out=down)
    shape = (*down.shape[:3], columns, width, size)
    tiles = np.ndarray(shape, a.dtype, down, 0, (*down.strides[:3], SIDE * w, w, one))
    out = found.reshape(POINTS, samples, rows, columns, POINTS, size).transpose(1, 2, 0, 3, 4, 5)
    np.matmul(matrix, tiles, out=out)
    arena.used = mark
    return found


def _lines(a: Array, axes: tuple[Axis, ...], piece: Piece, overlap: int, arena: Arena) -> Array:
    """The numbers of a (N, K, H, W) under a piece with their padding, channels last: (n, h, w, K)."""
    sources, targets, lengths = [], [], []
    for axis, (lo, hi) in zip(axes, piece[1:], strict=True):
        start, stop = lo * SIDE - axis.low, hi * SIDE - axis.low + overlap
        source, target = axis.placed(start, stop)
        sources.append(source)
        targets.append(target)
        lengths.append(stop - start)
    lines = arena.take((piece[0][1] - piece[0][0], *lengths, a.shape[1]), a.dtype)
    if any(t.stop - t.start < n for t, n in zip(targets, lengths, strict=True)):
        lines.fill(0)
    inputs = a[(slice(*piece[0]), slice(None), *sources)]
    if inputs.strides[1] != inputs.itemsize:
        # Planes may lie apart by a power of two, and then share the lines of the cache.
        together = spaced(inputs.shape, a.dtype, READ, arena.take, 2)
        together[...] = inputs
        inputs = together
    lines[:, targets[0], targets[1]] = inputs.transpose(0, 2, 3, 1)
    return lines

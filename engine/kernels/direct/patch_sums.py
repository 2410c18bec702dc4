"""The gradient of a plain sum's weight: products of dy with gathered patches, added piece by piece.

A piece is some samples and some outputs of each, whose patches fit this thread's scratch. The plan cuts
pieces, and a request's are added in an order of their own, so that its gradient has the same bits whoever
is beside it. Where channels and groups are too few for threads to share, they are summed in shares, and
those are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import Tile, ranges, slices, tiles
from engine.kernels.correlation import Correlation
from engine.kernels.direct import gathered
from engine.kernels.patches import gather, within
from engine.kernels.requests import SHARES, RequestBlock, in_shares, request_blocks, sum_samples
from engine.kernels.viewing import flat_view
from engine.threads import for_each

Array = NDArray[Any]
Piece = tuple[RequestBlock, Tile]
"""Samples of requests, and outputs, whose products are added at one go."""


def share_count(c: Correlation) -> int:
    """Shares of a request's pieces, at most: several where nothing else is for threads to share."""
    blocks = c.weight_blocks
    whole = blocks.groups == c.groups and blocks.channels == c.channels
    return SHARES if whole and not c.weight_joins else 1


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of a correlation in w, for each of R requests.

    x is (N, G, C, *S), dy (N, G, O, *P); `rows` says how many consecutive samples belong to each request.
    """
    if not all(rows):
        dw[...] = 0
    batches = request_blocks(rows, c.weight_blocks.samples)
    most = len(batches)
    if share_count(c) > 1:
        # Shares of many requests at once would be more than a plan counts.
        most = PART_BYTES // max(1, dw[:1].nbytes * share_count(c))
    for lo, hi in ranges(len(batches), max(1, most)):
        _together(c, x, dy, batches[lo:hi], dw)


def _together(
    c: Correlation, x: Array, dy: Array, batches: Sequence[Sequence[RequestBlock]], dw: Array
) -> None:
    """`backward_weight` for as many requests as are summed at once."""
    blocks = c.weight_blocks
    groups, channels = (
        slices(c.groups, blocks.groups),
        slices(c.channels, blocks.channels),
    )
    parts = list(product(groups, channels))

    def share(total: Array, pieces: Sequence[Piece], g: slice, k: slice) -> None:
        _add(c, x[:, g, k], dy[:, g], pieces, total[:, g, :, k])

    jobs, shared = [], []
    for batch in batches:
        out = dw[batch[0][0]]
        pieces = in_shares(list(product(batch, tiles(c.positions, blocks.tile))), share_count(c))
        totals = out[None]
        if len(pieces) > 1:
            totals = np.empty((len(pieces), *out.shape), out.dtype)
            shared.append((totals, out))
        for total, own in zip(totals, pieces, strict=True):
            jobs += [(total, own, *part) for part in parts]
    samples = sum(n.stop - n.start for batch in batches for _, n, _ in batch)
    for_each(share, jobs, c.flops * samples)
    for totals, out in shared:
        np.add.reduce(totals, axis=0, out=out)


def _add(c: Correlation, x: Array, dy: Array, pieces: Sequence[Piece], target: Array) -> None:
    """Write the sum of pieces of x (N, g, C, *S) and dy (N, g, O, *P) to target (R, g, O, C, *K)."""
    for number, ((_, n, each), tile) in enumerate(pieces):
        inputs, upstream = x[n], dy[n]
        if c.weight_joins:
            for request in range(len(target)):
                own = slice(request * each, (request + 1) * each)
                given = c, inputs[own], upstream[own], tile
                _joint_sums(*given, target[request : request + 1], number > 0)
            continue
        found = sum_samples(piece_sums(c, inputs, upstream, tile), each).reshape(target.shape)
        if number:
            target += found
        else:
            target[...] = found


def piece_sums(c: Correlation, x: Array, dy: Array, tile: Tile) -> Array:
    """Products of dy (n, g, O, *P) and the windows of x (n, g, C, *S): (n, g, O, C·K)."""
    upstream = gathered.flat_tile(dy, tile)
    columns = gathered.patches(c, x, tile, upstream.shape[3])
    # BLAS multiplies faster with the longer side on the left.
    if columns.shape[2] < upstream.shape[2]:
        out = arena.part(1, (*upstream.shape[:3], columns.shape[2]), dy.dtype)
        return np.matmul(upstream, columns.swapaxes(2, 3), out=out)
    out = arena.part(1, (*columns.shape[:3], upstream.shape[2]), dy.dtype)
    return np.matmul(columns, upstream.swapaxes(2, 3), out=out).swapaxes(2, 3)


def _joint_sums(c: Correlation, x: Array, dy: Array, tile: Tile, dw: Array, added: bool) -> None:
    """Write `piece_sums`, with the sum over samples within one product, to dw (1, g, O, C, *K).

    With `added`, add them to it.
    """
    block = np.moveaxis(dy[within(slice(lo, hi) for lo, hi in tile)], 0, 2)
    upstream = arena.part(2, block.shape, dy.dtype)
    upstream[...] = block
    columns = arena.part(0, (*x.shape[1:3], *c.kernel, *block.shape[2:]), x.dtype)
    gather(x, c.axes, tile, c.mode, np.moveaxis(columns, 2 + len(tile), 0))
    rows = columns.reshape(x.shape[1], x.shape[2] * c.taps, -1)
    # Results are as many as the weights: what needs no other place is written once.
    target = None if added else flat_view(dw, rows.shape[1])
    out = (
        arena.part(1, (1, *upstream.shape[:2], rows.shape[1]), dy.dtype)
        if target is None
        else target
    )
    np.matmul(upstream.reshape(*out.shape[1:3], -1), rows.swapaxes(1, 2), out=out[0])
    if added:
        dw += out.reshape(dw.shape)
    elif target is None:
        dw[...] = out.reshape(dw.shape)

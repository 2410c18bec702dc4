"""How pooling is cut into blocks for reductions and for finding maxima, as large as the scratch allows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from engine.arena import SCRATCH_BYTES
from engine.geometry import Axis, Tile, block_tile, even, ranges, tiles
from engine.kernels.pools import tracing, winners
from engine.kernels.pools.pooling import RUN_BLOCKS, Blocks, Pooling

TileBytes = Callable[[tuple[Axis, ...], Tile, int, int], int]
"""Bytes of the scratch that a tile of one plane takes, from (axes, tile, inner, itemsize)."""

ROOM = SCRATCH_BYTES * 3 // 4
"""Bytes that finding maxima plans with; borders of tiles need some more."""


def blocks(p: Pooling, samples: int, itemsize: int) -> Blocks:
    """Blocks for reductions."""
    if p.overlapping_axes:
        return winner_blocks(p, samples, itemsize)
    cut = p.tiles(RUN_BLOCKS if p.channel_run_axes else 1)
    return list(cut), list(p.plane_blocks(samples, RUN_BLOCKS if p.tapped_axes else p.joined))


def winner_blocks(
    p: Pooling,
    samples: int,
    itemsize: int,
    room: TileBytes = winners.room,
    *,
    axes: tuple[Axis, ...] | None = None,
) -> Blocks:
    """Blocks for finding where maxima stand, as large as the scratch allows: fewer calls of NumPy,
    each of which threads have to take turns to begin.

    The axes are those of few taps, unless others are given.
    """
    axes = axes or p.tapped_axes
    if axes is None:
        return list(p.tiles(copied=True)), list(p.plane_blocks(samples, copied=True))
    inner = p.channels if p.channels_last else 1
    whole = tuple((0, out) for out in p.positions)
    plane = room(axes, whole, inner, itemsize)
    if plane > ROOM and inner > 1:
        inner = even(inner, ROOM // room(axes, ((0, 1),) * len(axes), 1, itemsize))
        plane = room(axes, whole, inner, itemsize)
    width = max(1, prod(p.positions) * ROOM // plane)
    tile = block_tile(p.positions, width)
    while width > 1 and plane > ROOM:
        if room(axes, tuple((0, n) for n in tile), inner, itemsize) <= SCRATCH_BYTES:
            break
        width //= 2
        tile = block_tile(p.positions, width)
    cut = list(tiles(p.positions, tile))
    most = inner if p.channels_last else max(1, ROOM // plane)
    parts = -(-p.channels // most)
    alike = max(1, ROOM // (plane * p.channels // inner)) if parts == 1 else 1
    planes = product(ranges(samples, alike), ranges(p.channels, -(-p.channels // parts)))
    return cut, [(slice(*n), slice(*c)) for n, c in planes]


def argmax_blocks(p: Pooling, samples: int, itemsize: int) -> Blocks:
    """Blocks for positions of maxima."""

    def room(axes: tuple[Axis, ...], tile: Tile, inner: int, itemsize: int) -> int:
        # What is made of the results is beside the scratch: positions are integers of eight bytes.
        outputs = prod(hi - lo for lo, hi in tile) * inner
        return tracing.room(axes, tile, inner, itemsize) + 8 * outputs

    return winner_blocks(p, samples, itemsize, room, axes=tracing.suits(p))

"""How the gradient of a weight is cut whose taps of the first axis are shifts: all integers.

A tile is some rows of outputs. Beside its own rows of inputs it gathers those that its last taps reach.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from engine.arena import PART_BYTES
from engine.geometry import Axis, Tile, block_tile, tiles
from engine.kernels.correlation import Correlation
from engine.kernels.requests import SHARES
from engine.kernels.slabs import Taps, in_row, row

SUMMED = 1_000_000
"""Multiplications of one product: as many as BLAS makes in place, where it does, and no longer sums than
keep their digits."""

LEAST_ROWS = 8
"""Rows of a tile for each row beyond it, which the next tile gathers again."""


@dataclass(frozen=True)
class Shifts:
    """How the gradient is cut: all integers.

    Attributes:
        axes: the axes that are gathered; along the first, taps are residues and outputs rows of inputs.
        taps: the taps of the first axis by residue.
        reach: rows beyond a tile's own that its last taps read.
        groups: groups of one block.
        parts: shares of a request's sums, so that there is work for some threads.
        tile: outputs of one block along each axis.
    """

    axes: tuple[Axis, ...]
    taps: tuple[Taps, ...]
    reach: int
    groups: int
    parts: int
    tile: tuple[int, ...]


@lru_cache(maxsize=1024)
def plan(c: Correlation) -> Shifts | None:
    """How the gradient of a correlation's weight is cut; None where not even one group fits the scratch,
    or rows are too far apart."""
    first, capacity = c.axes[0], PART_BYTES // c.itemsize
    if not in_row(first):
        return None
    reach = (first.extent - 1) // first.stride
    held, results = depth(c) * first.stride, first.kernel * depth(c) * c.outputs
    # Positions whose products fit the scratch; two more may come of what is left over.
    summed = max(0, capacity // results - 2) * most(c)
    wanted = min(first.out, LEAST_ROWS * max(1, reach))
    fitting = capacity // max(held * (wanted + reach), c.outputs * wanted)
    rest = block_tile(c.positions[1:], max(1, min(fitting, summed // wanted)))
    line = prod(rest)
    rows = min(capacity // (held * line) - reach, capacity // (c.outputs * line), summed // line)
    rows = min(first.out, rows)
    if rows < 1:
        return None
    rows = -(-first.out // -(-first.out // rows))
    alike = capacity // max(held * line * (rows + reach), c.outputs * line * rows, results)
    groups = min(alike, -(-c.groups // SHARES))
    down = Axis(first.size, first.stride, first.stride, 1, first.low, first.high, first.out + reach)
    return Shifts(
        (down, *c.axes[1:]),
        row(first).taps,
        reach,
        groups,
        max(1, SHARES * groups // c.groups),
        (rows, *rest),
    )


def depth(c: Correlation) -> int:
    """Rows of one product: the channels and all taps but those of the first axis."""
    return c.channels * c.taps // c.axes[0].kernel


def most(c: Correlation) -> int:
    """Positions that one product adds up, at most."""
    return SUMMED // (depth(c) * c.outputs)


@lru_cache(maxsize=1024)
def length(positions: int, most: int) -> int:
    """Positions that one product adds up: at most `most`, and a divisor of all if one is near."""
    count = -(-positions // most)
    found = (n for n in range(count, 2 * count) if positions % n == 0)
    return -(-positions // next(found, count))


@dataclass(frozen=True)
class Cut:
    """A tile.

    Attributes:
        inputs: positions that are gathered: the outputs, and the rows beyond that taps reach.
        source: the real inputs among them, as a box of x (g, C, *S).
        upstream: the outputs, as a box of dy (g, O, *P).
        axes: the axes that are gathered, of those real inputs alone. Tiles that differ only by where they
            lie have the same.
    """

    inputs: Tile
    source: tuple[Any, ...]
    upstream: tuple[Any, ...]
    axes: tuple[Axis, ...]


@lru_cache(maxsize=256)
def cuts(c: Correlation) -> tuple[Cut, ...]:
    """All tiles of a sample."""
    found = plan(c)
    assert found is not None
    alike: dict[tuple[Axis, ...], tuple[Axis, ...]] = {}
    return tuple(_cut(found, tile, alike) for tile in tiles(c.positions, found.tile))


def _cut(found: Shifts, tile: Tile, alike: dict[tuple[Axis, ...], tuple[Axis, ...]]) -> Cut:
    (lo, hi), *rest = tile
    inputs = ((lo, hi + found.reach), *rest)
    sources, axes = [], []
    for axis, (first, last) in zip(found.axes, inputs, strict=True):
        start = axis.input_of(0, first)
        source, place = axis.placed(start, axis.input_of(axis.kernel - 1, last - 1) + 1)
        size = source.stop - source.start
        axes.append(replace(axis, size=size, low=place.start, high=0, out=last - first))
        sources.append(source)
    own = tuple(axes)
    # One object for equal axes, as dictionaries find that sooner.
    own = alike.setdefault(own, own)
    return Cut(inputs, (..., *sources), (..., *(slice(*span) for span in tile)), own)

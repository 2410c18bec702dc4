"""How the gradient of 3×3 filters by tiles is cut: parts of channels and of filters, and pieces.

A piece is some tiles of some samples, which are transformed at one go, and add one product for each of
their points to the sums of a part. All of it is integers, worked out once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

from engine.blas import multiplies_in_place
from engine.geometry import Axis, even, ranges
from engine.kernels.correlation import Correlation
from engine.kernels.products import LINE
from engine.kernels.requests import SHARES
from engine.kernels.winograd.tiling import TAPS

Range = tuple[int, int]
Spans = tuple[Range, ...]
Slices = tuple[slice, ...]

SIDES = (2, 4)
"""Outputs of a tile along columns and along rows."""

MOST = 64 if multiplies_in_place() else 128
"""Channels, and filters, of a part. Where BLAS copies operands, wider products copy fewer, and that is more
than sums lose which do not stay in the second-level cache."""

MOST_BYTES = 512
"""One number of every channel, or filter, of a part."""

TILE_BYTES = 512
"""One number of every tile of a piece. The fewer calls, the less threads wait for each other."""

POINT_BYTES = 1 << 15
"""One transformed point of an operand of a piece."""


@dataclass(frozen=True)
class Shape:
    """What pieces have in common that differ only by where they lie.

    Attributes:
        counts: samples, and tiles along columns and along rows.
        inputs: size of what is under it along columns and rows, padding included.
        placed: where in that the map's inputs stand.
        outputs, made: the same for outputs; what lies behind the last one is zeros.
    """

    counts: tuple[int, ...]
    inputs: tuple[int, ...]
    placed: Spans
    outputs: tuple[int, ...]
    made: Spans


@dataclass(frozen=True)
class Piece:
    """A piece: its inputs in x (N, C, H, W), its outputs in dy (N, O, *P), and its shape."""

    source: Slices
    upstream: Slices
    shape: Shape


@dataclass(frozen=True)
class Cut:
    """How a gradient is cut: parts of channels and filters, and pieces of a request. All integers."""

    c: Correlation

    @cached_property
    def tiles(self) -> tuple[int, int]:
        """Tiles of a sample along columns and along rows."""
        rows, columns = (-(-n // side) for n, side in zip(self.c.positions, SIDES, strict=True))
        return rows, columns

    @cached_property
    def channels(self) -> tuple[Range, ...]:
        """Parts of the channels."""
        return self._parts(self.c.channels)

    @cached_property
    def outputs(self) -> tuple[Range, ...]:
        """Parts of the filters."""
        return self._parts(self.c.outputs)

    @cached_property
    def shares(self) -> int:
        """Sums of each part: several where there are few parts."""
        return -(-SHARES // (len(self.channels) * len(self.outputs)))

    @cached_property
    def most(self) -> int:
        """Tiles of a piece at most."""
        widest = max(hi - lo for lo, hi in (*self.channels, *self.outputs))
        return min(TILE_BYTES, POINT_BYTES // widest) // self.c.itemsize

    def _parts(self, size: int) -> tuple[Range, ...]:
        most = min(MOST, MOST_BYTES // self.c.itemsize)
        return ranges(size, -(-even(size, most) // LINE) * LINE)


@lru_cache(maxsize=256)
def cut(c: Correlation) -> Cut:
    """How a correlation's gradient is cut."""
    return Cut(c)


@lru_cache(maxsize=256)
def pieces(c: Correlation, samples: int) -> tuple[Piece, ...]:
    """All pieces of a number of samples."""
    rows, columns = cut(c).tiles
    most = cut(c).most
    across = even(columns, most)
    down = even(rows, most // across)
    shapes: dict[Shape, Shape] = {}
    return tuple(
        _piece(c, n, box, shapes)
        for n in ranges(samples, even(samples, most // (rows * columns)))
        for box in product(ranges(rows, down), ranges(columns, across))
    )


def _piece(c: Correlation, samples: Range, box: Spans, shapes: dict[Shape, Shape]) -> Piece:
    flat = tuple(Axis(a.out, 1, 1, 1, 0, 0, a.out) for a in c.axes)
    source, inputs, placed = _under(c.axes, box, TAPS - 1)
    upstream, outputs, made = _under(flat, box, 0)
    counts = tuple(hi - lo for lo, hi in (samples, *box))
    shape = Shape(counts, inputs, placed, outputs, made)
    # One object for equal shapes, as dictionaries find that sooner.
    shape = shapes.setdefault(shape, shape)
    own = (slice(*samples), slice(None))
    return Piece((*own, *source), (*own, *upstream), shape)


def _under(
    axes: tuple[Axis, ...], box: Spans, overlap: int
) -> tuple[Slices, tuple[int, ...], Spans]:
    """What is under a box of tiles along each axis, how long that is, and where in it it stands."""
    sources, lengths, placed = [], [], []
    for axis, (lo, hi), side in zip(axes, box, SIDES, strict=True):
        start, stop = lo * side - axis.low, hi * side - axis.low + overlap
        source, place = axis.placed(start, stop)
        sources.append(source)
        lengths.append(stop - start)
        placed.append((place.start, place.stop))
    return tuple(sources), tuple(lengths), tuple(placed)

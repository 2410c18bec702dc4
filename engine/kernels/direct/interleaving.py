"""How all residues of a strided map are made from one set of copies: what they share, and how it is cut.

Residues of a map's inputs modulo the stride meet taps of their own (`phases`), but all of them read outputs
that are the same few places away. For a band of the first axis, copies of the gradient of the output hold
what its inputs read, one for each place across that any of them reads:

    copies (D, O, R + …, Q)   for D shifts across, and R rows of Q inputs of a residue

Shifts along the axes before the last are places further on in the same copies. In those of a volume, each
plane has more rows than there are inputs down; sums over its taps have them, too, and nobody reads these.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from operator import mul
from typing import NamedTuple

from engine.arena import PART_BYTES
from engine.geometry import Axis, even, row_major
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.direct.adjoints import KEPT
from engine.kernels.direct.joined import MOST_COLUMNS
from engine.kernels.phases import Residue, residues

BAND_BYTES = 1 << 20
"""Of the copies of a band, which the second-level cache holds most of."""

LEAST_COLUMNS = 1024
"""Of a product, in bands for threads: with fewer they rather share the residues of one band."""

LINE_FLOPS = 24_000_000
"""Of a sample of a line: residues of less work are gathered for several samples at once."""

MAP_FLOPS = 50_000_000
"""The same for images and volumes."""

SMALL_FLOPS = 100_000_000
"""The same for small images, of which residues gather more samples at once."""

SMALL_PLACES = 256
"""Outputs for each filter below which an image is small."""

LEAST_OUTPUTS = 16
"""Filters. Of fewer, products have too few numbers for each result; those of all rows of taps are added."""

MOST_OUTPUTS = 512
"""Filters. Of more, bands have too few columns, unless channels are last: then these are rows."""

LEAST_PLACES = 400
"""Outputs of a volume for each filter. Of fewer, too many sums belong to no input."""

MANY_PLACES = 4096
"""The same for volumes of more channels than filters, for whose rows of taps more is added."""

LAYERS = 128
"""Layers whose phases are kept, at some hundred bytes for each and some for each row of taps."""


class Shared(NamedTuple):
    """What all residues along an axis share.

    Attributes:
        met: residues that meet any tap, and their windows.
        first: the least shift. shifts: how many there are.
        length: inputs of the longest residue.
    """

    met: tuple[tuple[Residue, Axis], ...]
    first: int
    shifts: int
    length: int

    @property
    def window(self) -> Axis:
        """One of the windows, all of which are over the same outputs."""
        return self.met[0][1]

    @property
    def read(self) -> int:
        """Places that inputs of all residues read."""
        return self.length + self.shifts - 1


@lru_cache(maxsize=LAYERS)
def shared(c: Correlation) -> tuple[Shared, ...]:
    """What residues share along each axis."""
    found = []
    for axis in c.axes:
        met = tuple((r, r.window) for r in residues(axis) if r.window is not None)
        first = min(-window.low for _, window in met)
        last = max(window.kernel - 1 - window.low for _, window in met)
        length = max(window.out for _, window in met)
        found.append(Shared(met, first, last - first + 1, length))
    return tuple(found)


@lru_cache(maxsize=4096)
def suits(c: Correlation) -> bool:
    """True where residues read the same shifts, and a row of all of them fits the scratch."""
    # Where taps lie apart, those of a residue read shifts that do, too.
    if c.groups > 1 or any(axis.dilation != 1 for axis in c.axes):
        return False
    if not 2 <= c.phase_count <= KEPT:
        return False
    met = all(any(r.window is not None for r in residues(axis)) for axis in c.axes)
    return met and band(c) > 0


def pay(c: Correlation) -> bool:
    """True where it takes less time than residues by themselves, by random layers.

    Those of the smallest maps share products among samples.
    """
    if c.outputs < LEAST_OUTPUTS or c.places <= MOST_COLUMNS:
        return False
    if not c.channels_last and c.outputs > MOST_OUTPUTS:
        return False
    if len(c.axes) == 1:
        return c.flops >= LINE_FLOPS
    if len(c.axes) == 2:
        return c.flops >= (SMALL_FLOPS if c.places < SMALL_PLACES else MAP_FLOPS)
    enough = LEAST_PLACES if c.channels <= c.outputs else MANY_PLACES
    return c.flops >= MAP_FLOPS and c.places >= enough


def extents(c: Correlation, rows: int) -> tuple[int, ...]:
    """Places that sums for a band of so many rows have along each axis."""
    _, *others = shared(c)
    between = (axis.read for axis in others[:-1])
    return (rows, *between, *(axis.length for axis in others[-1:]))


def copied(c: Correlation, rows: int) -> tuple[int, ...]:
    """Places along each axis of the copies that a band of so many rows reads."""
    first, *others = shared(c)
    # Those of a line are copied anew for each shift, as along every last axis.
    more = first.shifts - 1 if others else 0
    return (rows + more, *extents(c, rows)[1:])


def columns(c: Correlation, rows: int) -> int:
    """Places from the first input of a residue in a band to the last."""
    last = (rows - 1, *(axis.length - 1 for axis in shared(c)[1:]))
    return 1 + sum(map(mul, row_major(extents(c, rows)), last))


@lru_cache(maxsize=4096)
def band(c: Correlation) -> int:
    """Rows of a band, of as many in each as there can be alike; 0 where not even one fits.

    Those of a line are its inputs.
    """
    along, each = shared(c), prod(extents(c, 1)) * c.itemsize
    copies = BAND_BYTES // (each * along[-1].shifts * c.outputs)
    most = min(copies - (copied(c, 1)[0] - 1), PART_BYTES // (each * c.channels))
    if most < 1:
        return 0
    inputs, length = prod(axis.length for axis in along), along[0].length
    halved = c.flops >= SHARED_FLOPS and inputs >= 2 * LEAST_COLUMNS
    return even(length, min(most, -(-length // (2 if halved else 1))))


class Phase(NamedTuple):
    """A residue along each axis, which meet some inputs.

    Attributes:
        taps: of the windows. inputs: of the map.
        copies: rows of the copies that the taps across read.
        starts: for each row of taps, which is a product, the place in these that its first input reads.
    """

    taps: tuple[slice, ...]
    inputs: tuple[slice, ...]
    copies: slice
    starts: tuple[int, ...]

    @property
    def work(self) -> int:
        """Numbers that are read for each input."""
        return len(self.starts) * (self.copies.stop - self.copies.start)


@lru_cache(maxsize=LAYERS)
def phases(c: Correlation) -> tuple[Phase, ...]:
    """The phases that meet any tap."""
    *before, across = shared(c)
    pitches = row_major(extents(c, 1))[:-1]
    found = []
    for met in product(*(axis.met for axis in (*before, across))):
        own, windows = zip(*met, strict=True)
        first = -windows[-1].low - across.first
        places = (
            range(-window.low - axis.first, -window.low - axis.first + window.kernel)
            for axis, window in zip(before, windows[:-1], strict=True)
        )
        found.append(
            Phase(
                tuple(residue.taps for residue in own),
                tuple(residue.inputs for residue in own),
                slice(first * c.outputs, (first + windows[-1].kernel) * c.outputs),
                tuple(sum(map(mul, pitches, place)) for place in product(*places)),
            )
        )
    return tuple(found)


@lru_cache(maxsize=LAYERS)
def shares(c: Correlation) -> tuple[tuple[int, ...], ...]:
    """Phases that a thread goes through: half of the work where a sample is one band and enough for two."""
    found = phases(c)
    if band(c) < shared(c)[0].length or c.flops < SHARED_FLOPS:
        return (tuple(range(len(found))),)
    halves: tuple[list[int], list[int]] = ([], [])
    for number in sorted(range(len(found)), key=lambda each: -found[each].work):
        min(halves, key=lambda half: sum(found[each].work for each in half)).append(number)
    return tuple(map(tuple, halves))

"""Inputs laid out by residues modulo the stride, for reductions over windows.

The inputs under a tile are laid out residue by residue, with a border where windows reach into padding.
There a tap is a constant distance for all outputs at once, so that each operation is one pass over
consecutive numbers, places between rows included; what they hold is never looked at.

Arrays are x (*B, *S, I) in its order in memory: samples, and channels where they come first; spatial
axes; channels where they come last, else 1. Taps are numbered in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from numpy.typing import NDArray

from engine.geometry import Axis, Tile, row_major
from engine.kernels.slabs import copies

Array = NDArray[Any]
Index = tuple[Any, ...]
Move = tuple[slice, slice]
"""Places along an axis, and the inputs that stand there."""

Taps = tuple[tuple[int, int], ...]
"""For each tap, its residue and how many places after the window it stands."""

Stages = tuple[tuple[int, Taps], ...]
"""The residues and the taps of each axis."""

Split = tuple[tuple[int, int, int] | None, ...]
"""For each axis that is cut into runs of the stride: its first input, the runs, and the stride."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The inputs that some outputs along one axis read, by residue modulo the stride.

    Attributes:
        length: places of each residue, borders included.
        moves: for each residue, places and the inputs that stand there.
        taps: for each tap, its residue and how many places after the output it stands.
        empty: whether a window holds no input.
    """

    length: int
    moves: tuple[Move, ...]
    taps: tuple[tuple[int, int], ...]
    empty: bool


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to do for a tile; every index fits arrays with any number of axes before the spatial ones.

    Attributes:
        residues, lengths: of the laid out inputs, in their order.
        split: how the inputs are opened for their moves.
        moves: boxes of them, and the inputs that go there.
        borders: boxes where padding stands.
        stages: for each axis, last to first, the residues, and a residue and a distance for each tap.
        taps: for each tap of all axes together, the same.
        outputs: the places of outputs.
        empty: whether a window holds no input.
    """

    residues: tuple[int, ...]
    lengths: tuple[int, ...]
    split: Split
    moves: tuple[tuple[Index, Index], ...]
    borders: tuple[Index, ...]
    stages: Stages
    taps: tuple[tuple[Index, int], ...]
    outputs: Index
    empty: bool

    @property
    def places(self) -> int:
        """Numbers that one plane takes, at all stages together."""
        plane = prod(self.lengths)
        return sum(prod(self.residues[done:]) for done in range(len(self.residues) + 1)) * plane


def fold(axis: Axis, lo: int, hi: int) -> Fold:
    """The fold of the outputs [lo, hi)."""
    stride = axis.stride
    stands = [divmod(axis.input_of(tap, lo), stride) for tap in range(axis.kernel)]
    origin = min(place for place, _ in stands)
    length = hi - lo + max(place for place, _ in stands) - origin
    residues = sorted({residue for _, residue in stands})
    moves = []
    for residue in residues:
        start = min(max(0, -origin), length)
        stop = min(max(start, -(-(axis.size - residue) // stride) - origin), length)
        first = (origin + start) * stride + residue
        inputs = slice(first, first + (stop - start - 1) * stride + 1, stride)
        moves.append((slice(start, stop), inputs if stop > start else slice(0, 0)))
    covered = lo
    for start, stop in sorted(axis.outputs_of(tap, lo, hi) for tap in range(axis.kernel)):
        if start <= covered:
            covered = max(covered, stop)
    taps = tuple((residues.index(residue), place - origin) for place, residue in stands)
    return Fold(length, tuple(moves), taps, covered < hi)


def boxes(
    sides: Sequence[Sequence[Move]], inner: int
) -> tuple[Split, tuple[tuple[Index, Index], ...]]:
    """Boxes of laid out inputs, and of opened ones that go there, from the moves of each residue.

    All residues of an axis go together where they have as many inputs each. But those of numbers in a
    row do not: they are taken apart in other ways.
    """
    alone = len(sides) - 1 if inner == 1 else len(sides)
    split = tuple(_even(side) if axis != alone else None for axis, side in enumerate(sides))
    moves = []
    for residues in product(
        *(range(1 if part else len(side)) for part, side in zip(split, sides, strict=True))
    ):
        found = [side[u] for side, u in zip(sides, residues, strict=True)]
        of = [slice(None) if part else u for part, u in zip(split, residues, strict=True)]
        inputs = [slice(None) if part else i for part, (_, i) in zip(split, found, strict=True)]
        places = (*reversed(of), ..., *(places for places, _ in found), slice(None))
        moves.append((places, (..., *inputs, slice(None))))
    return split, tuple(moves)


def _even(side: Sequence[Move]) -> tuple[int, int, int] | None:
    places, inputs = side[0]
    start, stride = inputs.start, inputs.step
    if len(side) == 1 or len(side) != stride:
        return None
    if any(at != places or i.start != start + u for u, (at, i) in enumerate(side)):
        return None
    return start, places.stop - places.start, stride


def opened(a: Array, split: Split) -> Array:
    """A view of a (*B, *S, I) with split axes cut in runs: (*U reversed, *B, *runs, I)."""
    if not any(split):
        return a
    box, shape, order = _opening(split, a.shape)
    return a[box].reshape(shape, copy=False).transpose(order)


@lru_cache(maxsize=1024)
def _opening(split: Split, shape: tuple[int, ...]) -> tuple[Index, tuple[int, ...], Index]:
    lead = len(shape) - len(split) - 1
    box: list[Any] = [...]
    sizes, kept, cut = list(shape[:lead]), list(range(lead)), list[int]()
    for size, part in zip(shape[lead:-1], split, strict=True):
        kept.append(len(sizes))
        if part is None:
            box.append(slice(None))
            sizes.append(size)
        else:
            start, runs, stride = part
            box.append(slice(start, start + runs * stride))
            cut.append(len(sizes) + 1)
            sizes += [runs, stride]
    kept.append(len(sizes))
    return (*box, slice(None)), (*sizes, shape[-1]), (*reversed(cut), *kept)


@lru_cache(maxsize=512)
def recipe(axes: tuple[Axis, ...], tile: Tile, inner: int) -> Recipe:
    """The recipe of a tile of arrays whose last axis has `inner` elements."""
    folds = [fold(axis, *span) for axis, span in zip(axes, tile, strict=True)]
    lengths = (*(each.length for each in folds), inner)
    units = row_major(lengths)[:-1]
    split, moves = boxes([each.moves for each in folds], inner)
    borders: list[Index] = []
    for target, _ in moves:
        before = target[: len(axes) + 1]
        for axis, held in enumerate(target[len(axes) + 1 : -1]):
            after = (slice(None),) * (len(axes) - axis)
            edges = slice(0, held.start), slice(held.stop, folds[axis].length)
            borders += [(*before, edge, *after) for edge in edges if edge.start < edge.stop]
    stands = [
        [(residue, place * unit) for residue, place in each.taps]
        for each, unit in zip(folds, units, strict=True)
    ]
    return Recipe(
        residues=tuple(len(each.moves) for each in reversed(folds)),
        lengths=lengths,
        split=split,
        moves=moves,
        borders=tuple(borders),
        stages=tuple(
            (len(each.moves), tuple(stand))
            for each, stand in zip(reversed(folds), reversed(stands), strict=True)
        ),
        taps=tuple(
            (tuple(residue for residue, _ in reversed(tap)), sum(shift for _, shift in tap))
            for tap in product(*stands)
        ),
        outputs=(..., *(slice(0, hi - lo) for lo, hi in tile), slice(None)),
        empty=any(each.empty for each in folds),
    )


def lay(x: Array, found: Recipe, border: float, laid: Array) -> None:
    """Lay x (*B, *S, I) out by residues, those of the last axis first: (*U reversed, *B, *L, I)."""
    x = opened(x, found.split)
    for target, source in found.moves:
        _copy(laid[target], x, source)
    for edge in found.borders:
        laid[edge] = border


def _copy(target: Array, x: Array, source: Index) -> None:
    if x.shape[-1] > 1 or source[-2].step != 2:
        target[...] = x[source]
        return
    rows = x[(*source[:-2], slice(None), 0)]
    runs = rows.strides[-1] == rows.itemsize
    for copy in copies(target[..., 0], rows.shape[-1], source[-2], runs=runs):
        copy.target[...] = copy.source(rows)

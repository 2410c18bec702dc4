"""The gradient of maxima, handed from windows to the inputs that won them, one axis at a time.

Windows are reduced along the last axis first, over inputs laid out as in `residues`. Every comparison
leaves a mask: which windows a later tap won. The gradient takes the way back, first axis first: its bits
times the mask, 0 or 1, are what the tap gets, and the exclusive or of both is left to the taps before it.
Nothing is added to but where taps meet on one input, and no position is ever worked out. Of equal
maxima the first in a row wins, then the first of the rows: the first in row-major order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena
from engine.geometry import Axis, Tile
from engine.kernels.kept import kept
from engine.kernels.nan import settle
from engine.kernels.pools.owning import Own, own
from engine.kernels.pools.residues import Recipe, Stages, Taps, lay, opened, recipe
from engine.kernels.pools.winners import Step, ordered
from engine.kernels.slabs import LITTLE

Array = NDArray[Any]
Index = tuple[Any, ...]
Shape = tuple[tuple[int, ...], tuple[int, ...], Stages, tuple[int, ...]]
"""Residues, lengths and stages of a recipe, and its outputs along each axis."""

BOOL = np.dtype(np.bool_)


@dataclass(frozen=True, slots=True)
class Handing:
    """Views of a thread's scratch, and what is done to them, for blocks of one shape.

    Attributes:
        laid: the inputs by residues; afterwards their gradient, as `gradient` sees it.
        compare: makes the masks.
        upstream: where the gradient of the windows goes; `numbers` are all of its places in a row.
        zeros: places of the gradient that no window reaches, and the windows' where some stand beyond
            the outputs; the scratch between two blocks has been a block's of another shape.
        hand: makes the gradient of the inputs.
    """

    laid: Array
    gradient: Array
    compare: tuple[Step, ...]
    upstream: Array
    numbers: Array
    zeros: tuple[Array, ...]
    hand: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A tile of arrays (*B, *S, I).

    Attributes:
        mine: what it owns.
        found: how the inputs under it are laid out.
        shape: what its handings have in common, but for the planes and how they are compared.
    """

    mine: Own
    found: Recipe
    shape: Shape


def part_of(axes: tuple[Axis, ...], tile: Tile, inner: int) -> Part:
    """A tile of arrays whose last axis has `inner` elements."""
    mine = own(axes, tile, inner)
    found = recipe(axes, mine.reach, inner)
    counts = tuple(hi - lo for lo, hi in mine.reach)
    return Part(mine, found, (found.residues, found.lengths, found.stages, counts))


def hand(x: Array, g: Array, part: Part, dx: Array) -> None:
    """Write the gradient of the inputs that a tile owns to dx (*B, *S, I).

    x is (*B, *S, I), g the gradient (*B, *P, I) of all windows' maxima. The first of a window's
    equal maxima gets it.
    """
    mine, found = part.mine, part.found
    # Reading everything in order before it is taken apart also brings it into the cache. NaN equals
    # nothing, and minus infinity a border.
    plain = np.minimum.reduce(x[mine.read], axis=None, initial=np.inf) > -np.inf
    lead = x.shape[: -len(found.lengths)]
    dtype = x.dtype if plain else np.dtype(f"i{x.itemsize}")
    steps = handing(part.shape, lead, dtype)
    if plain:
        lay(x, found, -np.inf, steps.laid)
    else:
        inputs = np.empty(steps.laid.shape, x.dtype)
        lay(x, found, -np.inf, inputs)
        steps.laid[...] = ordered(inputs)
        for edge in found.borders:
            steps.laid[edge] = np.iinfo(steps.laid.dtype).min
    for ufunc, operands, result in steps.compare:
        ufunc(*operands, out=result)
    for zero in steps.zeros:
        zero.fill(0)
    np.copyto(steps.upstream, g[mine.outputs])
    # What is handed on is a copy of these or a sum of some, which no NaN comes of if their squares
    # can be added.
    finite = np.dot(steps.numbers, steps.numbers) < np.inf
    for ufunc, operands, result in steps.hand:
        ufunc(*operands, out=result)
    if not mine.covered:
        dx[mine.inputs] = 0
    opening = opened(dx, mine.split)
    for source, target in mine.moves:
        _put(opening, target, steps.gradient[source])
    if not finite:
        settle(dx[mine.inputs])


def room(axes: tuple[Axis, ...], tile: Tile, inner: int, itemsize: int) -> int:
    """Bytes of the arena that a tile of one plane takes."""
    found = recipe(axes, tile, inner)
    places = prod(found.lengths)
    masks, most = 0, places
    for residues, taps in reversed(found.stages):
        masks += places * (len(taps) - 1)
        most, places = places, places * residues
    return (found.places + prod(found.lengths) + most) * itemsize + masks


@kept
def handing(shape: Shape, lead: tuple[int, ...], dtype: np.dtype[Any]) -> Handing:
    """The steps for inputs (*lead, *S, I) that are compared as `dtype`."""
    places, lengths, each, counts = shape
    arena = Arena()
    real, bits = (np.dtype(f"{kind}{dtype.itemsize}") for kind in "fu")
    laid = arena.take((*places, *lead, *lengths), dtype)
    compare: list[Step] = []
    stages: list[tuple[Taps, list[Array], Array, Array]] = []
    values = laid
    for residues, taps in each:
        values = values.reshape(residues, -1)
        best = arena.take(values.shape[1:], dtype)
        won = _compare(values, taps, best, compare, arena)
        stages.append((taps, won, values.view(bits), best.view(bits)))
        values = best
    # Which of the last stage's are the maxima is known, and what they are is not needed.
    compare.pop()
    upstream = arena.take(values.shape, bits)
    numbers = upstream.view(real)
    box: Index = (..., *map(slice, counts), slice(None))
    outputs = numbers.reshape(*lead, *lengths)[box]
    zeros = [upstream] if outputs.size < upstream.size else []
    steps: list[Step] = []
    g = upstream
    for taps, won, target, rest in reversed(stages):
        zeros += _unreached(taps, target)
        steps += _hand(g, taps, won, rest, target, arena)
        g = target.reshape(-1)
    made = tuple(compare), outputs, numbers, tuple(zeros), tuple(steps)
    return Handing(laid, laid.view(real), *made)


def _end(taps: Taps, places: int) -> int:
    """Places at which windows can begin."""
    return places - max(shift for _, shift in taps)


def _fresh(taps: Taps) -> list[bool]:
    """For each tap, whether it is the last of its residue, and so the first that is handed to."""
    residues = [residue for residue, _ in taps]
    return [residue not in residues[tap + 1 :] for tap, residue in enumerate(residues)]


def _compare(
    values: Array, taps: Taps, best: Array, steps: list[Step], arena: Arena
) -> list[Array]:
    """Add the steps that reduce values (U, n) to their best (n); what each tap but the first won."""
    end = _end(taps, best.size)
    views = [values[residue, shift : shift + end] for residue, shift in taps]
    result, highest, won = best[:end], views[0], []
    for view in views[1:]:
        won.append(arena.take((end,), BOOL))
        steps.append((np.less, (highest, view), won[-1]))
        steps.append((np.maximum, (highest, view), result))
        highest = result
    if highest is not result:
        steps.append((np.positive, (highest,), result))
    return won


def _unreached(taps: Taps, target: Array) -> list[Array]:
    """What the first of the taps to be handed to leaves out of each residue of target (U, n)."""
    end = _end(taps, target.shape[1])
    edges = []
    for (residue, shift), fresh in zip(taps, _fresh(taps), strict=True):
        if fresh:
            edges += _edges(target[residue], shift, end)
    return edges


def _edges(places: Array, shift: int, end: int) -> list[Array]:
    """What a tap at `shift` of so many windows leaves out of the places of its residue."""
    return [edge for edge in (places[:shift], places[shift + end :]) if edge.size]


def _hand(
    g: Array, taps: Taps, won: list[Array], rest: Array, target: Array, arena: Arena
) -> list[Step]:
    """The steps that hand g (n) to taps in target (U, n); rest (n) has room for what is left."""
    end, fresh = _end(taps, g.size), _fresh(taps)
    real = np.dtype(f"f{g.itemsize}")
    places = [target[residue, shift : shift + end] for residue, shift in taps]
    spare = g if all(fresh[1:]) else arena.take((end,), g.dtype)
    left, steps = g[:end], list[Step]()
    for tap in reversed(range(len(taps))):
        place, part = places[tap], left
        if tap:
            part = place if fresh[tap] else spare
            left = places[0] if tap == 1 and fresh[0] else rest[:end]
            before = g[:end] if tap == len(taps) - 1 else rest[:end]
            steps.append((np.multiply, (before, won[tap - 1]), part))
            steps.append((np.bitwise_xor, (before, part), left))
        if not fresh[tap]:
            sums = place.view(real)
            steps.append((np.add, (sums, part.view(real)), sums))
            # Windows that reach from one sample to the next add 0, which makes 0 of -0: so it is here.
            for edge in _edges(target[taps[tap][0]].view(real), taps[tap][1], end):
                steps.append((np.add, (edge, np.zeros((), real)), edge))
        elif part is not place:
            steps.append((np.positive, (part,), place))
    return steps


def _put(dx: Array, to: Index, values: Array) -> None:
    inputs = to[-2]
    if LITTLE and inputs.step == 2 and dx.shape[-1] == 1 and dx.strides[-2] == dx.itemsize == 4:
        rows, first = dx[(*to[:-2], slice(None), 0)], inputs.start
        pairs = min(values.shape[-2], (dx.shape[-2] - first) // 2)
        if first % 2 == 0:
            # Numbers of every second place and zeros, which the others replace, are wide integers.
            halves = rows[..., first : first + 2 * pairs].view(np.uint64)
            np.copyto(halves, values[..., :pairs, 0].view(np.uint32))
            to, values = (
                (*to[:-2], slice(first + 2 * pairs, inputs.stop, 2), to[-1]),
                values[..., pairs:, :],
            )
    dx[to] = values

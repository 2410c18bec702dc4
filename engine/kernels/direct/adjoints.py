"""Which way the adjoint of a correlation in x goes: gathered by residues, or scattered, and how.

Where taps lie apart, an input that gathers meets few outputs among its taps, or planes that are folded have
few columns that belong to outputs. So work is estimated for each way, in multiplications, from integers
alone. What a number and a call take beside them was fitted to the times of 1800 random layers
(docs/kernels.md). For taps that lie together, estimates decide in small layers; large ones have a rule
that was measured on layers of networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES
from engine.geometry import Axis, row_major
from engine.kernels.correlation import SHARED_FLOPS, Correlation, Phase
from engine.kernels.direct import flat, folding, folds, gathered, overlapped, scattered, shuffled
from engine.kernels.patches import within
from engine.kernels.phases import residues
from engine.kernels.slabs import in_row, row

Array = NDArray[Any]
Input = Callable[[Correlation, Array, Array, Array], None]

CLOSE = 6
"""Numbers gathered for each that is a product of an output and a tap, up to which taps lie together."""

LITTLE_MORE = 1.25
"""The estimated work of phases over that of planes laid flat, up to which phases take less time in a small
layer. With more, one sample takes 2.4 to 3.8 times as long by phases, four 1.2 to 1.5, eight as long."""

KEPT = 64
"""Phases of a layer that are kept from call to call. More are as many calls."""

MANY_MORE = 2
"""The estimated work of more phases over that of scattering, up to which phases take less time."""

SCATTERED, FOLDED, FOLDED_GROUP = 0.7, 1.2, 800_000
"""What the estimated work of adding tap by tap and of folding is times, and what is added for each further
group of the latter, to take as long as that of phases. What is chosen by that takes 1.08 times as long as
the best of the three, over 748 random layers of 1 to 16 samples on one thread and on two (Zen 3)."""

MOST_UNREAD = 4
"""Columns, for each number that residues read of a filter, above which most are added nowhere."""

LONG = 3
"""A stride from which going block by block is thought of."""

CERTAIN = 0.7
"""The estimated work of adding block by block over that of the other way, below which it is taken: of 176
random layers 4 then take more than 1.1 times as long, 1.3 at worst."""

LIKELY = 1.2
"""The same of making all residues of a block by one product: of 513 random layers 7 take more than 1.2
times as long, all of them below 0.3 ms."""

FEW_TAPS = 4
"""Taps of depthwise windows side by side up to which residues are the better way."""


def phases(c: Correlation) -> tuple[Phase, ...]:
    """The adjoint in x as correlations over dy; none where scattering is the better way."""
    if not gathers(c):
        return ()
    # Many take more memory than a thousand layers should, and less time to make than to compute.
    return _kept(c) if c.phase_count <= KEPT else c.phases()


@lru_cache(maxsize=4096)
def _kept(c: Correlation) -> tuple[Phase, ...]:
    return c.phases()


def gathers(c: Correlation) -> bool:
    """True where `phases` are the better way. They are made only where they are wanted: whoever only plans
    may ask for many."""
    return _gathers(c) and not (_summed(c) or _in_blocks(c))


@lru_cache(maxsize=4096)
def _gathers(c: Correlation) -> bool:
    if _laid(c) or not c.phase_count:
        return False
    if _lone(c):
        return True
    gathering, adding = _gathering(c), _adding(c)
    if c.phase_count > KEPT:
        return gathering <= MANY_MORE * adding
    if _apart(c):
        return gathering <= adding
    if c.channels_last and c.channels == c.outputs == 1:
        return True
    laid_flat = _laid_flat(c)
    # Phases gather every output for each channel, scattering adds every channel's taps.
    if c.taps > c.phase_count and c.outputs > 2 * c.channels and c.channels < 32:
        return (2 if laid_flat else 1) * gathering <= adding
    # A small layer's phases are mostly their calls.
    small = c.phase_count > 1 and c.flops <= SHARED_FLOPS
    return not small or gathering <= (LITTLE_MORE if laid_flat else 1) * adding


def _lone(c: Correlation) -> bool:
    """True for strided windows of one tap: all phases but one are zeros, and that one is 1x1."""
    return c.taps == 1 < c.phase_count


@lru_cache(maxsize=4096)
def scattering(c: Correlation) -> Input:
    """What scatters, where there are no `phases`."""
    found = _in_blocks(c)
    if found is not None:
        return found
    return scattered.backward_input if _summed(c) else _scatters(c)


@lru_cache(maxsize=4096)
def _in_blocks(c: Correlation) -> Input | None:
    """What goes block by block, where strides are so long that going by residues takes many calls."""
    if max(axis.stride for axis in c.axes) < LONG or _laid(c) or _lone(c):
        return None
    ways: dict[Input, float] = {}
    if overlapped.pay(c) and overlapped.suits(c):
        ways[overlapped.backward_input] = _overlapping(c) / CERTAIN
    if shuffled.suits(c):
        ways[shuffled.backward_input] = _shuffling(c) / LIKELY
    if not ways:
        return None
    if _gathers(c):
        other = _gathering(c)
    else:
        other = _calling(c) if _scatters(c) is folding.backward_input else _scattering(c)
    if _summed(c):
        other = min(other, _scattering(c))
    way = min(ways, key=ways.__getitem__)
    return way if ways[way] < other else None


@lru_cache(maxsize=4096)
def _summed(c: Correlation) -> bool:
    """True for small maps under many weights, which nothing else would read as they lie."""
    # What is read is counted last: residues may be as many as the stride is long.
    if _lone(c) or not (c.phase_count and scattered.suits(c) and scattered.pay(c)):
        return False
    if MOST_UNREAD * _gathered(c) < c.places * c.taps:
        return False
    return _gathers(c) or _laid_flat(c) or folding.suits(c)


@lru_cache(maxsize=4096)
def _scatters(c: Correlation) -> Input:
    if _laid(c):
        return gathered.backward_input
    if _laid_flat(c):
        return flat.backward_input
    return folding.backward_input if _folds(c) else gathered.backward_input


@lru_cache(maxsize=4096)
def _folds(c: Correlation) -> bool:
    """True where columns may be folded, and that is less work than adding tap by tap."""
    return folding.suits(c) and _folded(c) <= SCATTERED * _scattering(c)


def _laid_flat(c: Correlation) -> bool:
    """True where columns as wide as the padded inputs fit the scratch, and few belong to no output."""
    return flat.suits(c) and flat.pay_for_input(c)


def _laid(c: Correlation) -> bool:
    """True where windows side by side are laid down; depthwise layers have no product to gain by."""
    depthwise = c.channels == c.outputs == 1
    return c.disjoint and not (depthwise and (c.channels_last or c.taps <= FEW_TAPS))


def _gathered(c: Correlation) -> int:
    """Numbers that all phases read of one output channel: taps of each input, met by an output or not."""
    return prod(map(_met, c.axes))


@lru_cache(maxsize=4096)
def _met(axis: Axis) -> int:
    """Numbers that all residues of an axis read."""
    windows = (residue.window for residue in residues(axis))
    return sum(w.out * w.kernel for w in windows if w is not None)


def _apart(c: Correlation) -> bool:
    """True where most of what phases gather is no output's."""
    return _gathered(c) > CLOSE * c.places * c.taps


def _gathering(c: Correlation) -> int:
    """Work of the phases of one sample, in multiplications."""
    each = _gathered(c) * c.outputs * (c.channels + 16)
    return c.groups * (each + 20 * _inputs(c)) + 300_000 * c.phase_count


def _adding(c: Correlation) -> float:
    """Work of what scatters, to be compared with that of phases."""
    if _laid_flat(c):
        # Small maps take about an eighth of the time for each column.
        return _folding(c) // 8
    return _folded(c) if _folds(c) else SCATTERED * _scattering(c)


def _folded(c: Correlation) -> float:
    """Work of folding, to be compared with that of phases."""
    return FOLDED * _folding(c) + FOLDED_GROUP * (c.groups - 1)


def _folding(c: Correlation) -> int:
    """Work of folding: columns that belong to no output are multiplied and added as well."""
    if not all(map(in_row, c.axes)):
        return _scattering(c)
    started, parts = 800_000, folds.in_parts(c)
    if parts is not None:
        columns = folds.columns(c, parts)
        started += 100_000 * folds.sums(c, parts)
    else:
        widths = [row(axis).width for axis in c.axes]
        places = c.positions[0] * row_major(widths)[0] + folds.reached(widths, c.positions)
        columns = places * c.taps * c.channels
    return c.groups * (columns * (c.outputs + 32) // 4 + 60 * _inputs(c) + started)


def _calling(c: Correlation) -> int:
    """Work of folding, with a call for each residue, of which long strides have many."""
    return _folding(c) + 40_000 * c.groups * prod(axis.stride for axis in c.axes)


def _shuffling(c: Correlation) -> float:
    """Work of a product for all residues, and of copying its numbers to where they belong, run by run."""
    stride = c.axes[-1].stride
    made, reached = c.channels * shuffled.made(c), c.outputs * shuffled.reached(c)
    read = shuffled.made(c) // prod(axis.stride for axis in c.axes) * reached
    each = made * (13 + 256 / stride + 4 * reached / 3) + 8 * read
    return c.groups * (each + 16 * c.outputs * c.channels * c.taps) + 500_000


def _overlapping(c: Correlation) -> float:
    """Work of adding block by block: few calls, but each run of numbers takes a while to begin."""
    columns = c.groups * c.places * c.taps * c.channels
    each = columns * (13 + 256 / overlapped.run(c) + 4 * c.outputs / 3)
    started = 500_000 + 64_000 * overlapped.calls(c) * max(1, columns * c.itemsize // PART_BYTES)
    return each + started + 8 * c.groups * _inputs(c)


def _scattering(c: Correlation) -> int:
    """Work of adding tap by tap, each by a call for every sample."""
    each = c.places * c.taps * c.channels * (c.outputs + 1024) // 8
    return c.groups * (each + 8 * _inputs(c)) + 50_000 * c.taps + 1_000_000


def _inputs(c: Correlation) -> int:
    """Numbers of one sample and group to be written."""
    return c.channels * prod(axis.size for axis in c.axes)


def spoiled(c: Correlation, w: Array, dx: Array) -> Sequence[int]:
    """The samples where a weight that is not finite may have met zeros beside dy, which are no outputs.

    It then spoils all inputs of its residue, so that the first of each tell whether to look at weights.
    """
    first = dx[within(slice(axis.stride) for axis in c.axes)]
    sums = np.add.reduce(first, axis=tuple(range(1, dx.ndim)))
    if np.isfinite(sums).all():
        return ()
    edges = np.minimum.reduce(w, axis=None), np.maximum.reduce(w, axis=None)
    return () if np.isfinite(edges).all() else np.flatnonzero(~np.isfinite(sums)).tolist()

"""Windows reduced over inputs laid out by residues, and the order in which maxima are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import Arena
from engine.geometry import Axis, Tile
from engine.kernels.kept import kept
from engine.kernels.pools.residues import Recipe, Stages, lay, recipe

Array = NDArray[Any]

Step = tuple[np.ufunc, tuple[Array, ...], Array]
"""A ufunc, what it takes, and where its result goes."""

FEW = 256
"""Taps up to which windows that overlap or leave inputs over are looked at tap by tap."""

FEW_BESIDE = 128
"""Taps up to which windows that lie side by side and leave no input over are."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """Views of a thread's scratch, and what is done to them, for blocks of one shape.

    Attributes:
        laid: the inputs by residues.
        steps: reduce them, axis by axis.
        result: the windows that begin at each place, (*B, *L, I).
    """

    laid: Array
    steps: tuple[Step, ...]
    result: Array


@kept
def reduction(
    ufunc: np.ufunc,
    residues: tuple[int, ...],
    lengths: tuple[int, ...],
    stages: Stages,
    lead: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Reduction:
    """This thread's views for `lead` planes that are laid out by a recipe of these attributes."""
    arena = Arena()
    laid = arena.take((*residues, *lead, *lengths), dtype)
    steps, result = _staged(ufunc, laid, stages, arena)
    return Reduction(laid, tuple(steps), result)


def reduced(
    ufunc: np.ufunc,
    identity: float,
    x: Array,
    axes: tuple[Axis, ...],
    tile: Tile,
    prepare: Callable[[Array], Array] | None = None,
) -> Array:
    """Windows of `prepare` applied to x, reduced: a view (*B, *T, I) of the scratch.

    Padding holds the ufunc's identity, which `prepare` must not change.
    """
    found = recipe(axes, tile, x.shape[-1])
    lead = _lead(x, found)
    v = reduction(ufunc, found.residues, found.lengths, found.stages, lead, x.dtype)
    lay(x, found, identity, v.laid)
    if prepare is not None:
        np.copyto(v.laid, prepare(v.laid))
    return _run(v.steps, v.result)[found.outputs]


def room(axes: tuple[Axis, ...], tile: Tile, inner: int, itemsize: int) -> int:
    """Bytes of the arena that a tile of one plane takes, with room for what is made of its results."""
    found = recipe(axes, tile, inner)
    outputs = prod(hi - lo for lo, hi in tile) * inner
    return found.places * itemsize + 4 * prod(found.lengths) + 8 * outputs


def ordered(x: Array) -> Array:
    """Integers in the order of maxima: equal zeros, NaN highest, and the lowest integer for none."""
    bits = (x + 0).view(f"i{x.itemsize}")
    limits = np.iinfo(bits.dtype)
    # The bits of negative numbers grow with their magnitude.
    keys = bits ^ ((bits >> limits.bits - 1) & limits.max)
    keys[np.isnan(x)] = limits.max
    return keys


def _lead(x: Array, found: Recipe) -> tuple[int, ...]:
    return x.shape[: -len(found.lengths)]


def _staged(ufunc: np.ufunc, laid: Array, stages: Stages, arena: Arena) -> tuple[list[Step], Array]:
    """The steps that reduce windows axis by axis at every place, and their result (*B, *L, I)."""
    values, steps = laid, list[Step]()
    for residues, taps in stages:
        values = values.reshape(residues, -1)
        result = arena.take(values.shape[1:], values.dtype)
        end = result.size - max(shift for _, shift in taps)
        before, *views = (values[residue, shift : shift + end] for residue, shift in taps)
        target = result[:end]
        if not views:
            steps.append((np.positive, (before,), target))
        for view in views:
            steps.append((ufunc, (before, view), target))
            before = target
        values = result
    return steps, values.reshape(laid.shape[len(stages) :])


def _run(steps: Iterable[Step], result: Array) -> Array:
    for ufunc, operands, target in steps:
        ufunc(*operands, out=target)
    return result

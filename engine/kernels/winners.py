"""Windows reduced over inputs laid out by residues, and the first tap that holds each maximum."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Tile
from engine.kernels.residues import Recipe, lay, recipe
from engine.threads import Arena

Array = NDArray[Any]

BYTE = np.dtype(np.uint8)

FEW = 128
"""Taps up to which each is compared with the maximum by itself."""


def winners(
    x: Array, axes: tuple[Axis, ...], tile: Tile, arena: Arena
) -> tuple[Array, Array, Array | None]:
    """The maxima of a tile of x, the taps that hold them first, and blanks.

    Results are views (*B, *T, I) of the arena. Blanks mark windows without inputs; None says that
    there are none.
    """
    found = recipe(axes, tile, x.shape[-1])
    laid = _laid(x, found, -np.inf, arena)
    best = _staged(np.maximum, laid, found, arena)
    outputs = best[found.outputs]
    # NaN equals nothing, and minus infinity a border.
    if not found.empty and np.minimum.reduce(outputs, axis=None) > -np.inf:
        return outputs, _first(laid, best, found, arena)[found.outputs], None
    keys = ordered(laid)
    lowest = np.iinfo(keys.dtype).min
    for edge in found.borders:
        keys[edge] = lowest
    highest = _staged(np.maximum, keys, found, arena)
    taps = _first(keys, highest, found, arena)[found.outputs]
    blanks = highest[found.outputs] == lowest
    return outputs, taps, blanks if blanks.any() else None


def reduced(
    ufunc: np.ufunc,
    identity: float,
    x: Array,
    axes: tuple[Axis, ...],
    tile: Tile,
    arena: Arena,
    prepare: Callable[[Array], Array] = lambda values: values,
) -> Array:
    """Windows of `prepare` applied to x, reduced: a view (*B, *T, I) of the arena.

    Padding holds the ufunc's identity, which `prepare` must not change.
    """
    found = recipe(axes, tile, x.shape[-1])
    laid = prepare(_laid(x, found, identity, arena))
    return _staged(ufunc, laid, found, arena)[found.outputs]


def room(axes: tuple[Axis, ...], tile: Tile, inner: int, itemsize: int) -> int:
    """Bytes of the arena that a tile of one plane takes, positions of its maxima included."""
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


def _laid(x: Array, found: Recipe, border: float, arena: Arena) -> Array:
    lead = x.shape[: -len(found.lengths)]
    laid = arena.take((*found.residues, *lead, *found.lengths), x.dtype)
    lay(x, found, border, laid)
    return laid


def _staged(ufunc: np.ufunc, laid: Array, found: Recipe, arena: Arena) -> Array:
    """Windows reduced axis by axis at every place, (*B, *L, I)."""
    values = laid
    for residues, taps in found.stages:
        values = values.reshape(residues, -1)
        result = arena.take(values.shape[1:], values.dtype)
        end = result.size - max(shift for _, shift in taps)
        views = [values[residue, shift : shift + end] for residue, shift in taps]
        if len(views) == 1:
            np.copyto(result[:end], views[0])
        else:
            ufunc(views[0], views[1], out=result[:end])
        for view in views[2:]:
            ufunc(result[:end], view, out=result[:end])
        values = result
    return values.reshape(laid.shape[len(found.residues) :])


def _first(laid: Array, best: Array, found: Recipe, arena: Arena) -> Array:
    """The first tap that equals the maximum: as many as differ from it before one does not."""
    planes = laid.reshape(*found.residues, -1)
    result = arena.take(best.shape, BYTE)
    if len(found.taps) == 1:
        result.fill(0)
        return result
    end = best.size - max(shift for _, shift in found.taps)
    highest, first = best.reshape(-1)[:end], result.reshape(-1)[:end]
    lost, differs = (arena.take((end,), np.dtype(np.bool_)) for _ in range(2))
    residues, shift = found.taps[0]
    np.not_equal(planes[residues][shift : shift + end], highest, out=lost)
    np.copyto(first, lost)
    for residues, shift in found.taps[1:-1]:
        np.not_equal(planes[residues][shift : shift + end], highest, out=differs)
        np.logical_and(lost, differs, out=lost)
        np.add(first, lost.view(BYTE), out=first)
    return result

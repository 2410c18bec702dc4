"""Activations with a corner: the rectifiers, and a line that is clipped.

They choose one of two forms at each place, by maxima or by bits: choosing number by number takes several
times as long where no order is in them. A value function writes to `y`, which may be `z`; a slope is in one
of the rows, or new; a gradient, dy times the slope, is written to `dz`, which may be `z`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.activations.choice import chosen
from engine.kernels.activations.rows import Rows

Array = NDArray[Any]


def relu(z: Array, y: Array, rows: Rows) -> None:
    """max(z, 0), and 0 for -0."""
    np.maximum(z, rows.filled(0), out=y)
    y += 0


def relu_gradient(z: Array, dy: Array, dz: Array, rows: Rows) -> None:
    """dy where z is above 0, else 0: the slope is 1 and 0."""
    # "not <= 0" and not "> 0": NaN passes the gradient on, as in PyTorch.
    _shut(np.less_equal(z, 0, out=rows.mask), dy, dz, rows)


def leaky(z: Array, y: Array, rows: Rows, alpha: float) -> None:
    """z above 0, alpha·z elsewhere."""
    line = np.multiply(z, alpha, out=rows[0])
    # What alpha is in the dtype counts: it may be 0 there.
    if 0 < z.dtype.type(alpha) <= 1:
        np.maximum(z, line, out=y)
    else:
        y[:] = chosen(np.greater(z, 0, out=rows.mask), z, line)


def leaky_slope(z: Array, rows: Rows, alpha: float) -> Array:
    """1 where z is above 0, alpha elsewhere."""
    return _one_or(np.greater(z, 0, out=rows.mask), rows.filled(alpha), alpha, rows)


def elu(z: Array, y: Array, rows: Rows, alpha: float, scale: float = 1.0) -> None:
    """scale times z above 0, and times alpha·(exp z − 1) elsewhere."""
    zero = rows.filled(0)
    # Of a maximum and a minimum that have 0 in other places, one is 0 and not -0 where z is -0.
    below, curve = np.minimum(zero, z, out=rows[0]), rows[1]
    if alpha >= 1:
        np.expm1(below, out=curve)
        if alpha != 1:
            curve *= alpha
        np.add(curve, np.maximum(z, zero, out=below), out=y)
    else:
        # A sum would lose the sign of products that are rounded to -0.
        below += 0
        np.expm1(below, out=curve)
        curve *= alpha
        y[:] = chosen(np.greater(z, 0, out=rows.mask), z, curve)
    if scale != 1:
        y *= scale


def elu_slope(z: Array, rows: Rows, alpha: float, scale: float = 1.0) -> Array:
    """scale where z is above 0, scale·alpha·exp z elsewhere."""
    slope = np.exp(np.minimum(z, rows.filled(0), out=rows[0]), out=rows[1])
    if alpha != 1:
        slope *= alpha
        slope = _one_or(np.greater(z, 0, out=rows.mask), slope, alpha, rows)
    if scale != 1:
        slope *= scale
    return slope


def hard_sigmoid(z: Array, y: Array, rows: Rows, alpha: float, beta: float) -> None:
    """alpha·z + beta, clipped to [0, 1]."""
    line = np.multiply(z, alpha, out=rows[0])
    line += beta
    np.clip(line, 0, 1, out=y)


def hard_sigmoid_gradient(
    z: Array, dy: Array, dz: Array, rows: Rows, alpha: float, beta: float
) -> None:
    """alpha·dy where alpha·z + beta is between 0 and 1, else 0."""
    line = np.multiply(z, alpha, out=rows[0])
    line += beta
    inside = np.greater(line, 0, out=rows.mask)
    inside &= line < 1
    _shut(np.logical_not(inside, out=inside), np.multiply(dy, alpha, out=rows[1]), dz, rows)


def _one_or(above: Array, other: Array, alpha: float, rows: Rows) -> Array:
    """1 where `above`, elsewhere `other`, which is alpha where `above` and nowhere more."""
    factor, one = other.dtype.type(alpha), rows[0]
    if 0 < factor <= 1:
        one[:] = above
        return np.maximum(one, other, out=one)
    if 1 < factor <= 2:
        # The difference is exact, and so is its sum with alpha.
        one[:] = above
        one *= 1 - factor
        one += other
        return one
    return chosen(above, np.ones(1, other.dtype), other)


def _shut(flat: Array, dy: Array, dz: Array, rows: Rows) -> None:
    """Write dy to `dz`, but a zero of its sign where `flat`, a mask that is used up."""
    # All bits where it is open, as bytes, then as numbers: the sign's bit is kept everywhere.
    small = flat.view(np.int8)
    small -= 1
    keep = rows[0].view(rows.bits)
    keep[:] = small
    keep |= rows.sign
    np.bitwise_and(dy.view(rows.bits), keep, out=dz.view(rows.bits))

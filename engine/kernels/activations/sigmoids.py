"""Activations made of the sigmoid, softplus, and the slope of tanh.

None overflows on either side, and what is close to 0 keeps its digits. A value function writes to `y`,
which may be `z`; a slope, dy/dz at each z, is in one of the rows. float32 takes the form of fewest passes,
float64 the one that is rounded least.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.activations.rows import Rows

Array = NDArray[Any]

_TWICE_ROOT_TWO_OVER_PI = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_FLAT = 1000
_ENOUGH = 40.0
"""From here on the sigmoid is 1."""


def sigmoid(z: Array, y: Array, rows: Rows) -> None:
    """1 / (1 + exp(−z))."""
    np.divide(*_terms(z, rows), out=y)


def silu(z: Array, y: Array, rows: Rows) -> None:
    """z·sigmoid(z)."""
    np.multiply(z, sigmoid_itself(z, rows), out=y)


def gelu_by_tanh(z: Array, y: Array, rows: Rows) -> None:
    """z·(1 + tanh u)/2, which is z times the sigmoid of 2u."""
    np.multiply(z, sigmoid_itself(_twice_u(z, rows[2]), rows), out=y)


def softplus(z: Array, y: Array, rows: Rows) -> None:
    """log(1 + exp z)."""
    log = np.log1p(_decay(z, rows), out=rows[0])
    above = np.maximum(z, rows.filled(0), out=rows[1])
    np.add(above, log, out=y)


def sigmoid_itself(z: Array, rows: Rows) -> Array:
    """The sigmoid in a row: the slope of softplus."""
    above, below = _terms(z, rows)
    above /= below
    return above


def sigmoid_slope(z: Array, rows: Rows) -> Array:
    """s·(1 − s), where s is the sigmoid of z."""
    # Not so written: where s is near 1 the difference would have few digits left.
    decay = _decay(z, rows)
    below = np.add(decay, 1, out=rows[0])
    below *= below
    decay /= below
    return decay


def tanh_slope(z: Array, rows: Rows) -> Array:
    """1 − tanh² z."""
    # Without the difference: 4d / (1 + d)², where d is exp(−2|z|).
    decay = _decay(np.add(z, z, out=rows[0]), rows)
    below = np.multiply(decay, 0.5, out=rows[0])
    below += 0.5
    below *= below
    decay /= below
    return decay


def silu_slope(z: Array, rows: Rows) -> Array:
    """s + z·s·(1 − s), where s is the sigmoid of z."""
    return _product_slope(z, z, None, rows)


def gelu_by_tanh_slope(z: Array, rows: Rows) -> Array:
    """s + z·s·(1 − s)·2u', where s is the sigmoid of 2u and u' the slope of u."""
    # Long before this the slope is 0 or 1, as without the bound; beyond it a cube overflows to NaN.
    z = np.clip(z, -_FLAT, _FLAT, out=rows[3])
    rising = np.multiply(z, 3 * _CUBIC, out=rows[4])
    rising *= z
    rising += 1
    rising *= _TWICE_ROOT_TWO_OVER_PI
    return _product_slope(_twice_u(z, rows[2]), z, rising, rows)


def _twice_u(z: Array, u: Array) -> Array:
    """Write 2u = 2·√(2/π)·(z + 0.044715·z³) to `u`, which is not `z`."""
    np.multiply(z, _CUBIC, out=u)
    u *= z
    u *= z
    u += z
    u *= _TWICE_ROOT_TWO_OVER_PI
    return u


def _product_slope(u: Array, z: Array, rising: Array | None, rows: Rows) -> Array:
    """The slope of z·sigmoid(u), s + s·(1 − s)·z·u', where u' is `rising`, or 1; `u` may be row 2."""
    if u.dtype == np.float32:
        power = np.exp(u, out=rows[0])
        slope = np.minimum(power, rows.filled(math.exp(_ENOUGH)), out=rows[1])
        slope /= np.add(slope, 1, out=rows[2])
        # 1 − s, of which nothing is left where the power is infinite.
        power += 1
        np.divide(z, power, out=power)
        if rising is not None:
            power *= rising
        power += 1
        slope *= power
        # 0 and not -0 where nothing is left of s.
        slope += 0
        return slope
    above = np.greater_equal(u, 0, out=rows.mask)
    decay = _decay(u, rows)
    below, value = np.add(decay, 1, out=rows[0]), rows[2]
    value[:] = above
    np.maximum(value, decay, out=value)
    value /= below
    below *= below
    decay /= below
    decay *= z
    if rising is not None:
        decay *= rising
    decay += value
    return decay


def _terms(z: Array, rows: Rows) -> tuple[Array, Array]:
    """Numerator and denominator of the sigmoid, rows 0 and 1."""
    if z.dtype == np.float32:
        power = np.exp(np.minimum(z, rows.filled(_ENOUGH), out=rows[1]), out=rows[0])
        return power, np.add(power, 1, out=rows[1])
    decay = _decay(z, rows)
    # The larger of the two is 1 from 0 on, as the decay is at most 1.
    above = rows[0]
    above[:] = np.greater_equal(z, 0, out=rows.mask)
    np.maximum(above, decay, out=above)
    decay += 1
    return above, decay


def _decay(z: Array, rows: Rows) -> Array:
    """exp(−|z|), in row 1; `z` may be row 0."""
    minus = rows[0]
    # With the sign's bit set it is −|z|, in one pass.
    np.bitwise_or(z.view(rows.bits), rows.sign, out=minus.view(rows.bits))
    return np.exp(minus, out=rows[1])

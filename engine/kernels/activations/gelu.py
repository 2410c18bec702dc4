"""Exact GELU, z·Φ(z), and its derivative, Φ(z) + z·φ(z).

float64 takes the complementary error function. float32 needs few of its digits: the upper tail of the
normal distribution is exp(−a²/2)·M(a), where M, Mills' ratio over √(2π), falls from 1/2 to 0.4/a, and

    M(a) = 1/2 − c0/(1 + q/a),  q = b0 + c1/(a + b1 + c2/(a + b2 + c3/(a + b3))).

The eight numbers were fitted in float64 to `math.erfc`, for a from 0 to 14.5, beyond which float32 has
nothing left: linear least squares for numerator and denominator, weighted anew by Lawson's method (1961)
until the largest error is least. M is off by at most 2.3e-8·(1 + a²) of itself; the exponential, whose
argument is rounded, by more. A continued fraction takes three passes for two numbers and a polynomial
two for one; it needs no bound on `a`, as an infinite one ends in the first quotient; and near 0, where q/a
is large, few of its roundings count.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.activations.erf import erfc
from engine.kernels.activations.rows import Rows

Array = NDArray[Any]

# Arrays of no axes: what is a number is made one of these in every pass, which takes as long as to call it.
_HALF, _ZERO, _ONE, _C0, _B0, _C1, _B1, _C2, _B2, _C3, _B3 = (
    np.array(number, np.float32)
    for number in (
        *(0.5, 0, 1),
        *(0.499982595, 0.796203375),
        *(0.671287537, 1.08372927),
        *(-3.18751645, 8.25987244),
        *(35.6486282, -2.15527534),
    )
)
_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 0.5 * math.sqrt(2 / math.pi)


def gelu(z: Array, y: Array, rows: Rows) -> None:
    """Write z·Φ(z) to `y`, which may be `z`."""
    if z.dtype == np.float32:
        np.multiply(z, _normal(z, _bell(z, rows), rows), out=y)
    else:
        half = np.multiply(z, 0.5, out=rows[0])
        np.multiply(half, erfc(z * -_ROOT_HALF), out=y)


def gelu_slope(z: Array, rows: Rows) -> Array:
    """Φ(z) + z·φ(z), in one of the rows."""
    density = _bell(z, rows)
    if z.dtype == np.float32:
        slope = _normal(z, density, rows)
    else:
        slope = np.multiply(erfc(z * -_ROOT_HALF), 0.5, out=rows[1])
    density *= _DENSITY
    density *= z
    slope += density
    return slope


def _bell(z: Array, rows: Rows) -> Array:
    """exp(−z²/2), in row 0."""
    argument = np.multiply(z, z, out=rows[1])
    argument *= -0.5
    return np.exp(argument, out=rows[0])


def _normal(z: Array, bell: Array, rows: Rows) -> Array:
    """Φ(z) of float32, in row 1."""
    a = np.abs(z, out=rows[2])
    tail = _mills(a, rows[1])
    tail *= bell
    # 1 − tail above 0, and the tail itself, with all its digits, elsewhere.
    one = rows[2]
    one[:] = np.greater(z, _ZERO, out=rows.mask)
    np.subtract(one, tail, out=tail)
    return np.abs(tail, out=tail)


def _mills(a: Array, r: Array) -> Array:
    """M(a), in `r`."""
    np.add(a, _B3, out=r)
    np.divide(_C3, r, out=r)
    for numerator, offset in ((_C2, _B2), (_C1, _B1)):
        r += offset
        r += a
        np.divide(numerator, r, out=r)
    r += _B0
    r /= a
    r += _ONE
    np.divide(_C0, r, out=r)
    return np.subtract(_HALF, r, out=r)

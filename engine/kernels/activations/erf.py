"""The error function on arrays, which NumPy lacks.

W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969): three
intervals, each a quotient of polynomials with a relative error below 1e-16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.activations.choice import chosen

Array = NDArray[Any]

# Coefficients from the highest power down; numerator and denominator of each interval.
_NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
     3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
     2.84423683343917062e3),
)  # fmt: skip
_MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
     6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
     1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
     1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
     3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
_FAR = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
     1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242e0, 1.87295284992346047e0, 5.27905102951428412e-1,
     6.05183413124413191e-2, 2.33520497626869185e-3),
)  # fmt: skip
_INVERSE_ROOT_PI = 0.5641895835477563
_EDGE = 0.46875


def _polynomial(row: tuple[float, ...], t: Array) -> Array:
    """`numpy.polyval` of finite numbers and NaN, in one array."""
    found = row[0] * t
    for factor in row[1:-1]:
        found += factor
        found *= t
    found += row[-1]
    return found


def _quotient(table: tuple[tuple[float, ...], tuple[float, ...]], t: Array) -> Array:
    numerator, denominator = (_polynomial(row, t) for row in table)
    return np.divide(numerator, denominator, out=numerator)


def erfc(x: Array) -> Array:
    """1 - erf(x) without cancellation for large x; float32 or float64, any shape, NaN stays NaN."""
    a = np.abs(x)
    # Two forms are worked out for all numbers: to pick numbers in which no order is takes longer.
    y = chosen(a > _EDGE, _middle(a), _near(a))
    far = np.nonzero(a > 4)
    y[far] = _far(a[far])
    return chosen(x < 0, 2 - y, y)


def _near(a: Array) -> Array:
    t = np.clip(a, 0, _EDGE)
    y = _quotient(_NEAR, t * t)
    y *= t
    return np.subtract(1, y, out=y)


def _middle(a: Array) -> Array:
    t = np.clip(a, _EDGE, 4)
    y = _quotient(_MIDDLE, t)
    y *= np.exp(-t * t)
    return y


def _far(a: Array) -> Array:
    # Beyond 30 even float64 has nothing left; the clip keeps t * t finite.
    t = np.clip(a, 4, 30)
    u = 1 / (t * t)
    y = _quotient(_FAR, u)
    y *= u
    np.subtract(_INVERSE_ROOT_PI, y, out=y)
    y *= np.exp(-t * t) / t
    return y
